"""Brings the brokers' values of one metric into their range, by changes of leader, moves and swaps.

A change is made if it is legal and every limit accepted so far allows it: a broker inside a range may not leave it, a
broker outside may not get worse. Candidates are tried in blocks; all ties are broken by index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.kafka.planning.loads import COUNTS, Metric
from plimsoll.kafka.planning.placement import TOLERANCE
from plimsoll.kafka.planning.search.exchanges import Exchanges

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kafka.model.cluster import Flags, Floats, Ints
    from plimsoll.kafka.planning.placement import Limits, Placement
    from plimsoll.kafka.planning.search.budget import Budget

_BLOCK: Final = 64
_BLOCKS: Final = 16
_SWAP_BROKERS: Final = 8
_SWAP_REPLICAS: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """The kinds of change that a goal may use."""

    leadership: bool = False
    moves: bool = True
    swaps: bool = False
    """Replicas of two brokers change places. Else another replica may only move in place of one that does."""


class MetricSearch:
    """The search for one goal. Its own limits bind its own changes too."""

    def __init__(self, placement: Placement, limits: Limits, budget: Budget, *, means: Means, movable: Flags) -> None:
        self._placement = placement
        self._limits = limits
        self._metric = limits.metric
        self._budget = budget
        self._means = means
        self._movable = movable
        finite = np.isfinite(limits.high) & (limits.high > 0)
        self._scale = np.where(finite, limits.high, 1.0)
        self.exchanges_tried = 0
        """Exchanges that did not help where the search ended."""

    def run(self) -> None:
        placement = self._placement
        placement.accepted.append(self._limits)
        try:
            if self._metric is Metric.LEADERS:  # Another choice costs nothing, a move for one leader costs much.
                self._exchange()
            self._change()
            self._exchange()
        finally:
            placement.accepted.pop()

    def choose_again(self) -> None:
        """Only choose other replicas of those that move: at no cost in moves or bytes."""
        self._placement.accepted.append(self._limits)
        try:
            self._exchange()
        finally:
            self._placement.accepted.pop()

    def _change(self) -> None:
        self._repeat(lambda excess: excess, self._relieve)
        self._repeat(lambda excess: -excess, self._fill)

    def _exchange(self) -> None:
        """Make exchanges as long as one helps."""
        if self._means.moves and not self._means.swaps and (self._placement.moved & self._movable).any():
            exchanges = Exchanges(self._placement, self._limits, self._budget, movable=self._movable)
            self._repeat(np.abs, exchanges.improve)
            self.exchanges_tried = exchanges.tried

    def _repeat(self, measure: Callable[[Floats], Floats], improve: Callable[[int], bool]) -> None:
        """Improve the worst broker until all are inside, or nothing helps the rest."""
        is_stuck = np.zeros(len(self._scale), dtype=np.bool_)
        while not self._budget.is_spent:
            excess = measure(self._limits.measure_excess(self._placement.load)) / self._scale
            excess[is_stuck] = 0.0
            worst = int(excess.argmax())
            if excess[worst] <= 0.0:
                return
            if not improve(worst):
                is_stuck[worst] = True

    def _measure_excess(self, broker: int) -> float:
        return float(self._limits.measure_excess(self._placement.load)[broker])

    # A broker above its range.

    def _relieve(self, broker: int) -> bool:
        means = self._means
        return (
            (means.leadership and self._give_leadership(broker))
            or (means.moves and self._move_out(broker))
            or (means.swaps and self._swap_out(broker))
        )

    def _move_out(self, broker: int) -> bool:
        placement, metric = self._placement, self._metric
        rows = np.flatnonzero((placement.broker_of == broker) & self._movable)
        values = placement.weigh(rows)[metric]
        rows, values = rows[values > 0.0], values[values > 0.0]
        rows = rows[self._order(rows, values, self._measure_excess(broker))]
        changed = False
        for start in range(0, min(len(rows), _BLOCK * _BLOCKS), _BLOCK):
            if self._measure_excess(broker) <= 0.0:
                return changed
            block = rows[start : start + _BLOCK]
            if not self._budget.spend(len(block)):
                return changed
            changed |= self._move_block(broker, block)
            if changed and metric not in COUNTS:
                return True  # What is still needed has changed, and with it the best order.
        return changed

    def _order(self, rows: Ints, values: Floats, need: float) -> Ints:
        """The least value that suffices first, by bytes; then the largest of those that do not."""
        size = self._placement.loads.of_replica[Metric.DISK][self._placement.model.partition_of[rows]]
        enough = values >= need * (1 - TOLERANCE)
        leads = self._placement.leading[self._placement.model.partition_of[rows]] == rows
        if self._metric in COUNTS:
            return np.lexsort((rows, size, leads))
        return np.lexsort(
            (rows, np.where(enough, size, -values), np.where(enough, values // max(need, 1e-9), 0), ~enough)
        )

    def _move_block(self, source: int, rows: Ints) -> bool:
        """Move replicas of a block to the brokers with the least of the metric, while the source is above its range."""
        placement = self._placement
        legal = placement.list_legal(rows)
        weights = placement.weigh(rows)
        legal &= self._accepts_destinations(weights)
        changed = False
        for index in np.flatnonzero(legal.any(axis=1)).tolist():
            if self._measure_excess(source) <= 0.0:
                break
            row_weights = weights[:, index]
            if not placement.accepts_source(row_weights, source):
                continue
            topic = int(placement.model.topic_of[placement.model.partition_of[rows[index]]])
            allowed = legal[index] & placement.accepts_destination(row_weights) & placement.accepts_topic(topic, source)
            if not allowed.any():
                continue
            after = (placement.load[self._metric] + row_weights[self._metric]) / self._scale
            placement.move(int(rows[index]), int(np.where(allowed, after, np.inf).argmin()))
            changed = True
        return changed

    def _accepts_destinations(self, weights: Floats) -> Flags:
        """[C, B]: what all limits allow now; single moves are checked again."""
        placement = self._placement
        accepted = np.ones((weights.shape[1], placement.load.shape[1]), dtype=np.bool_)
        for limits in placement.accepted:
            weight = weights[limits.metric][:, None]
            if weight.any():
                after = placement.load[limits.metric] + weight
                accepted &= (weight <= 0.0) | (after <= limits.high + TOLERANCE * np.maximum(after, 1.0))
        return accepted

    # A broker below its range.

    def _fill(self, broker: int) -> bool:
        means = self._means
        return (
            (means.leadership and self._take_leadership(broker))
            or (means.moves and self._move_in(broker))
            or (means.swaps and self._swap_in(broker))
        )

    def _move_in(self, broker: int) -> bool:
        placement, metric = self._placement, self._metric
        if not placement.scope.may_receive[broker]:
            return False
        level = placement.load[metric] / self._scale
        changed = False
        for donor in np.argsort(-level, kind="stable").tolist():
            if donor == broker or level[donor] <= level[broker]:
                break
            if self._measure_excess(broker) >= 0.0 or self._budget.is_spent:
                break
            changed |= self._pull(donor, broker)
        return changed

    def _pull(self, donor: int, broker: int) -> bool:
        """Move replicas of one donor to a broker, as long as the donor has more of the metric."""
        placement, metric = self._placement, self._metric
        rows = np.flatnonzero((placement.broker_of == donor) & self._movable)
        values = placement.weigh(rows)[metric]
        room = self._limits.high[broker] - placement.load[metric, broker]
        fits = (values > 0.0) & (values <= room)
        rows, values = rows[fits], values[fits]
        rows = rows[self._order(rows, values, -self._measure_excess(broker))][:_BLOCK]
        if not len(rows) or not self._budget.spend(len(rows)):
            return False
        legal = placement.list_legal(rows)[:, broker]
        weights = placement.weigh(rows)
        changed = False
        for index in np.flatnonzero(legal).tolist():
            load = placement.load[metric] / self._scale
            if self._measure_excess(broker) >= 0.0 or load[donor] <= load[broker]:
                break
            row_weights = weights[:, index]
            topic = int(placement.model.topic_of[placement.model.partition_of[rows[index]]])
            if (
                placement.accepts_source(row_weights, donor)
                and placement.accepts_destination(row_weights)[broker]
                and placement.accepts_topic(topic, donor)[broker]
            ):
                placement.move(int(rows[index]), broker)
                changed = True
        return changed

    # Leadership.

    def _give_leadership(self, broker: int) -> bool:
        placement = self._placement
        partitions = np.flatnonzero((placement.leader == broker) & placement.scope.leadership_is_movable)
        members = placement.rows[partitions]
        rows = members[(members >= 0) & (members != placement.leading[partitions][:, None])]
        return self._change_leaders(rows, self._measure_excess(broker), lambda: self._measure_excess(broker) > 0.0)

    def _take_leadership(self, broker: int) -> bool:
        placement = self._placement
        rows = np.flatnonzero(placement.broker_of == broker)
        partitions = placement.model.partition_of[rows]
        rows = rows[(placement.leading[partitions] != rows) & placement.scope.leadership_is_movable[partitions]]
        return self._change_leaders(rows, -self._measure_excess(broker), lambda: self._measure_excess(broker) < 0.0)

    def _change_leaders(self, rows: Ints, need: float, is_needed: Callable[[], bool]) -> bool:
        """Let some of these replicas lead, each from the present leader of its partition."""
        placement = self._placement
        rows = rows[list_able_to_lead(placement, rows)]
        partitions = placement.model.partition_of[rows]
        weights = placement.loads.of_leadership[:, partitions]
        values = weights[self._metric]
        sources = placement.broker_of[placement.leading[partitions]]
        destinations = placement.broker_of[rows]
        allowed = (values > 0.0) & placement.accepts_change(weights, destinations)
        allowed &= placement.accepts_change(-weights, sources)
        rows, values = rows[allowed], values[allowed]
        self._budget.spend(len(rows))
        level = placement.load[self._metric] / self._scale
        order = np.lexsort(
            (rows, level[placement.broker_of[rows]], np.where(values >= need, values, -values), values < need)
        )
        changed = False
        for row in rows[order].tolist():
            if not is_needed():
                break
            if can_lead_now(placement, row, self._metric, self._scale):
                placement.lead(row)
                changed = True
        return changed

    # Swaps.

    def _swap_out(self, broker: int) -> bool:
        level = self._placement.load[self._metric] / self._scale
        partners = np.flatnonzero(self._placement.scope.may_receive)
        partners = partners[np.argsort(level[partners], kind="stable")][:_SWAP_BROKERS]
        need = self._measure_excess(broker)
        return any(self._swap(broker, partner, need) for partner in partners.tolist() if partner != broker)

    def _swap_in(self, broker: int) -> bool:
        level = self._placement.load[self._metric] / self._scale
        partners = np.flatnonzero(self._placement.scope.may_receive)
        partners = partners[np.argsort(-level[partners], kind="stable")][:_SWAP_BROKERS]
        need = -self._measure_excess(broker)
        return any(self._swap(partner, broker, need) for partner in partners.tolist() if partner != broker)

    def _swap(self, high: int, low: int, need: float) -> bool:
        """Exchange a replica of a high broker for a lighter one of a low broker; the difference nearest to the need."""
        placement, metric = self._placement, self._metric
        if not (placement.scope.may_receive[high] and placement.scope.may_receive[low]):
            return False
        given, taken = self._sample(high), self._sample(low)
        given = given[placement.list_legal(given)[:, low]] if len(given) else given
        taken = taken[placement.list_legal(taken)[:, high]] if len(taken) else taken
        if not len(given) or not len(taken) or not self._budget.spend(len(given) + len(taken)):
            return False
        given_weights, taken_weights = placement.weigh(given), placement.weigh(taken)
        partition_of, topic_of = placement.model.partition_of, placement.model.topic_of
        gain = given_weights[metric][:, None] - taken_weights[metric][None, :]
        allowed = (gain > max(need, 0.0) * 1e-3) & (partition_of[given][:, None] != partition_of[taken][None, :])
        for limits in placement.accepted:
            change = given_weights[limits.metric][:, None] - taken_weights[limits.metric][None, :]
            allowed &= _is_within(limits, placement.load, low, change) & _is_within(
                limits, placement.load, high, -change
            )
        if placement.topic_limits is not None:
            topics_given, topics_taken = topic_of[partition_of[given]], topic_of[partition_of[taken]]
            give = np.array([placement.accepts_topic(int(topic), high)[low] for topic in topics_given], dtype=np.bool_)
            take = np.array([placement.accepts_topic(int(topic), low)[high] for topic in topics_taken], dtype=np.bool_)
            allowed &= (give[:, None] & take[None, :]) | (topics_given[:, None] == topics_taken[None, :])
        if not allowed.any():
            return False
        distance = np.where(gain >= need, gain - need, 2.0 * (need - gain))
        best = int(np.where(allowed, distance, np.inf).argmin())
        placement.move(int(given[best // len(taken)]), low)
        placement.move(int(taken[best % len(taken)]), high)
        return True

    def _sample(self, broker: int) -> Ints:
        """Replicas of a broker, evenly through the range of their values."""
        placement = self._placement
        rows = np.flatnonzero((placement.broker_of == broker) & self._movable)
        if len(rows) <= _SWAP_REPLICAS:
            return rows
        order = np.lexsort((rows, placement.weigh(rows)[self._metric]))
        picks = np.linspace(0, len(rows) - 1, _SWAP_REPLICAS).astype(np.int64)
        return rows[order[picks]]


def list_able_to_lead(placement: Placement, rows: Ints) -> Flags:
    """[C]: whether a replica could lead: in sync, or moved and in sync once it is there."""
    model, scope = placement.model, placement.scope
    in_sync = model.in_sync[rows] & ~model.offline[rows]
    is_moved = placement.broker_of[rows] != model.broker_of[rows]
    able: Flags = (in_sync | is_moved) & scope.may_lead[placement.broker_of[rows]]
    return able


def can_lead_now(placement: Placement, row: int, metric: Metric, scale: Floats) -> bool:
    """Whether all limits accept a replica as leader, and the present leader has more of the metric."""
    partition = placement.model.partition_of[row]
    leading = placement.leading[partition]
    if leading in {row, -1}:
        return False
    source, destination = int(placement.broker_of[leading]), int(placement.broker_of[row])
    load = placement.load[metric] / scale
    if load[source] <= load[destination]:
        return False
    weights = placement.loads.of_leadership[:, partition]
    return bool(placement.accepts_destination(weights)[destination]) and placement.accepts_source(weights, source)


def _is_within(limits: Limits, load: Floats, broker: int, change: Floats) -> Flags:
    after = load[limits.metric, broker] + change
    slack = TOLERANCE * np.maximum(np.abs(after), 1.0)
    within: Flags = ((change <= slack) | (after <= limits.high[broker] + slack)) & (
        (change >= -slack) | (after >= limits.low[broker] - slack)
    )
    return within
