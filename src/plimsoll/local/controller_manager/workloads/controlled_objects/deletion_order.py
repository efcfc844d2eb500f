"""The order in which surplus pods are deleted: the least costly first. Pure.

The order is Kubernetes': unassigned before assigned, pending before unknown before running, not ready before ready,
lower deletion cost, on nodes with more pods of the same owner, ready for a shorter time, restarted more often, younger.
Times are compared by their order of magnitude, so that not always the newest is deleted.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cmp_to_key
from typing import TYPE_CHECKING, Final

from plimsoll.kube.controlled_objects.pod_readiness import get_ready_since, is_active
from plimsoll.objects.api.pods import is_pod_ready

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from plimsoll.objects.api.pods import ContainerStatus, Pod

_Rank = tuple[bool, int, bool, int, int]

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_NO_AGE: Final = -2
_INT32: Final = range(-(2**31), 2**31)


def choose_pods_to_delete(pods: Sequence[Pod], count: int, *, related: Iterable[Pod], now: datetime) -> tuple[Pod, ...]:
    """The `count` pods to delete. `related` are the pods to spread over nodes: those of all sets of the same owner."""
    if count >= len(pods):
        return tuple(pods)
    crowds = Counter(pod.spec.node_name for pod in related if is_active(pod) and pod.spec.node_name)

    ranked = [_Candidate(pod, _rank(pod, crowds), now=now) for pod in pods]
    return tuple(candidate.pod for candidate in sorted(ranked, key=cmp_to_key(_compare))[:count])


class _Candidate:
    """What is compared of a pod, read once: it is compared with many."""

    __slots__ = ("made", "made_magnitude", "pod", "rank", "ready_magnitude", "restarts", "since", "uid")

    def __init__(self, pod: Pod, rank: _Rank, *, now: datetime) -> None:
        self.pod = pod
        self.rank = rank
        self.uid = pod.metadata.uid
        self.since = get_ready_since(pod)
        self.ready_magnitude = _compute_magnitude(self.since, now)
        self.restarts = (-_count_restarts(pod), -_count_sidecar_restarts(pod))
        self.made = pod.metadata.creation_timestamp
        self.made_magnitude = _compute_magnitude(self.made, now)


def _compare(candidate: _Candidate, other: _Candidate) -> int:
    """Below 0: `one` goes first."""
    if candidate.rank != other.rank:
        return -1 if candidate.rank < other.rank else 1
    # Both are ready or neither is: that belongs to their rank.
    if candidate.since != other.since:
        return candidate.ready_magnitude - other.ready_magnitude or _compare_uids(candidate, other)
    if candidate.restarts != other.restarts:
        return -1 if candidate.restarts < other.restarts else 1
    if candidate.made != other.made:
        return candidate.made_magnitude - other.made_magnitude or _compare_uids(candidate, other)
    return _compare_uids(candidate, other)


def read_deletion_cost(pod: Pod) -> int:
    """The value of the annotation, if it is a number in Kubernetes' format."""
    text = pod.metadata.annotations.get(DELETION_COST, "")
    digits = text[1:] if text[:1] == "-" else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10 or (digits != "0" and digits[0] == "0"):
        return 0
    return int(text) if int(text) in _INT32 else 0


def _rank(pod: Pod, crowds: Counter[str]) -> _Rank:
    """What counts first; the lowest goes first."""
    name = pod.spec.node_name
    return (bool(name), _PHASES.get(pod.status.phase, 0), is_pod_ready(pod), read_deletion_cost(pod), -crowds[name])


def _compute_magnitude(time: datetime | None, now: datetime) -> int:
    """The order of magnitude of an age, below 0 at its beginning. No time counts as the youngest."""
    if time is None:
        return _NO_AGE
    age_ns = int((now - time).total_seconds() * 1e9)
    return int(math.log2(age_ns)) if age_ns > 0 else -1


def _count_restarts(pod: Pod) -> int:
    return _find_most_restarts(pod.status.container_statuses)


def _count_sidecar_restarts(pod: Pod) -> int:
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    return _find_most_restarts(
        container_status for container_status in pod.status.init_container_statuses if container_status.name in sidecars
    )


def _find_most_restarts(statuses: Iterable[ContainerStatus]) -> int:
    return max((container_status.restart_count for container_status in statuses), default=0)


def _compare_uids(candidate: _Candidate, other: _Candidate) -> int:
    """As good as chance."""
    return (candidate.uid > other.uid) - (candidate.uid < other.uid)
