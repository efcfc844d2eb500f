"""The last pass: moves that turned out not to be needed are undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.kafka.planning.loads import Metric
from plimsoll.kafka.planning.placement import TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.kafka.model.cluster import Flags, Floats, Ints
    from plimsoll.kafka.planning.placement import Limits, Placement, TopicLimits
    from plimsoll.kafka.planning.search.budget import Budget


def undo_needless_moves(
    placement: Placement, limits: Sequence[Limits], topic_limits: TopicLimits | None, budget: Budget
) -> int:
    """Put replicas back to where they were if no broker gets farther from any limit; gives how many.

    Large replicas go first. What must leave and what is offline does not return.
    """
    model = placement.model
    rows = np.flatnonzero(placement.moved & ~placement.scope.must_leave & ~model.offline)
    sizes = placement.loads.of_replica[Metric.DISK][model.partition_of[rows]]
    rows = rows[np.lexsort((rows, -sizes))]
    rows = rows[_list_returnable(placement, rows, limits, topic_limits)]
    undone = 0
    while len(rows) and budget.spend():
        row, rows = int(rows[0]), rows[1:]
        changed = _list_affected(placement, rows, row)
        placement.move(row, int(model.broker_of[row]))
        returnable = np.ones(len(rows), dtype=np.bool_)
        returnable[changed] = _list_returnable(placement, rows[changed], limits, topic_limits)
        rows = rows[returnable]
        undone += 1
    return undone


def _list_affected(placement: Placement, rows: Ints, row: int) -> Ints:
    """The indexes of the rows for which the return of one row changes something: its brokers, and its topic."""
    model = placement.model
    brokers = (placement.broker_of[row], model.broker_of[row])
    affected = np.isin(placement.broker_of[rows], brokers) | np.isin(model.broker_of[rows], brokers)
    affected |= model.topic_of[model.partition_of[rows]] == model.topic_of[model.partition_of[row]]
    return np.flatnonzero(affected)


def _list_returnable(
    placement: Placement, rows: Ints, limits: Sequence[Limits], topic_limits: TopicLimits | None
) -> Flags:
    """[C]: the replicas that could return each by itself."""
    here, there = placement.broker_of[rows], placement.model.broker_of[rows]
    weights = placement.weigh(rows)
    allowed = placement.list_returnable(rows)
    for limit in limits:
        for brokers, change in ((here, -weights[limit.metric]), (there, weights[limit.metric])):
            load = placement.load[limit.metric, brokers]
            allowed &= _is_no_worse(load, change, limit.low[brokers], limit.high[brokers])
    if topic_limits is not None:
        topics = placement.model.topic_of[placement.model.partition_of[rows]]
        for brokers, added in ((here, -1), (there, 1)):
            counts = placement.topic_counts[topics, brokers]
            is_judged = placement.scope.is_balanced[brokers]
            allowed &= ~is_judged | _is_no_worse(counts, added, topic_limits.low[topics], topic_limits.high[topics])
    return allowed


def _is_no_worse(before: Floats | Ints, change: Floats | int, low: Floats | Ints, high: Floats | Ints) -> Flags:
    """[C]: whether values are no farther outside their ranges after a change."""
    after = before + change
    slack = TOLERANCE * np.maximum(np.abs(after), 1.0)
    distance = np.maximum(np.maximum(after - high, low - after), 0.0)
    was = np.maximum(np.maximum(before - high, low - before), 0.0)
    no_worse: Flags = distance <= was + slack
    return no_worse
