"""Places for replicas that must move: off leaving brokers, off offline disks, out of a rack that holds too many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.kafka.planning.loads import Metric
from plimsoll.kafka.planning.placement import RackRule

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import Flags, Floats, Ints
    from plimsoll.kafka.planning.placement import Placement
    from plimsoll.kafka.planning.search.budget import Budget

_BLOCK: Final = 4096
_BROKERS_TRIED: Final = 8
_REPLICAS_TRIED: Final = 256


def relocate(placement: Placement, rows: Ints, budget: Budget) -> Ints:
    """Move each replica to the legal broker that is least filled; largest first. Returns those without a place.

    Hard limits among the accepted ones bind; soft ones are preferences.
    """
    size = placement.loads.of_replica[Metric.DISK][placement.model.partition_of[rows]]
    rows = rows[np.lexsort((rows, -size))]
    fill = _Fill(placement)
    unplaced = [
        row for block in _split_by_partition(placement, rows) for row in _relocate_block(placement, block, fill, budget)
    ]
    left = [row for row in unplaced if not _make_room(placement, row, fill, budget)]
    return np.array(left, dtype=np.int64)


def repair_racks(placement: Placement, rule: RackRule, budget: Budget) -> None:
    """Move replicas out of racks that hold too many of their partition."""
    before, placement.rack_rule = placement.rack_rule, rule
    try:
        stuck: Ints = np.zeros(0, dtype=np.int64)
        for _ in range(placement.rows.shape[1]):
            partitions = np.setdiff1d(find_crowded_partitions(placement, rule), stuck)
            rows = _choose_crowded_rows(placement, partitions)
            if not len(rows):
                return
            unplaced = relocate(placement, rows, budget)
            stuck = np.union1d(stuck, placement.model.partition_of[unplaced])
    finally:
        placement.rack_rule = before


def find_crowded_partitions(placement: Placement, rule: RackRule) -> Ints:
    """The partitions that break the rule of racks and have a replica that may move out of its rack."""
    brokers = np.where(placement.rows >= 0, placement.broker_of[placement.rows], len(placement.model.brokers))
    counts = placement.count_racks(brokers)
    most = counts.max(axis=1, initial=0)
    if rule is RackRule.ONE_PER_RACK:
        crowded = most > 1
    else:
        left = counts[:, placement.racks_left]
        crowded = most - left.min(axis=1, initial=len(placement.broker_of)) > 1
    partitions = np.flatnonzero(crowded & ~placement.scope.is_fixed)
    rows = _choose_crowded_rows(placement, partitions)
    found: Ints = np.unique(placement.model.partition_of[rows])
    return found


def _choose_crowded_rows(placement: Placement, partitions: Ints) -> Ints:
    """The replica of each partition to move: in its fullest rack, rather a follower, rather off a full broker."""
    if not len(partitions):
        return partitions
    members = placement.rows[partitions]
    brokers = np.where(members >= 0, placement.broker_of[members], len(placement.model.brokers))
    counts = placement.count_racks(brokers)
    racks = np.append(placement.model.rack_of, 0)[brokers]
    crowd = np.take_along_axis(counts, racks, axis=1)
    may_move = (members >= 0) & placement.scope.is_repairable[members]
    load = placement.load[Metric.REPLICAS]
    fill = np.append(load / max(load.max(), 1.0), 0.0)[brokers]
    must = placement.scope.must_leave[members]
    leads = members == placement.leading[partitions][:, None]
    key = crowd * 100.0 + must * 10.0 - leads * 2.0 + fill
    key = np.where(may_move & (crowd > 1), key, -1.0)
    chosen = key.argmax(axis=1)
    lines = np.arange(len(partitions))
    rows: Ints = members[lines, chosen][key[lines, chosen] > 0]
    return rows


class _Fill:
    """How full each broker is: the larger of its parts of replicas and of bytes."""

    def __init__(self, placement: Placement) -> None:
        scope, load = placement.scope, placement.load
        self._placement = placement
        brokers = max(int(scope.is_balanced.sum()), 1)
        disk = placement.loads.capacity[Metric.DISK]
        known = np.isfinite(disk) & scope.is_balanced
        weight = np.where(np.isfinite(disk), disk, disk[known].mean() if known.any() else 1.0)
        share = weight / max(weight[scope.is_balanced].sum(), 1e-9)
        self._replicas = max(load[Metric.REPLICAS].sum() / brokers, 1.0)
        self._bytes = np.maximum(load[Metric.DISK].sum() * share, 1.0)

    def choose(self, allowed: Flags, weights: Floats) -> int:
        """The broker that is least filled with the replica on it; -1: none is allowed."""
        if not allowed.any():
            return -1
        load = self._placement.load
        fill = np.maximum(
            (load[Metric.REPLICAS] + 1.0) / self._replicas, (load[Metric.DISK] + weights[Metric.DISK]) / self._bytes
        )
        return int(np.where(allowed, fill, np.inf).argmin())


def _split_by_partition(placement: Placement, rows: Ints) -> list[Ints]:
    """Blocks in which each partition occurs once, so that legal brokers of a block stay legal."""
    blocks = []
    while len(rows):
        block, rest = rows[:_BLOCK], rows[_BLOCK:]
        _, first = np.unique(placement.model.partition_of[block], return_index=True)
        first.sort()
        again = np.delete(block, first)
        blocks.append(block[first])
        rows = np.concatenate((again, rest))
    return blocks


def _relocate_block(placement: Placement, rows: Ints, fill: _Fill, budget: Budget) -> list[int]:
    legal = placement.list_legal(rows)
    weights = placement.weigh(rows)
    unplaced = []
    for index, row in enumerate(rows.tolist()):
        budget.spend()
        destination = _find_place(placement, legal[index], row, weights[:, index], fill)
        if destination < 0:
            unplaced.append(row)
        else:
            placement.move(row, destination)
    return unplaced


def _find_place(placement: Placement, legal: Flags, row: int, weights: Floats, fill: _Fill) -> int:
    """A broker within all limits, else one within the hard ones; -1: none."""
    if not legal.any():
        return -1
    source = int(placement.broker_of[row])
    topic = int(placement.model.topic_of[placement.model.partition_of[row]])
    hard = legal & _accepts_hard(placement, weights)
    soft = hard & placement.accepts_destination(weights) & placement.accepts_topic(topic, source)
    return fill.choose(soft if soft.any() else hard, weights)


def _accepts_hard(placement: Placement, weights: Floats) -> Flags:
    accepted = np.ones(placement.load.shape[1], dtype=np.bool_)
    for limits in placement.accepted:
        if limits.is_hard:
            accepted &= placement.load[limits.metric] + weights[limits.metric] <= limits.high
    return accepted


def _make_room(placement: Placement, row: int, fill: _Fill, budget: Budget) -> bool:
    """Move another replica off a legal broker that is too full for this one, and take its place."""
    rows = np.array([row], dtype=np.int64)
    weights = placement.weigh(rows)[:, 0]
    candidates = np.flatnonzero(placement.list_legal(rows)[0])
    order = candidates[np.argsort(placement.load[Metric.DISK][candidates], kind="stable")]
    for broker in order[:_BROKERS_TRIED].tolist():
        missing = max(
            (
                placement.load[limits.metric, broker] + weights[limits.metric] - limits.high[broker]
                for limits in placement.accepted
                if limits.is_hard
            ),
            default=0.0,
        )
        others = np.flatnonzero((placement.broker_of == broker) & placement.scope.is_repairable)
        others = others[placement.model.partition_of[others] != placement.model.partition_of[row]]
        size = placement.weigh(others)[Metric.DISK]
        enough = others[(size >= missing) | (missing <= 1.0)][:_REPLICAS_TRIED]
        if not len(enough) or not budget.spend(len(enough)):
            continue
        legal = placement.list_legal(enough)
        other_weights = placement.weigh(enough)
        for index, other in enumerate(enough.tolist()):
            destination = _find_place(placement, legal[index], other, other_weights[:, index], fill)
            if destination < 0:
                continue
            placement.move(other, destination)
            if _accepts_hard(placement, weights)[broker]:
                placement.move(row, broker)
                return True
            placement.move(other, broker)
    return False
