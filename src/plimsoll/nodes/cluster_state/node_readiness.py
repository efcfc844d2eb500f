"""Whether a single node is ready, since when, and if not, why. Pure.

Conditions and taints of Kubernetes first; then what the autoscaler adds (docs/design/nodes.md 6.1): a node with a
startup taint, and one that should have accelerators but shows none yet, count as not ready.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.model.gpus import GPU_LABELS, count_gpus
from plimsoll.nodes.model.taints import BEING_DELETED, IGNORED_PREFIX, STARTUP_PREFIX

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.nodes.config.policy import PodRules
    from plimsoll.objects.api.nodes import Node

READY: Final = "Ready"
SUSPENDED: Final = "Suspended"
# A node with one of these conditions true is not ready, whatever its Ready condition says.
_TROUBLES: Final = frozenset({"DiskPressure", "NetworkUnavailable"})
_TROUBLE_TAINTS: Final = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
    }
)


class UnreadyReason(Enum):
    """Why a node is not ready."""

    CONDITION = "condition"
    STARTUP_TAINT = "startup taint"
    RESOURCE = "resource"
    """Its accelerators are not allocatable yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReadiness:
    """`why` is None for a ready node; `since` is the newest change that readiness rests on."""

    why: UnreadyReason | None
    since: datetime | None = None

    @property
    def is_ready(self) -> bool:
        return self.why is None


class StartupTaints:
    """The keys of taints that a node has only while it starts."""

    __slots__ = ("_keys", "_prefixes")

    def __init__(self, rules: PodRules) -> None:
        self._prefixes = (STARTUP_PREFIX, IGNORED_PREFIX, *rules.startup_taint_prefixes)
        self._keys = frozenset((*rules.startup_taints, *rules.ignored_taints))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and (key in self._keys or key.startswith(self._prefixes))


def classify_readiness(node: Node, startup: StartupTaints, *, gpu_label: str = "") -> NodeReadiness:
    since = _find_transition_time(node)
    if not _is_ready_for_kubernetes(node):
        return NodeReadiness(why=UnreadyReason.CONDITION, since=since)
    if any(taint.key in startup for taint in node.spec.taints):
        return NodeReadiness(why=UnreadyReason.STARTUP_TAINT, since=since)
    if _lacks_accelerators(node, gpu_label):
        return NodeReadiness(why=UnreadyReason.RESOURCE, since=since)
    return NodeReadiness(why=None, since=since)


def is_suspended(node: Node) -> bool:
    return any(condition.type == SUSPENDED and condition.status == "True" for condition in node.status.conditions)


def is_tainted_for_deletion(node: Node) -> bool:
    return any(taint.key == BEING_DELETED for taint in node.spec.taints)


def _is_ready_for_kubernetes(node: Node) -> bool:
    statuses = {condition.type: condition.status for condition in node.status.conditions}
    if statuses.get(READY) != "True" or any(statuses.get(trouble) == "True" for trouble in _TROUBLES):
        return False
    return not any(taint.key in _TROUBLE_TAINTS for taint in node.spec.taints)


def _find_transition_time(node: Node) -> datetime | None:
    conditions = (
        condition.last_transition_time for condition in node.status.conditions if condition.type in {READY, *_TROUBLES}
    )
    taints = (taint.time_added for taint in node.spec.taints if taint.key in _TROUBLE_TAINTS)
    return max((time for time in (*conditions, *taints) if time is not None), default=None)


def _lacks_accelerators(node: Node, gpu_label: str) -> bool:
    labels = node.metadata.labels
    if not any(label in labels for label in (gpu_label, *GPU_LABELS)):
        return False
    allocatable, _ = ResourceVector.read_bounded(node.status.allocatable, path="status.allocatable")
    return count_gpus(allocatable) == 0
