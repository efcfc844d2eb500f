"""The health of a node: the conditions of a silent one, and the taints its conditions require. Pure.

Texts and orders are those of Kubernetes 1.34. The time of the node's last report is a parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.objects.api.deprecated_labels import OLD_SYSTEM_LABELS
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.api.nodes import Taint

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.objects.api.nodes import Node, NodeCondition

READY: Final = "Ready"
NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
NEVER_REPORTED: Final = "NodeStatusNeverUpdated"
STOPPED_REPORTING: Final = "NodeStatusUnknown"

_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_REPORTED: Final = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")
_TAINT_OF: Final = {
    (READY, "False"): NOT_READY,
    (READY, "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OURS: Final = {
    NO_SCHEDULE: frozenset({*_TAINT_OF.values(), _UNSCHEDULABLE}),
    NO_EXECUTE: frozenset({NOT_READY, UNREACHABLE}),
}
_TTL: Final = "node.alpha.kubernetes.io/ttl"
# How long kubelets may keep secrets and config maps, by the size of the cluster.
_TTL_SECONDS: Final = ((100, 0), (500, 15), (1_000, 30), (2_000, 60))
_LONGEST_TTL_S: Final = 300


class NodeGracePeriods(Value, frozen=True):
    """How long a node may be silent: one that reported before, and one that never did."""

    grace_s: float = 40.0
    startup_grace_s: float = 60.0


def find_condition(node: Node, type_: str) -> NodeCondition | None:
    return next((node_condition for node_condition in node.status.conditions if node_condition.type == type_), None)


def get_readiness(node: Node) -> str:
    """True, False or Unknown; empty for a node that never reported."""
    ready = find_condition(node, READY)
    return ready.status if ready is not None else ""


def compute_silent_from_s(node: Node, heard_s: float, patience: NodeGracePeriods) -> float:
    """When a node that was last heard of at `heard_s` counts as silent."""
    has_reported = find_condition(node, READY) is not None
    return heard_s + (patience.grace_s if has_reported else patience.startup_grace_s)


def build_silent_conditions(node: Node, now: datetime) -> list[dict[str, Any]]:
    """The conditions to write for a silent node: the relevant ones that are not Unknown yet."""
    created = node.metadata.creation_timestamp or now
    conditions: list[dict[str, Any]] = []
    for type_ in _REPORTED:
        known = find_condition(node, type_)
        if known is None:
            conditions.append(
                {
                    "type": type_,
                    "status": "Unknown",
                    "reason": NEVER_REPORTED,
                    "message": "Kubelet never posted node status.",
                    "lastHeartbeatTime": format_time(created),
                    "lastTransitionTime": format_time(now),
                }
            )
        elif known.status != "Unknown":
            conditions.append(
                {
                    "type": type_,
                    "status": "Unknown",
                    "reason": STOPPED_REPORTING,
                    "message": "Kubelet stopped posting node status.",
                    "lastTransitionTime": format_time(now),
                }
            )
    return conditions


def is_silent(node: Node) -> bool:
    """Whether its conditions show that it stopped reporting."""
    ready = find_condition(node, READY)
    return ready is not None and ready.status == "Unknown" and ready.reason == STOPPED_REPORTING


def list_unschedulable_keys(node: Node) -> list[str]:
    """The taints that keep new pods away, as its conditions and its cordon ask for."""
    keys = (_TAINT_OF.get((node_condition.type, node_condition.status)) for node_condition in node.status.conditions)
    cordon = [_UNSCHEDULABLE] if node.spec.unschedulable else []
    return [*(key for key in keys if key is not None), *cordon]


def choose_evicting_key(node: Node) -> str:
    """The NoExecute taint of the node; empty if it is ready or never reported."""
    return _TAINT_OF.get((READY, get_readiness(node)), "")


def find_evicting_key(node: Node) -> str:
    """The one it has."""
    found = (taint.key for taint in node.spec.taints if taint.effect == NO_EXECUTE and taint.key in _OURS[NO_EXECUTE])
    return next(found, "")


def set_taints(taints: tuple[Taint, ...], keys: Iterable[str], effect: str, now: datetime) -> tuple[Taint, ...]:
    """`taints` with exactly `keys` of those that the controller keeps at this effect; others stay where they are."""
    wanted = dict.fromkeys(keys)
    present = {taint.key for taint in taints if taint.effect == effect}
    added = (Taint(key=key, effect=effect, time_added=now) for key in wanted if key not in present)
    kept = (
        taint for taint in taints if taint.effect != effect or taint.key not in _OURS[effect] or taint.key in wanted
    )
    return (*kept, *added)


def encode_taints(taints: tuple[Taint, ...]) -> list[dict[str, Any]] | None:
    """As they stand in a patch; None takes the field away."""
    bodies = [
        {
            "key": taint.key,
            **({"value": taint.value} if taint.value else {}),
            "effect": taint.effect,
            **({"timeAdded": format_time(taint.time_added)} if taint.time_added is not None else {}),
        }
        for taint in taints
    ]
    return bodies or None


def find_missing_metadata(node: Node, cluster_size: int) -> dict[str, dict[str, str]]:
    """The labels of older names, and how long kubelets may cache: what every node gets. Empty if it is all there."""
    labels = node.metadata.labels
    old_labels = {old: labels[new] for old, new in OLD_SYSTEM_LABELS.items() if new in labels}
    copied = {old: value for old, value in old_labels.items() if labels.get(old) != value}
    body: dict[str, dict[str, str]] = {"labels": copied} if copied else {}
    if _TTL not in node.metadata.annotations:
        ttl_s = next((seconds for size, seconds in _TTL_SECONDS if cluster_size <= size), _LONGEST_TTL_S)
        body["annotations"] = {_TTL: str(ttl_s)}
    return body
