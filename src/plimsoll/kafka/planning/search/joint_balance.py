"""Replica counts and bytes at once, by the solver's kernel: also evacuates leaving brokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.loads import Metric
from plimsoll.kafka.planning.scope import BrokerRole
from plimsoll.solver.replicas.balance import balance
from plimsoll.solver.replicas.problem import UNLIMITED, BrokerRange, ReplicaProblem

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import Flags, Floats, Ints
    from plimsoll.kafka.planning.placement import Limits, Placement
    from plimsoll.solver.replicas.problem import ReplicaSolution

_NO_WINDOW: Final = 1e6
_EQUAL: Final = 1e-3
"""Capacities that differ by less are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointWindows:
    """What the goals of a request ask of counts and bytes; None: no goal asks."""

    count: float | None
    bytes: float | None
    disk: Limits | None
    """The hard limit of bytes per broker."""
    replicas: Limits | None
    """The hard limit of replicas per broker."""
    topic_caps: Ints | None
    """[T]: the upper limit of a topic's replicas per broker."""
    count_limits: Limits | None = None
    """The limits of the goal of replicas. They are around one mean, and windows around that of each rack."""
    byte_limits: Limits | None = None


def balance_jointly(placement: Placement, windows: JointWindows, *, relief: bool) -> ReplicaSolution:
    """Balance, and put all replicas where the solution has them."""
    solution = balance(_build_problem(placement, windows, relief=relief))
    placement.assign(solution.broker_of)
    return solution


def _build_problem(placement: Placement, windows: JointWindows, *, relief: bool) -> ReplicaProblem:
    model, scope = placement.model, placement.scope
    topics = len(model.topics)
    disk_is_equal = _is_equal(placement.loads.capacity[Metric.DISK], scope.is_balanced)
    byte_window = windows.bytes if windows.bytes is not None and disk_is_equal else _NO_WINDOW
    may_give, may_receive, movable = _list_permissions(placement, relief=relief)
    return ReplicaProblem(
        size=placement.loads.of_replica[Metric.DISK],
        offsets=model.offsets,
        broker_of=placement.broker_of.copy(),
        rack_of=model.rack_of,
        state=scope.role.copy(),
        movable=movable,
        may_give=may_give,
        may_receive=may_receive,
        weight=_weigh_brokers(placement),
        max_replicas=_get_high(windows.replicas, len(model.brokers)).astype(np.int64),
        max_bytes=_get_high(windows.disk, len(model.brokers)),
        topic_of=model.topic_of,
        topic_cap=np.full(topics, UNLIMITED, dtype=np.int64) if windows.topic_caps is None else windows.topic_caps,
        count_window=_NO_WINDOW if windows.count is None else windows.count,
        byte_window=byte_window,
        count_limits=_get_range(windows.count_limits),
        byte_limits=_get_range(windows.byte_limits),
        relief=relief,
        is_rack_aware=True,
    )


def _list_permissions(placement: Placement, *, relief: bool) -> tuple[Flags, Flags, Flags]:
    """Which brokers give, which receive, which replicas move. Relief opens the brokers that stay for a few moves."""
    scope = placement.scope
    if scope.mode is Mode.REMOVE_BROKERS and not relief:
        return scope.role == BrokerRole.LEAVING, scope.may_receive, scope.is_movable
    if relief:
        return scope.is_balanced, scope.may_relieve, scope.is_repairable
    return scope.is_balanced, scope.may_receive, scope.is_movable


def _weigh_brokers(placement: Placement) -> Floats:
    """Equal weights. A broker that is not balanced weighs as much as it has, so that the others' mean is theirs."""
    scope = placement.scope
    counts = placement.load[Metric.REPLICAS]
    weight = scope.is_balanced.astype(np.float64)
    leaves = scope.role == BrokerRole.LEAVING
    theirs = counts[scope.is_balanced | leaves].sum()
    if theirs > 0:
        rest = ~scope.is_balanced & ~leaves
        weight[rest] = counts[rest] * weight.sum() / theirs
    return weight


def _is_equal(capacity: Floats, among: Flags) -> bool:
    known = capacity[among & np.isfinite(capacity)]
    return not len(known) or float(known.max()) <= float(known.min()) * (1 + _EQUAL)


def _get_range(limits: Limits | None) -> BrokerRange | None:
    return None if limits is None else BrokerRange(limits.low, limits.high)


def _get_high(limits: Limits | None, brokers: int) -> Floats:
    if limits is None:
        return np.full(brokers, float(UNLIMITED))
    return np.minimum(np.floor(limits.high), float(UNLIMITED))
