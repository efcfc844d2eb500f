"""The least that any plan must move, given where brokers end inside their windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.kafka.model.proposals import Bounds
from plimsoll.kafka.planning.loads import Metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.kafka.model.cluster import Flags, Floats, Ints
    from plimsoll.kafka.model.proposals import Proposal
    from plimsoll.kafka.planning.placement import Placement
    from plimsoll.solver.replicas.problem import Windows


def find_bounds(
    placement: Placement, proposals: Sequence[Proposal], windows: Windows | None, *, crowded: Ints
) -> Bounds:
    """Moves and bytes of the proposals beside the least possible.

    Three things must move in any plan: what leaves, what racks hold too many of, and what takes brokers from outside
    their windows to inside. Only brokers that end inside count, so the bound holds for this plan too.
    """
    model = placement.model
    left = np.flatnonzero(placement.scope.must_leave & placement.moved)
    sizes = placement.loads.of_replica[Metric.DISK]
    repairs = _count_repairs(placement, crowded)
    least_moves = float(max(len(left), int(repairs.sum())))
    least_bytes = max(float(sizes[model.partition_of[left]].sum()), float((sizes[crowded] * repairs).sum()))
    if windows is not None:
        brokers = len(model.brokers)
        # Out of a crowded rack, replicas also move between the groups: then all brokers are one group.
        groups = (np.arange(brokers),) if len(crowded) else windows.groups
        counts, load = model.replica_counts, model.broker_bytes
        least_moves = max(
            least_moves,
            _sum_groups(
                groups,
                counts.astype(np.float64),
                windows.low_count.astype(np.float64),
                windows.high_count.astype(np.float64),
                windows.find_counts_inside(placement.load[Metric.REPLICAS].astype(np.int64)),
            ),
        )
        slack = windows.byte_slack
        inside = windows.are_bytes_inside(placement.load[Metric.DISK])
        low, high = windows.low_bytes - slack, windows.high_bytes + slack
        least_bytes = max(least_bytes, _sum_groups(groups, load, low, high, inside))
    return Bounds(
        moves=sum(len(proposal.added) for proposal in proposals),
        bytes=sum(proposal.bytes_to_move for proposal in proposals),
        least_moves=round(least_moves),
        least_bytes=int(least_bytes),
    )


def _count_repairs(placement: Placement, crowded: Ints) -> Ints:
    """How many replicas of each crowded partition had to change their rack. A move changes that of one."""
    members = placement.rows[crowded]
    none = len(placement.model.brokers)
    counts = [
        placement.count_racks(np.where(members >= 0, broker_of[members], none))
        for broker_of in (placement.model.broker_of, placement.broker_of)
    ]
    surplus = [np.maximum(count - 1, 0).sum(axis=1) for count in counts]
    repairs: Ints = np.maximum(surplus[0] - surplus[1], 0)
    return repairs


def _sum_groups(groups: Sequence[Ints], amounts: Floats, low: Floats, high: Floats, is_inside: Flags) -> float:
    surplus = np.where(is_inside, np.maximum(amounts - high, 0.0), 0.0)
    deficit = np.where(is_inside, np.maximum(low - amounts, 0.0), 0.0)
    return float(sum(max(surplus[group].sum(), deficit[group].sum()) for group in groups))
