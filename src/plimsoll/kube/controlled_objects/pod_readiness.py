"""Whether a pod is active, ready and available, as workload controllers count it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.durations import add_seconds
from plimsoll.kube.informer.events import Updated
from plimsoll.objects.api.pods import is_pod_ready

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.kube.informer.events import Change
    from plimsoll.objects.api.pods import Pod, PodCondition

_ENDED: Final = frozenset({"Succeeded", "Failed"})


def is_active(pod: Pod) -> bool:
    """Neither ended nor terminating. The state of its node does not matter: pod garbage collection handles it."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in _ENDED


def has_ended(pod: Pod) -> bool:
    return pod.status.phase in _ENDED


def select_active_pods(pods: Iterable[Pod]) -> list[Pod]:
    """The active pods. Inlined, because every reconciliation of a set checks all its pods."""
    return [pod for pod in pods if pod.metadata.deletion_timestamp is None and pod.status.phase not in _ENDED]


def find_ready_condition(pod: Pod) -> PodCondition | None:
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition
    return None


def get_ready_since(pod: Pod) -> datetime | None:
    """Since when the pod has been ready; None if it is not, or the time is unknown."""
    condition = find_ready_condition(pod)
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def is_available(pod: Pod, *, min_ready_s: int, now: datetime) -> bool:
    """Ready for as long as its owner asks."""
    if min_ready_s == 0:
        return is_pod_ready(pod)
    since = get_ready_since(pod)
    return since is not None and add_seconds(since, min_ready_s) <= now


def compute_next_availability_s(pods: Iterable[Pod], *, min_ready_s: int, now: datetime) -> float | None:
    """In how many seconds the next pod that is ready becomes available; None if there is none to wait for."""
    if min_ready_s == 0:
        return None
    since = [since for pod in pods if (since := get_ready_since(pod)) is not None]
    waits = [(add_seconds(item, min_ready_s) - now).total_seconds() for item in since]
    return min((wait for wait in waits if wait > 0), default=None)


def is_more_than_status(change: Change[Pod]) -> bool:
    """Whether a change may call for other pods; otherwise only counts of ready and available ones may differ."""
    if not isinstance(change, Updated):
        return True
    old, new = change.old, change.new
    return (
        is_active(old) != is_active(new)
        or old.metadata.labels != new.metadata.labels
        or old.metadata.owner_references != new.metadata.owner_references
    )
