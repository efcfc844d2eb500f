"""Another choice of what moves: a replica takes the place of one that the plan moves, at no cost in moves or bytes.

An exchange lets a replica come to a broker and another one leave it: back to where it was, or to where the first one
comes from. A replica that moves anyway may also come without another one leaving. The incoming replica may take over
the leadership of its partition. Higher goals get no worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from plimsoll.kafka.planning.loads import COUNTS, Metric
from plimsoll.kafka.planning.placement import TOLERANCE
from plimsoll.kafka.planning.scope import BrokerRole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kafka.model.cluster import Flags, Floats, Ints
    from plimsoll.kafka.planning.placement import Limits, Placement
    from plimsoll.kafka.planning.search.budget import Budget

_REPLICAS_TRIED: Final = 64
"""Replicas on each side of one attempt."""
_ATTEMPTS: Final = 60
_ATTEMPTS_FOR_LEADERS: Final = 240
"""Attempts for one goal. What choosing other replicas can do best is to move the right number of leaders."""
_PAIRS_CHECKED: Final = 512
"""Exchanges of one attempt that are compared with the limits, the best ones."""
_FIRST_STEPS: Final = 8
"""How many exchanges that only pass the violation on are followed by a second one."""
_EQUAL: Final = 1e-4
"""Loads of a broker, and bytes of a plan, that differ by a smaller share are equal."""
_LEAST_GAIN: Final = 1e-9
_NONE: Final = -1


class _Incoming(NamedTuple):
    """Replicas [C] that could come to a broker."""

    rows: Ints
    takes_over: Flags
    """[C]: whether the replica becomes the leader of its partition."""


class _Outgoing(NamedTuple):
    """Replicas [D] that could leave a broker, or the one row NONE: nothing leaves it."""

    rows: Ints
    returns: bool
    """Whether they go back to where they were; else to where the incoming replica comes from."""


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One exchange, by how much it lowers the violation, and by how much it makes the plan larger."""

    gain: float
    incoming: int
    takes_over: bool
    outgoing: int
    """A row, or NONE."""
    broker: int
    onward: int
    added_bytes: float


