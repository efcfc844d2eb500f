"""The settings of the virtual kubelet, for all nodes, and the annotations that override them per node or pod.

An unreadable annotation counts as absent: users write them by hand, and no pod should hang on a typing error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

VIRTUAL_NODES: Final = "plimsoll.io/virtual=true"

BOOT_SECONDS: Final = "plimsoll.io/boot-seconds"
"""On a node: from its creation until it is Ready."""
SILENT: Final = "plimsoll.io/silent"
"""On a node, "true": it is cut off. No heartbeats, and nothing happens to its pods."""
START_SECONDS: Final = "plimsoll.io/start-seconds"
"""On a pod: from when the node takes it until it runs."""
RUN_SECONDS: Final = "plimsoll.io/run-seconds"
"""On a pod: how long its containers run each time. Absent: for ever."""
EXIT_CODE: Final = "plimsoll.io/exit-code"
"""On a pod: what its containers end with after that time."""
STOP_SECONDS: Final = "plimsoll.io/stop-seconds"
"""On a pod: how long its containers take to end when asked to; at the end of the grace period they are killed."""

# A year: nothing here is meant to outlast it, and dates do not overflow.
_LONGEST_S: Final = 366 * 86_400.0


class KubeletSettings(Value, frozen=True):
    """The settings of nodes and pods without annotations of their own."""

    selector: str = VIRTUAL_NODES
    """Labels of the nodes it simulates."""
    boot_s: float = 0.0
    start_s: float = 1.0
    stop_s: float = 0.0
    kubelet_version: str = "v1.34.1"
    node_addresses: str = "10.128.0.0/14"
    """Where nodes get addresses from that have none."""
    pod_addresses: str = "10.64.0.0/11"
    """Where pods of nodes without `podCIDR` get theirs from."""
    lease_s: int = 40
    renew_s: float = 10.0
    report_s: float = 300.0
    """How often a node's status is written though nothing changed. Only where heartbeats are written at all."""
    emits_events: bool = True
    """Write events as a kubelet does: about four for each pod."""
    reports_ends: bool = True
    """Write how a pod ended before its object is deleted, as a kubelet does, though it is visible only briefly."""
    resync_s: float = 1_800.0
    """How often all pods are looked at though nothing happened to them: a safety net only. 0: never."""
    workers: int = 16
    """How many pods, nodes and leases are written at a time."""

    def __post_init__(self) -> None:
        for field in ("boot_s", "start_s", "stop_s"):
            if not 0 <= getattr(self, field) <= _LONGEST_S:
                raise InvalidInput(f"must be between 0 and {_LONGEST_S:.0f}, is {getattr(self, field)}", path=field)
        for field in ("lease_s", "renew_s", "report_s", "workers"):
            if not getattr(self, field) > 0:
                raise InvalidInput(f"must be more than 0, is {getattr(self, field)}", path=field)


class Pace(Value, frozen=True):
    """How one pod behaves."""

    start_s: float
    stop_s: float
    run_s: float | None
    exit_code: int
    reports_end: bool = True
    """Always where finalizers keep the object after its end: job controllers count how their pods ended."""


def read_boot_s(node: Node, settings: KubeletSettings) -> float:
    given = _parse_seconds(node.metadata.annotations.get(BOOT_SECONDS))
    return settings.boot_s if given is None else given


def read_pace(pod: Pod, settings: KubeletSettings) -> Pace:
    annotations = pod.metadata.annotations
    start_s, stop_s = _parse_seconds(annotations.get(START_SECONDS)), _parse_seconds(annotations.get(STOP_SECONDS))
    return Pace(
        start_s=settings.start_s if start_s is None else start_s,
        stop_s=settings.stop_s if stop_s is None else stop_s,
        run_s=_parse_seconds(annotations.get(RUN_SECONDS)),
        exit_code=_exit_code(annotations.get(EXIT_CODE, "")),
        reports_end=settings.reports_ends or bool(pod.metadata.finalizers),
    )


def _parse_seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        return None
    return min(seconds, _LONGEST_S) if seconds >= 0 and not math.isnan(seconds) else None


def _exit_code(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and int(text[:4]) <= 255 and len(text) <= 3 else 0
