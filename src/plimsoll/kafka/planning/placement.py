"""Where replicas and leaders are while the analyzer works, with the load of every broker kept up to date."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from plimsoll.kafka.model.cluster import NONE
from plimsoll.kafka.planning.loads import Metric
from plimsoll.kafka.planning.scope import BrokerRole

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import ClusterModel, Flags, Floats, Ints
    from plimsoll.kafka.planning.loads import Loads
    from plimsoll.kafka.planning.scope import Scope

TOLERANCE: Final = 1e-9
"""The relative slack of comparisons of sums."""


class RackRule(Enum):
    """Where a replica may move, given the racks of the others of its partition."""

    ONE_PER_RACK = auto()
    EVEN = auto()
    """Only into a rack that holds the fewest of the others."""
    NOT_WORSE = auto()
    """Only into a rack that holds no more of the others than its own one."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The range of a metric per broker. A broker inside may not leave it, a broker outside may not get worse."""

    metric: Metric
    low: Floats
    """[B]."""
    high: Floats
    """[B]."""
    is_hard: bool = False

    def measure_excess(self, load: Floats) -> Floats:
        """[B]: how far each broker is above (positive) or below (negative) its range."""
        values = load[self.metric]
        slack = TOLERANCE * np.maximum(np.abs(values), 1.0)
        above = values - self.high
        below = values - self.low
        excess: Floats = np.where(above > slack, above, np.where(below < -slack, below, 0.0))
        return excess

    def find_worst(self, load: Floats) -> int:
        """The broker that is farthest outside."""
        return int(np.abs(self.measure_excess(load)).argmax())


@dataclass(frozen=True, slots=True)
class TopicLimits:
    """The range of replicas of a topic per broker."""

    low: Ints
    """[T]."""
    high: Ints
    """[T]."""


class SavedPlacement(NamedTuple):
    """A copy of where replicas and leaders are, and of the goals that moved them."""

    broker_of: Ints
    leading: Ints
    cause: Ints