class Exchanges:
    """The exchanges for one goal. Bytes that one exchange saves, another one may use."""

    def __init__(self, placement: Placement, limits: Limits, budget: Budget, *, movable: Flags) -> None:
        self._placement = placement
        self._limits = limits
        self._budget = budget
        self._movable = movable
        self._attempts_left = _ATTEMPTS_FOR_LEADERS if limits.metric is Metric.LEADERS else _ATTEMPTS
        finite = np.isfinite(limits.high) & (limits.high > 0)
        self._scale = np.where(finite, limits.high, 1.0)
        self._size = placement.loads.of_replica[Metric.DISK][placement.model.partition_of]
        self.tried = 0
        """Exchanges that were compared since one was made."""
        self._saved_bytes = _EQUAL * float(self._size[placement.moved].sum())
        self._with_leadership = bool(placement.loads.of_leadership[limits.metric].any())
        self._ranges = self._merge_limits()

    def improve(self, broker: int) -> bool:
        """Make the exchange that lowers the violation of a broker and of the others the most; False: none does.

        If there is none, two in a row: the first one passes the violation on, the second one takes it away.
        """
        found = self._list_exchanges(broker, passes_on=False)
        if found:
            self._make(found[0])
        if found or (self._limits.metric is Metric.LEADERS and self._improve_in_two_steps(broker)):
            self.tried = 0
            return True
        return False

    def _improve_in_two_steps(self, broker: int) -> bool:
        placement, saved_bytes = self._placement, self._saved_bytes
        for first in self._list_exchanges(broker, passes_on=True)[:_FIRST_STEPS]:
            saved, before = placement.save(), self._measure_violation()
            self._make(first)
            excess = self._limits.measure_excess(placement.load)
            for receiver in sorted({first.broker, first.onward} - {broker}):
                second = self._list_exchanges(receiver, passes_on=False) if excess[receiver] else []
                if second:
                    self._make(second[0])
                    break
            if self._measure_violation() < before - _LEAST_GAIN:
                return True
            placement.restore(saved)
            self._saved_bytes = saved_bytes
        return False

    def _measure_violation(self) -> float:
        return float((np.abs(self._limits.measure_excess(self._placement.load)) / self._scale).sum())

    def _merge_limits(self) -> dict[Metric, tuple[Floats, Floats]]:
        """The range [B] of each metric that all limits leave. A broker outside a limit may keep what it has."""
        ranges: dict[Metric, tuple[Floats, Floats]] = {}
        for limits in {id(limits): limits for limits in (*self._placement.accepted, self._limits)}.values():
            load = self._placement.load[limits.metric]
            slack = (TOLERANCE if limits.metric in COUNTS else _EQUAL) * np.abs(load) + TOLERANCE
            low, high = np.minimum(limits.low, load - slack), np.maximum(limits.high, load + slack)
            if limits.metric in ranges:
                low, high = np.maximum(low, ranges[limits.metric][0]), np.minimum(high, ranges[limits.metric][1])
            ranges[limits.metric] = low, high
        return ranges

    def _make(self, exchange: _Exchange) -> None:
        placement = self._placement
        if exchange.outgoing != _NONE:
            placement.move(exchange.outgoing, exchange.onward)
        placement.move(exchange.incoming, exchange.broker)
        if exchange.takes_over:
            placement.lead(exchange.incoming)
        self._saved_bytes -= exchange.added_bytes

    def _list_exchanges(self, broker: int, *, passes_on: bool) -> list[_Exchange]:
        """The best exchange of every place for a broker, the best first. `passes_on`: other brokers may get worse."""
        found = self._find_exchanges(broker, helped=broker if passes_on else None)
        return sorted(found, key=lambda exchange: -exchange.gain)

    def _find_exchanges(self, broker: int, *, helped: int | None) -> Iterator[_Exchange]:
        placement = self._placement
        moved = placement.moved & self._movable
        places = np.flatnonzero(np.bincount(placement.broker_of[moved], minlength=placement.load.shape[1]))
        for place in places.tolist():
            there = np.flatnonzero((placement.broker_of == place) & moved)
            back = there[placement.list_returnable(there)]
            incoming = self._list_incoming(place, leaves=None if place == broker else broker)
            yield from self._try(place, incoming, _Outgoing(back, returns=True), helped)
            yield from self._try(place, incoming, _Outgoing(there, returns=False), helped)
            yield from self._try(place, incoming, _Outgoing(np.array([_NONE]), returns=False), helped)
            back = back[placement.model.broker_of[back] == broker]
            if place != broker and len(back):
                yield from self._try(place, self._list_incoming(place), _Outgoing(back, returns=True), helped)

    def _try(self, place: int, incoming: _Incoming, outgoing: _Outgoing, helped: int | None) -> Iterator[_Exchange]:
        if not len(incoming.rows) or not len(outgoing.rows) or not self._attempts_left:
            return
        outgoing = outgoing._replace(rows=self._sample(outgoing.rows))
        self._attempts_left -= 1
        self.tried += len(incoming.rows) * len(outgoing.rows)
        if self._budget.spend(len(incoming.rows) + len(outgoing.rows)):
            best = self._choose(self._pair(place, incoming, outgoing), helped)
            if best is not None:
                yield best

    def _pair(self, place: int, incoming: _Incoming, outgoing: _Outgoing) -> _Pairs:
        """Each incoming replica with each outgoing one."""
        placement, origin = self._placement, self._placement.model.broker_of
        rows = np.repeat(incoming.rows, len(outgoing.rows))
        others = np.tile(outgoing.rows, len(incoming.rows))
        source = placement.broker_of[rows]
        onward = origin[others] if outgoing.returns else source
        comes = (origin[rows] != place).astype(np.int64) - (origin[rows] != source)
        goes = ((onward != origin[others]).astype(np.int64) - (origin[others] != place)) * (others != _NONE)
        added = np.where(comes + goes > 0, np.inf, comes * self._size[rows] + goes * self._size[others])
        return _Pairs(
            placement=placement,
            place=place,
            incoming=rows,
            takes_over=np.repeat(incoming.takes_over, len(outgoing.rows)),
            outgoing=others,
            source=source,
            onward=onward,
            returns=outgoing.returns,
            added_bytes=added,
        )

    def _list_incoming(self, place: int, *, leaves: int | None = None) -> _Incoming:
        """Replicas that may come to a broker; with `leaves`, those on that broker or with their leader there."""
        placement = self._placement
        model, scope = placement.model, placement.scope
        chosen = self._movable & (placement.broker_of != place)
        if leaves is not None:
            is_helpful = placement.broker_of == leaves
            if self._with_leadership:
                is_helpful |= placement.leader[model.partition_of] == leaves
            chosen &= is_helpful
        rows = self._sample(np.flatnonzero(chosen))
        is_return = model.broker_of[rows] == place
        legal = placement.list_legal(rows)[:, place] | (is_return & placement.list_returnable(rows))
        rows, is_return = rows[legal], is_return[legal]
        partitions = model.partition_of[rows]
        leads = placement.leading[partitions] == rows
        keeps = ~leads | scope.may_lead[place] | (model.leader[partitions] == place)
        able = (~is_return | (model.in_sync[rows] & ~model.offline[rows])) & ~leads & scope.may_lead[place]
        able &= (placement.leading[partitions] >= 0) & scope.leadership_is_movable[partitions] & self._with_leadership
        takes_over = np.repeat((False, True), (int(keeps.sum()), int(able.sum())))
        return _Incoming(np.concatenate((rows[keeps], rows[able])), takes_over)

    def _sample(self, rows: Ints) -> Ints:
        """Replicas evenly through the range of their sizes."""
        if len(rows) <= _REPLICAS_TRIED:
            return rows
        order = np.lexsort((rows, self._size[rows]))
        picks = np.linspace(0, len(rows) - 1, _REPLICAS_TRIED).astype(np.int64)
        return rows[order[picks]]

    def _choose(self, pairs: _Pairs, helped: int | None) -> _Exchange | None:
        """The exchange that lowers the violation the most; then the one with the fewest bytes, of the nearest sizes.

        With `helped` only the violation of that broker counts, and others may get worse.
        """
        gain = pairs.measure_fall(self._limits, self._scale, helped).round(9)
        good = np.flatnonzero((gain > _LEAST_GAIN) & (pairs.added_bytes <= self._saved_bytes))
        if not len(good):
            return None
        pairs, gain = pairs.select(good), gain[good]
        difference = np.abs(self._size[pairs.incoming] - self._size[pairs.outgoing])
        keys = (pairs.outgoing, pairs.incoming, pairs.takes_over, difference, pairs.added_bytes, -gain)
        best = np.lexsort(keys)[:_PAIRS_CHECKED]
        pairs, gain = pairs.select(best), gain[best]
        allowed = pairs.list_legal()
        for metric, (low, high) in self._ranges.items():
            if metric is not self._limits.metric or helped is None:
                allowed &= pairs.list_accepted(metric, low, high)
        if not allowed.any():
            return None
        chosen = int(allowed.argmax())
        return _Exchange(
            gain=float(gain[chosen]),
            incoming=int(pairs.incoming[chosen]),
            takes_over=bool(pairs.takes_over[chosen]),
            outgoing=int(pairs.outgoing[chosen]),
            broker=pairs.place,
            onward=int(pairs.onward[chosen]),
            added_bytes=float(pairs.added_bytes[chosen]),
        )


