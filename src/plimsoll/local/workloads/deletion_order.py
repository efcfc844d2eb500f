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
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from plimsoll.objects.pods import ContainerStatus, Pod

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_INT32: Final = range(-(2**31), 2**31)


def pods_to_delete(pods: Sequence[Pod], count: int, *, related: Iterable[Pod], now: datetime) -> tuple[Pod, ...]:
    """The `count` pods to give up. `related` are the pods that should be spread: those of all siblings of the owner."""
    if count >= len(pods):
        return tuple(pods)
    crowds = Counter(pod.spec.node_name for pod in related if is_active(pod) and pod.spec.node_name)

    def compared(one: Pod, other: Pod) -> int:
        return _compared(one, other, crowds, now)

    return tuple(sorted(pods, key=cmp_to_key(compared))[:count])


def deletion_cost(pod: Pod) -> int:
    """What the annotation says, where it is a number as Kubernetes writes one."""
    text = pod.metadata.annotations.get(DELETION_COST, "")
    digits = text[1:] if text[:1] == "-" else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10 or (digits != "0" and digits[0] == "0"):
        return 0
    return int(text) if int(text) in _INT32 else 0


def _compared(one: Pod, other: Pod, crowds: Counter[str], now: datetime) -> int:
    """Below 0: `one` goes first."""
    for rank in (_is_placed, _phase, is_ready, deletion_cost):
        if difference := _difference(rank, one, other):
            return difference
    if difference := crowds[other.spec.node_name] - crowds[one.spec.node_name]:
        return difference
    if is_ready(one):
        # Both are: they would differ above.
        since, other_since = ready_since(one), ready_since(other)
        if since != other_since:
            return _younger_first(one, other, times=(since, other_since), now=now)
    for restarts in (_restarts, _sidecar_restarts):
        if difference := _difference(restarts, other, one):
            return difference
    made, other_made = one.metadata.creation_timestamp, other.metadata.creation_timestamp
    if made != other_made:
        return _younger_first(one, other, times=(made, other_made), now=now)
    return _by_uid(one, other)


def _difference(rank: Callable[[Pod], int], one: Pod, other: Pod) -> int:
    return rank(one) - rank(other)


def _is_placed(pod: Pod) -> bool:
    return bool(pod.spec.node_name)


def _phase(pod: Pod) -> int:
    return _PHASES.get(pod.status.phase, 0)


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