class Placement:
    """A mutable assignment of N replicas (rows) to B brokers."""

    def __init__(self, model: ClusterModel, loads: Loads, scope: Scope) -> None:
        self.model: Final = model
        self.loads: Final = loads
        self.scope: Final = scope
        self.broker_of: Final = model.broker_of.copy()
        self.rows: Final = _list_rows(model)
        """[P, largest replication factor]: the rows of each partition, NONE beyond its replication factor."""
        self.leading: Final = _find_leading_rows(model, self.rows)
        """[P]: the row that leads, or NONE."""
        self.cause: Final = np.full(model.partition_count, NONE, dtype=np.int64)
        """[P]: the index of the goal that changed the partition last."""
        self.goal = 0
        """The index of the goal at work."""
        self.version = 0
        """The number of changes so far."""
        self.rack_rule = RackRule.NOT_WORSE
        self.accepted: list[Limits] = []
        """The limits of the goals already optimized."""
        self.topic_limits: TopicLimits | None = None
        self.load: Floats = np.zeros((len(Metric), len(model.brokers)))
        """[M, B]."""
        self.recount()

    @cached_property
    def topic_counts(self) -> Ints:
        """[T, B]: replicas of each topic per broker."""
        return self._count_topics()

    @property
    def leader(self) -> Ints:
        """[P]: the broker that leads, or NONE."""
        led: Ints = np.where(self.leading >= 0, self.broker_of[self.leading], NONE)
        return led

    @property
    def moved(self) -> Flags:
        """[N]: the replicas that are elsewhere than in the model."""
        flags: Flags = self.broker_of != self.model.broker_of
        return flags

    def recount(self) -> None:
        """Sum the load of every broker anew: after many moves at once, and against the drift of sums."""
        loads = self.loads
        brokers = len(self.model.brokers)
        led = np.flatnonzero(self.leading >= 0)
        leaders = self.broker_of[self.leading[led]]
        for metric in Metric:
            weights = loads.of_replica[metric]
            total = np.zeros(brokers)
            if weights.any():
                total += np.bincount(self.broker_of, weights[self.model.partition_of], minlength=brokers)
            if (extra := loads.of_leadership[metric]).any():
                total += np.bincount(leaders, extra[led], minlength=brokers)
            self.load[metric] = total
        if "topic_counts" in self.__dict__:
            self.__dict__["topic_counts"] = self._count_topics()

    def _count_topics(self) -> Ints:
        model = self.model
        brokers = len(model.brokers)
        keys = model.topic_of[model.partition_of] * brokers + self.broker_of
        counts = np.bincount(keys, minlength=len(model.topics) * brokers)
        return counts.reshape(len(model.topics), brokers).astype(np.int64)

    def weigh(self, rows: Ints) -> Floats:
        """[M, C]: the weights of replicas, with the leadership of those that lead."""
        partitions = self.model.partition_of[rows]
        leads = self.leading[partitions] == rows
        weights: Floats = self.loads.of_replica[:, partitions] + self.loads.of_leadership[:, partitions] * leads
        return weights

    def assign(self, broker_of: Ints) -> None:
        """Put all replicas where `broker_of` says."""
        broker_of = self._keep_replicas_in_place(broker_of)
        changed = np.unique(self.model.partition_of[self.broker_of != broker_of])
        self.broker_of[:] = broker_of
        self.cause[changed] = self.goal
        self.version += 1
        self.recount()

    def save(self) -> SavedPlacement:
        """What `restore` needs."""
        return SavedPlacement(self.broker_of.copy(), self.leading.copy(), self.cause.copy())

    def restore(self, saved: SavedPlacement) -> None:
        """Undo everything since `save`."""
        self.broker_of[:] = saved.broker_of
        self.leading[:] = saved.leading
        self.cause[:] = saved.cause
        self.version += 1
        self.recount()

    def _keep_replicas_in_place(self, broker_of: Ints) -> Ints:
        """The same brokers per partition, with a replica that is there already on its own row.

        If one replica moves to where another one leaves, only the other one's new place is a move.
        """
        broker_of = broker_of.copy()
        moved = np.unique(self.model.partition_of[broker_of != self.model.broker_of])
        rows = self.rows[moved]
        for _ in range(rows.shape[1]):
            for first in range(rows.shape[1]):
                for second in range(rows.shape[1]):
                    here, there = rows[:, first], rows[:, second]
                    crossed = (here >= 0) & (there >= 0) & (here != there)
                    crossed &= broker_of[here] == self.model.broker_of[there]
                    here, there = here[crossed], there[crossed]
                    broker_of[here], broker_of[there] = broker_of[there], broker_of[here]
        return broker_of

    def move(self, row: int, destination: int) -> None:
        """Move a replica; its leadership moves with it."""
        partition = self.model.partition_of[row]
        source = self.broker_of[row]
        weights = self.loads.of_replica[:, partition]
        if self.leading[partition] == row:
            weights = weights + self.loads.of_leadership[:, partition]
        self.load[:, source] -= weights
        self.load[:, destination] += weights
        self.broker_of[row] = destination
        self.cause[partition] = self.goal
        self.version += 1
        if "topic_counts" in self.__dict__:
            topic = self.model.topic_of[partition]
            self.topic_counts[topic, source] -= 1
            self.topic_counts[topic, destination] += 1

    def lead(self, row: int) -> None:
        """Make a replica the leader of its partition."""
        partition = self.model.partition_of[row]
        weights = self.loads.of_leadership[:, partition]
        if (before := self.leading[partition]) >= 0:
            self.load[:, self.broker_of[before]] -= weights
        self.load[:, self.broker_of[row]] += weights
        self.leading[partition] = row
        self.cause[partition] = self.goal
        self.version += 1

    def list_legal(self, rows: Ints) -> Flags:
        """[C, B]: whether a replica may move to a broker, by its partition's other replicas and their racks."""
        scope, brokers = self.scope, len(self.model.brokers)
        others = self._list_others(rows, self.broker_of)
        candidates = np.arange(len(rows))[:, None]
        holds = np.zeros((len(rows), brokers + 1), dtype=np.bool_)
        holds[candidates, others] = True
        # Also not to where another replica was: that one had better stayed.
        holds[candidates, self._list_others(rows, self.model.broker_of)] = True
        holds[np.arange(len(rows)), self.broker_of[rows]] = True
        legal: Flags = scope.may_receive & ~holds[:, :brokers]
        if self.has_brokers_for_followers_only:
            leads = self.leading[self.model.partition_of[rows]] == rows
            legal &= ~leads[:, None] | scope.may_lead
        return legal & self._list_legal_racks(rows, others)

    @cached_property
    def has_brokers_for_followers_only(self) -> bool:
        """Whether replicas may move onto brokers that may not lead, those that only relief opens included."""
        scope = self.scope
        receives = scope.may_receive | scope.may_relieve if scope.relief else scope.may_receive
        return bool((receives & ~scope.takes_leaders).any())

    def _list_others(self, rows: Ints, broker_of: Ints) -> Ints:
        """[C, RF]: the brokers of the other replicas of each row's partition; B where there is none."""
        members = self.rows[self.model.partition_of[rows]]
        is_other = (members >= 0) & (members != rows[:, None])
        others: Ints = np.where(is_other, broker_of[members], len(self.model.brokers))
        return others

    def _list_legal_racks(self, rows: Ints, others: Ints) -> Flags:
        """[C, B]."""
        counts = self.count_racks(others)
        racks = self.model.rack_of
        if self.rack_rule is RackRule.ONE_PER_RACK:
            most = np.zeros(len(rows), dtype=np.int64)
        elif self.rack_rule is RackRule.EVEN:
            most = counts[:, self.racks_left].min(axis=1)
        else:
            most = counts[np.arange(len(rows)), racks[self.broker_of[rows]]]
        legal: Flags = (counts <= most[:, None])[:, racks]
        return legal

    def count_racks(self, brokers: Ints) -> Ints:
        """[C, R]: how many of the brokers of each line are in each rack. The index B stands for none."""
        racks = np.append(self.model.rack_of, len(self.model.rack_names))[brokers]
        width = len(self.model.rack_names) + 1
        lines = np.arange(len(brokers))[:, None] * width
        counts = np.bincount((lines + racks).ravel(), minlength=len(brokers) * width)
        return counts.reshape(len(brokers), width)[:, :-1].astype(np.int64)

    def list_returnable(self, rows: Ints) -> Flags:
        """[C]: whether a replica may go back to where it was, by its partition's other replicas and their racks.

        What must leave and what is offline does not return. A leader takes its leadership along: only to where it led.
        """
        model, scope = self.model, self.scope
        partitions = model.partition_of[rows]
        there = model.broker_of[rows]
        members = self.rows[partitions]
        is_other = (members >= 0) & (members != rows[:, None])
        others = self.broker_of[members]
        free = ~((others == there[:, None]) & is_other).any(axis=1)
        racks = model.rack_of
        crowd = ((racks[others] == racks[there][:, None]) & is_other).sum(axis=1)
        if self.rack_rule is RackRule.ONE_PER_RACK:
            free &= crowd == 0
        else:
            free &= crowd <= ((racks[others] == racks[self.broker_of[rows]][:, None]) & is_other).sum(axis=1)
        leads_there = (self.leading[partitions] != rows) | (model.leader[partitions] == there)
        returnable: Flags = free & leads_there & scope.is_known[there] & ~scope.must_leave[rows] & ~model.offline[rows]
        return returnable

    @cached_property
    def racks_left(self) -> Ints:
        """The racks with a broker that is alive and stays."""
        stays = self.scope.is_alive & (self.scope.role != BrokerRole.LEAVING)
        racks: Ints = np.unique(self.model.rack_of[stays])
        return racks

    def accepts_change(self, changes: Floats, brokers: Ints) -> Flags:
        """Whether all accepted limits let brokers change: `changes` is [M, C], `brokers` [C]."""
        accepted = np.ones(len(brokers), dtype=np.bool_)
        for limits in self.accepted:
            change = changes[limits.metric]
            after = self.load[limits.metric, brokers] + change
            slack = TOLERANCE * np.maximum(np.abs(after), 1.0)
            accepted &= (change <= slack) | (after <= limits.high[brokers] + slack)
            accepted &= (change >= -slack) | (after >= limits.low[brokers] - slack)
        return accepted

    def accepts_destination(self, weights: Floats) -> Flags:
        """[B]: the brokers that may take the weights [M] of a replica, by all accepted limits."""
        accepted = np.ones(self.load.shape[1], dtype=np.bool_)
        for limits in self.accepted:
            weight = weights[limits.metric]
            if weight > 0.0:
                after = self.load[limits.metric] + weight
                accepted &= after <= limits.high + TOLERANCE * np.maximum(after, 1.0)
        return accepted

    def accepts_source(self, weights: Floats, broker: int) -> bool:
        """Whether a broker may lose the weights [M]. A broker that leaves may always lose."""
        if self.scope.role[broker] == BrokerRole.LEAVING:
            return True
        for limits in self.accepted:
            weight = weights[limits.metric]
            after = self.load[limits.metric, broker] - weight
            if weight > 0.0 and after < limits.low[broker] - TOLERANCE * max(abs(after), 1.0):
                return False
        return True

    def accepts_topic(self, topic: int, source: int) -> Flags:
        """[B]: the brokers that may take a replica of a topic from a source."""
        if self.topic_limits is None:
            return np.ones(self.load.shape[1], dtype=np.bool_)
        counts = self.topic_counts[topic]
        if counts[source] - 1 < self.topic_limits.low[topic] and self.scope.role[source] != BrokerRole.LEAVING:
            return np.zeros(len(counts), dtype=np.bool_)
        accepted: Flags = counts + 1 <= self.topic_limits.high[topic]
        return accepted


def _list_rows(model: ClusterModel) -> Ints:
    factors = np.diff(model.offsets)
    width = int(factors.max(initial=1))
    columns = np.arange(width)
    rows: Ints = np.where(columns < factors[:, None], model.offsets[:-1, None] + columns, NONE)
    return rows


def _find_leading_rows(model: ClusterModel, rows: Ints) -> Ints:
    if not model.partition_count:
        return np.zeros(0, dtype=np.int64)
    leads = (rows >= 0) & (model.broker_of[rows] == model.leader[:, None])
    leading: Ints = np.where(leads.any(axis=1), rows[np.arange(len(rows)), leads.argmax(axis=1)], NONE)
    return leading