@dataclass(slots=True, kw_only=True)
class _Pairs:
    """Exchanges [E] at one broker."""

    placement: Placement
    place: int
    incoming: Ints
    takes_over: Flags
    outgoing: Ints
    """Rows, or all NONE."""
    source: Ints
    """Where the incoming replica comes from."""
    onward: Ints
    """Where the outgoing replica goes."""
    returns: bool
    """Whether the outgoing replica goes back to where it was."""
    added_bytes: Floats
    """By how many bytes the plan gets larger; infinite where it gets a move more."""

    def select(self, chosen: Ints) -> _Pairs:
        return _Pairs(
            placement=self.placement,
            place=self.place,
            incoming=self.incoming[chosen],
            takes_over=self.takes_over[chosen],
            outgoing=self.outgoing[chosen],
            source=self.source[chosen],
            onward=self.onward[chosen],
            returns=self.returns,
            added_bytes=self.added_bytes[chosen],
        )

    @property
    def _has_outgoing(self) -> bool:
        return int(self.outgoing[0]) != _NONE

    def list_legal(self) -> Flags:
        """[E]: by partitions, racks, leadership and topics. Incoming replicas are legal on the broker."""
        placement, scope = self.placement, self.placement.scope
        if not self._has_outgoing:
            return self._accepts_topics()
        partition_of = placement.model.partition_of
        legal: Flags = partition_of[self.incoming] != partition_of[self.outgoing]
        if not self.returns:
            rows, index = np.unique(self.outgoing, return_inverse=True)
            legal &= placement.list_legal(rows)[index, self.onward]
            leads = placement.leading[partition_of[self.outgoing]] == self.outgoing
            legal &= ~leads | scope.may_lead[self.onward]
        return legal & self._accepts_topics()

    def _accepts_topics(self) -> Flags:
        """[E]: whether the replicas per topic and broker stay in their range. Of one topic, one replaces another."""
        placement, limits, place = self.placement, self.placement.topic_limits, self.place
        if limits is None:
            return np.ones(len(self.incoming), dtype=np.bool_)
        partition_of, topic_of, counts = placement.model.partition_of, placement.model.topic_of, placement.topic_counts
        topics, others = topic_of[partition_of[self.incoming]], topic_of[partition_of[self.outgoing]]
        leaves = counts[topics, self.source] > limits.low[topics]
        leaves |= placement.scope.role[self.source] == BrokerRole.LEAVING
        comes = counts[topics, place] < limits.high[topics]
        accepted: Flags = leaves & comes
        if self._has_outgoing:
            stays_even = (topics == others) & (self.onward == self.source)
            accepted = (topics == others) | (comes & (counts[others, place] > limits.low[others]))
            accepted &= stays_even | (leaves & (counts[others, self.onward] < limits.high[others]))
        return accepted

    def _list_changes(self, metric: Metric) -> list[tuple[Ints, Floats]]:
        """The brokers [E] of each exchange and their changes [E]. A broker that is named twice changes once only."""
        placement = self.placement
        partitions = placement.model.partition_of[self.incoming]
        comes = placement.loads.of_replica[metric, partitions]
        extra = placement.loads.of_leadership[metric, partitions]
        comes = comes + extra * (placement.leading[partitions] == self.incoming)
        taken = extra * self.takes_over
        goes = np.zeros(len(comes))
        if self._has_outgoing:
            others = placement.model.partition_of[self.outgoing]
            goes = placement.loads.of_leadership[metric, others] * (placement.leading[others] == self.outgoing)
            goes += placement.loads.of_replica[metric, others]
        to_source = np.where(self.onward == self.source, goes, 0.0)
        changes = [
            (np.full(len(comes), self.place), comes + taken - goes),
            (self.source, to_source - comes),
        ]
        if not taken.any():
            return [*changes, (self.onward, goes - to_source)]
        leader = placement.leader[partitions]
        is_onward = leader == self.onward
        changes.append((self.onward, goes - to_source - np.where(is_onward, taken, 0.0)))
        return [*changes, (leader, np.where(is_onward, 0.0, -taken))]

    def list_accepted(self, metric: Metric, low: Floats, high: Floats) -> Flags:
        """[E]: whether all brokers are within a range of a metric."""
        load = self.placement.load[metric]
        accepted = np.ones(len(self.incoming), dtype=np.bool_)
        for brokers, change in self._list_changes(metric):
            after = load[brokers] + change
            accepted &= (change == 0.0) | ((after >= low[brokers]) & (after <= high[brokers]))
        return accepted

    def measure_fall(self, limits: Limits, scale: Floats, helped: int | None) -> Floats:
        """[E]: by how much the violation of limits falls; with `helped` on that broker alone."""
        load = self.placement.load[limits.metric]
        fall = np.zeros(len(self.incoming))
        for brokers, change in self._list_changes(limits.metric):
            low, high, before = limits.low[brokers], limits.high[brokers], load[brokers]
            after = before + change
            was = np.maximum(np.maximum(before - high, low - before), 0.0)
            part = (was - np.maximum(np.maximum(after - high, low - after), 0.0)) / scale[brokers]
            fall += part if helped is None else part * (brokers == helped)
        return fall
