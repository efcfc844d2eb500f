"""Priorities of pods: resolution, the expendable cutoff, and the order in which pods are placed.

Data and comparisons only; `preemption` chooses victims.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.objects.api.pods import Pod

EXPENDABLE_BELOW: Final = -10
SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

_NEVER: Final = "Never"
_FAR_AHEAD: Final = datetime.max.replace(tzinfo=UTC)


def get_priority(pod: Pod) -> int:
    """The priority of a pod; 0 if admission set none."""
    return 0 if pod.spec.priority is None else pod.spec.priority


def resolve_priority(pod: Pod, classes: Mapping[str, int], *, default: int = 0) -> int | None:
    """The priority admission would give: its own, its class's, or the default; None for an unknown class."""
    if pod.spec.priority is not None:
        return pod.spec.priority
    name = pod.spec.priority_class_name
    return default if not name else classes.get(name, SYSTEM_PRIORITIES.get(name))


def is_expendable(pod: Pod, *, below: int = EXPENDABLE_BELOW) -> bool:
    """Expendable pods cause no scale-up and hold no node. A pod without a priority is not one of them."""
    return pod.spec.priority is not None and pod.spec.priority < below


def may_preempt(pod: Pod) -> bool:
    return pod.spec.preemption_policy != _NEVER


def outranks(pod: Pod, other: Pod) -> bool:
    """Whether `pod` may take `other`'s place, going by priority alone."""
    return get_priority(pod) > get_priority(other)


def sort_by_importance(pods: Iterable[Pod]) -> list[Pod]:
    """Most important first: by priority, then by how long a pod has been running. Victims are spared in this order."""
    return sorted(pods, key=_get_importance_key)


def _get_importance_key(pod: Pod) -> tuple[int, datetime, str, str]:
    meta = pod.metadata
    return (-get_priority(pod), pod.status.start_time or _FAR_AHEAD, meta.namespace, meta.name)
