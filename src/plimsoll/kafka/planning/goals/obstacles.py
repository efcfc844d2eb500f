"""What keeps a broker outside the limits of a goal: the changes that could help it, counted by what forbids them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.kafka.planning.placement import TOLERANCE
from plimsoll.kafka.planning.scope import BrokerRole
from plimsoll.kafka.planning.search.metric_search import list_able_to_lead

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import Flags, Floats, Ints
    from plimsoll.kafka.planning.placement import Limits, Placement, TopicLimits

_EXAMINED_AT_MOST: Final = 2000
"""Changes of one kind that are examined for a reason."""
_NO_HOST: Final = "would find no broker that may take the replica"
_NOT_THERE: Final = "may not be there beside other replicas of the partition"
_NO_ROOM: Final = "would take another broker outside"
_LITTLE: Final = "would change too little"


@dataclass(frozen=True, slots=True, kw_only=True)
class HigherGoals:
    """The limits of the goals with a higher priority, by goal."""

    limits: tuple[tuple[str, Limits], ...] = ()
    topics: tuple[str, TopicLimits] | None = None


def explain_outside(
    placement: Placement, limits: Limits, higher: HigherGoals, *, broker: int, movable: Flags, may_move: bool
) -> tuple[Reason, ...]:
    """Why a broker stays outside: how many changes could help it, and what forbids them."""
    is_above = bool(limits.measure_excess(placement.load)[broker] > 0)
    obstacles = _Obstacles(placement, (*higher.limits, ("", limits)), higher.topics, movable)
    reasons = []
    if may_move:
        rows = _list_moves(placement, broker, is_above=is_above)
        rows = rows[placement.weigh(rows)[limits.metric] > 0.0]
        reasons.append(obstacles.count_moves(rows, broker, is_above=is_above))
    if placement.loads.of_leadership[limits.metric].any():
        reasons.append(obstacles.count_leader_changes(broker, is_above=is_above))
    return tuple(reasons)


def explain_topic_outside(
    placement: Placement, limits: TopicLimits, higher: HigherGoals, *, movable: Flags, topic: int, broker: int
) -> tuple[Reason, ...]:
    """Why a broker keeps too many or too few replicas of a topic."""
    is_above = bool(placement.topic_counts[topic, broker] > limits.high[topic])
    rows = _list_moves(placement, broker, is_above=is_above)
    rows = rows[placement.model.topic_of[placement.model.partition_of[rows]] == topic]
    obstacles = _Obstacles(placement, higher.limits, ("", limits), movable)
    return (obstacles.count_moves(rows, broker, is_above=is_above),)


def _list_moves(placement: Placement, broker: int, *, is_above: bool) -> Ints:
    """The replicas that could leave a broker, or come to it. To one that gets none, its own could return."""
    if is_above:
        return np.flatnonzero(placement.broker_of == broker)
    if placement.scope.may_receive[broker]:
        return np.flatnonzero(placement.broker_of != broker)
    return np.flatnonzero((placement.model.broker_of == broker) & placement.moved)


@dataclass(frozen=True, slots=True)
class _Obstacles:
    """What binds the changes for a goal: higher goals by name, and the goal itself without one."""

    placement: Placement
    limits: tuple[tuple[str, Limits], ...]
    topics: tuple[str, TopicLimits] | None
    movable: Flags
    """[N]: the replicas that the goal may move."""

    def count_moves(self, rows: Ints, broker: int, *, is_above: bool) -> Reason:
        scope = self.placement.scope
        identifier = int(self.placement.model.broker_ids[broker])
        what = f"move off broker {identifier}" if is_above else f"move to broker {identifier}"
        if not is_above and not scope.may_receive[broker]:
            what = f"return to broker {identifier}, which mode {scope.mode.value} moves nothing else to,"
        examined = rows[:_EXAMINED_AT_MOST]
        counts = self._judge_moves(examined, None if is_above else broker) if len(rows) else Counter()
        return _describe("NoAcceptedMove", what, counts, total=len(rows))

    def _judge_moves(self, rows: Ints, destination: int | None) -> Counter[str]:
        placement = self.placement
        brokers = np.arange(placement.load.shape[1])
        causes = _CauseCounts(len(rows))
        causes.forbid(_forbid_mode(placement), ~self.movable[rows])
        source, original = placement.broker_of[rows], placement.model.broker_of[rows]
        if destination is not None and not placement.scope.may_receive[destination]:
            partitions = placement.model.partition_of[rows]
            took_over = (placement.leading[partitions] == rows) & (placement.model.leader[partitions] != original)
            causes.forbid("would lead there, and did not before", took_over)
        returns = placement.list_returnable(rows) & (original != source)
        hosts = placement.list_legal(rows) | (returns[:, None] & (original[:, None] == brokers))
        if destination is not None:
            hosts &= brokers == destination
        causes.forbid(_NO_HOST if destination is None else _NOT_THERE, ~hosts.any(axis=1))
        weights = placement.weigh(rows)
        is_leaving = placement.scope.role[source] == BrokerRole.LEAVING
        for goal, limits in self.limits:
            weight = weights[limits.metric]
            hosts &= _accepts(limits, placement.load, brokers[None, :], weight[:, None])
            may_leave = is_leaving | _accepts(limits, placement.load, source, -weight)
            causes.forbid(_name(goal), ~(hosts.any(axis=1) & may_leave))
        if self.topics is not None:
            goal, topic_limits = self.topics
            topics = placement.model.topic_of[placement.model.partition_of[rows]]
            hosts &= placement.topic_counts[topics] < topic_limits.high[topics][:, None]
            may_leave = is_leaving | (placement.topic_counts[topics, source] > topic_limits.low[topics])
            causes.forbid(_name(goal), ~(hosts.any(axis=1) & may_leave))
        return causes.close()

    def count_leader_changes(self, broker: int, *, is_above: bool) -> Reason:
        placement = self.placement
        partition_of, scope = placement.model.partition_of, placement.scope
        leads = placement.leading[partition_of] == np.arange(len(partition_of))
        where = placement.leader[partition_of] if is_above else placement.broker_of
        rows = np.flatnonzero((where == broker) & ~leads & (placement.leading[partition_of] >= 0))
        total, rows = len(rows), rows[:_EXAMINED_AT_MOST]
        partitions, destination = partition_of[rows], placement.broker_of[rows]
        causes = _CauseCounts(len(rows))
        may_lead = scope.may_lead[destination] & scope.leadership_is_movable[partitions]
        causes.forbid(_forbid_mode(placement), ~may_lead)
        causes.forbid("would need a replica that is not in sync", ~list_able_to_lead(placement, rows))
        weights = placement.loads.of_leadership[:, partitions]
        for goal, limits in self.limits:
            accepted = _accepts(limits, placement.load, destination, weights[limits.metric])
            accepted &= _accepts(limits, placement.load, placement.leader[partitions], -weights[limits.metric])
            causes.forbid(_name(goal), ~accepted)
        direction = "away from" if is_above else "to"
        what = f"change of leader {direction} broker {int(placement.model.broker_ids[broker])}"
        return _describe("NoAcceptedLeaderChange", what, causes.close(), total=total)


class _CauseCounts:
    """Changes [C], each counted under the first thing that forbids it."""

    def __init__(self, changes: int) -> None:
        self._is_open = np.ones(changes, dtype=np.bool_)
        self.counts: Counter[str] = Counter()

    def forbid(self, cause: str, forbidden: Flags) -> None:
        """Count what is forbidden and was not so far."""
        if count := int((self._is_open & forbidden).sum()):
            self.counts[cause] += count
        self._is_open &= ~forbidden

    def close(self) -> Counter[str]:
        """The counts. What nothing forbids was tried, and was not worth it."""
        if count := int(self._is_open.sum()):
            self.counts[_LITTLE] += count
        return self.counts


def _accepts(limits: Limits, load: Floats, brokers: Ints, change: Floats) -> Flags:
    after = load[limits.metric, brokers] + change
    slack = TOLERANCE * np.maximum(np.abs(after), 1.0)
    accepted: Flags = ((change <= slack) | (after <= limits.high[brokers] + slack)) & (
        (change >= -slack) | (after >= limits.low[brokers] - slack)
    )
    return accepted


def _forbid_mode(placement: Placement) -> str:
    return f"would not be allowed in mode {placement.scope.mode.value}"


def _name(goal: str) -> str:
    return f"would violate {goal}" if goal else _NO_ROOM


def _describe(code: str, what: str, counts: Counter[str], *, total: int) -> Reason:
    examined = counts.total()
    facts = {"changes": total, "examined": examined, "forbidden": dict(counts)}
    if not total:
        return Reason(code=code, message=f"no {what} is possible", facts=facts)
    if len(counts) == 1:
        parts = f"{'the only one' if examined == 1 else f'each of {examined}'} {next(iter(counts))}"
    else:
        parts = f"of {examined}, {', '.join(f'{count} {cause}' for cause, count in counts.items())}"
    rest = f" ({total - examined} more were not examined)" if total > examined else ""
    return Reason(code=code, message=f"no {what} is accepted: {parts}{rest}", facts=facts)
