"""Which pods go first when there are too many: those whose loss hurts least. Pure.

The order is Kubernetes': without a node before placed, pending before unknown before running, not ready before ready,
cheaper by annotation, on nodes with more pods of the same owner, ready for a shorter time, restarted more often,
younger. Times are compared by their order of magnitude, so that not always the newest goes.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cmp_to_key
from typing import TYPE_CHECKING, Final

from plimsoll.local.workloads.pod_readiness import is_active, is_ready, ready_since

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from plimsoll.objects.pods import ContainerStatus, Pod

_Rank = tuple[bool, int, bool, int, int]

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_INT32: Final = range(-(2**31), 2**31)


def pods_to_delete(pods: Sequence[Pod], count: int, *, related: Iterable[Pod], now: datetime) -> tuple[Pod, ...]:
    """The `count` pods to give up. `related` are the pods that should be spread: those of all siblings of the owner."""
    if count >= len(pods):
        return tuple(pods)
    crowds = Counter(pod.spec.node_name for pod in related if is_active(pod) and pod.spec.node_name)

    ranked = [(_rank(pod, crowds), pod) for pod in pods]

    def compared(one: tuple[_Rank, Pod], other: tuple[_Rank, Pod]) -> int:
        if one[0] != other[0]:
            return -1 if one[0] < other[0] else 1
        return _compared_in_rank(one[1], other[1], now)

    return tuple(pod for _, pod in sorted(ranked, key=cmp_to_key(compared))[:count])


def deletion_cost(pod: Pod) -> int:
    """What the annotation says, where it is a number as Kubernetes writes one."""
    text = pod.metadata.annotations.get(DELETION_COST, "")
    digits = text[1:] if text[:1] == "-" else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10 or (digits != "0" and digits[0] == "0"):
        return 0
    return int(text) if int(text) in _INT32 else 0


def _rank(pod: Pod, crowds: Counter[str]) -> _Rank:
    """What counts first; the lowest goes first."""
    name = pod.spec.node_name
    return (bool(name), _PHASES.get(pod.status.phase, 0), is_ready(pod), deletion_cost(pod), -crowds[name])


def _compared_in_rank(one: Pod, other: Pod, now: datetime) -> int:
    """Below 0: `one` goes first, of two that do not differ by rank."""
    if is_ready(one):
        # Both are: that belongs to their rank.
        since, other_since = ready_since(one), ready_since(other)
        if since != other_since:
            return _younger_first(one, other, times=(since, other_since), now=now)
    for restarts in (_restarts, _sidecar_restarts):
        if difference := restarts(other) - restarts(one):
            return difference
    made, other_made = one.metadata.creation_timestamp, other.metadata.creation_timestamp
    if made != other_made:
        return _younger_first(one, other, times=(made, other_made), now=now)
    return _by_uid(one, other)


def _younger_first(one: Pod, other: Pod, *, times: tuple[datetime | None, datetime | None], now: datetime) -> int:
    """No time counts as younger than any. Of the same order of magnitude: by uid, which is as good as chance."""
    if times[0] is None or times[1] is None:
        return -1 if times[0] is None else 1
    return _magnitude(times[0], now) - _magnitude(times[1], now) or _by_uid(one, other)


def _magnitude(time: datetime, now: datetime) -> int:
    age_ns = int((now - time).total_seconds() * 1e9)
    return int(math.log2(age_ns)) if age_ns > 0 else -1


def _restarts(pod: Pod) -> int:
    return _most(pod.status.container_statuses)


def _sidecar_restarts(pod: Pod) -> int:
    sidecars = {one.name for one in pod.spec.init_containers if one.restart_policy == "Always"}
    return _most(one for one in pod.status.init_container_statuses if one.name in sidecars)


def _most(statuses: Iterable[ContainerStatus]) -> int:
    return max((one.restart_count for one in statuses), default=0)


def _by_uid(one: Pod, other: Pod) -> int:
    return (one.metadata.uid > other.metadata.uid) - (one.metadata.uid < other.metadata.uid)
