"""Brings the replicas of each topic per broker into their range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import Ints
    from plimsoll.kafka.planning.placement import Placement, TopicLimits
    from plimsoll.kafka.planning.search.budget import Budget

_REPLICAS_TRIED: Final = 64
_PASSES: Final = 20


def balance_topics(placement: Placement, limits: TopicLimits, budget: Budget) -> None:
    """Move replicas of topics off brokers that have too many, then onto brokers that have too few."""
    rows_of = _RowsOfTopics(placement)
    before, placement.topic_limits = placement.topic_limits, limits
    try:
        for _ in range(_PASSES):
            version = placement.version
            _balance_once(placement, limits, rows_of, budget)
            if placement.version == version or budget.is_spent:
                return
    finally:
        placement.topic_limits = before


def _balance_once(placement: Placement, limits: TopicLimits, rows_of: _RowsOfTopics, budget: Budget) -> None:
    """One pass over all pairs of topic and broker outside their range. A pass makes room for the next one."""
    counts, judged = placement.topic_counts, placement.scope.is_balanced
    above = np.argwhere((counts > limits.high[:, None]) & judged)
    below = np.argwhere((counts < limits.low[:, None]) & judged & placement.scope.may_receive)
    for topic, broker in above.tolist():
        _move_out(placement, rows_of.list_rows(topic), broker, limits, budget)
    for topic, broker in below.tolist():
        _move_in(placement, rows_of.list_rows(topic), broker, limits, budget)


class _RowsOfTopics:
    """The rows of each topic: partitions are sorted by topic, so they are one range."""

    def __init__(self, placement: Placement) -> None:
        model = placement.model
        self._offsets = model.offsets
        self._starts = np.searchsorted(model.topic_of, np.arange(len(model.topics) + 1))

    def list_rows(self, topic: int) -> Ints:
        first, last = self._offsets[self._starts[topic]], self._offsets[self._starts[topic + 1]]
        return np.arange(first, last)


def _move_out(placement: Placement, rows: Ints, broker: int, limits: TopicLimits, budget: Budget) -> None:
    rows = rows[(placement.broker_of[rows] == broker) & placement.scope.is_movable[rows]]
    rows = _sort_by_size(placement, rows)[:_REPLICAS_TRIED]
    if not len(rows) or not budget.spend(len(rows)):
        return
    topic = int(placement.model.topic_of[placement.model.partition_of[rows[0]]])
    legal = placement.list_legal(rows)
    weights = placement.weigh(rows)
    for index, row in enumerate(rows.tolist()):
        if placement.topic_counts[topic, broker] <= limits.high[topic]:
            return
        if not placement.accepts_source(weights[:, index], broker):
            continue
        allowed = legal[index] & placement.accepts_destination(weights[:, index])
        allowed &= placement.accepts_topic(topic, broker)
        if allowed.any():
            placement.move(row, int(np.where(allowed, placement.topic_counts[topic], np.iinfo(np.int64).max).argmin()))


def _move_in(placement: Placement, rows: Ints, broker: int, limits: TopicLimits, budget: Budget) -> None:
    rows = rows[(placement.broker_of[rows] != broker) & placement.scope.is_movable[rows]]
    if not len(rows):
        return
    topic = int(placement.model.topic_of[placement.model.partition_of[rows[0]]])
    held = placement.topic_counts[topic][placement.broker_of[rows]]
    rows = rows[np.lexsort((rows, -held))][:_REPLICAS_TRIED]
    if not budget.spend(len(rows)):
        return
    legal = placement.list_legal(rows)[:, broker]
    weights = placement.weigh(rows)
    for index in np.flatnonzero(legal).tolist():
        if placement.topic_counts[topic, broker] >= limits.low[topic]:
            return
        row, source = int(rows[index]), int(placement.broker_of[rows[index]])
        if (
            placement.accepts_source(weights[:, index], source)
            and placement.accepts_destination(weights[:, index])[broker]
            and placement.accepts_topic(topic, source)[broker]
            and placement.list_legal(rows[index : index + 1])[0, broker]
        ):
            placement.move(row, broker)


def _sort_by_size(placement: Placement, rows: Ints) -> Ints:
    return rows[np.lexsort((rows, placement.model.size_bytes[placement.model.partition_of[rows]]))]
