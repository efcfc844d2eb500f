"""The least that any plan must move, given where brokers end inside their windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.kafka.model.proposals import Bounds
from plimsoll.kafka.planning.loads import Metric

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.kafka.model.cluster import Floats, Ints
    from plimsoll.kafka.model.proposals import Proposal
    from plimsoll.kafka.planning.placement import Limits, Placement
    from plimsoll.solver.replicas.problem import Windows


def find_bounds(
    placement: Placement,
    proposals: Sequence[Proposal],
    windows: Windows | None,
    *,
    crowded: Ints,
    limits: Mapping[Metric, Limits],
) -> Bounds:
    """Moves and bytes of the proposals beside the least possible.

    Three things must move in any plan: what leaves, what racks hold too many of, and what takes brokers from outside
    their windows to inside. A broker that ends outside its window counts by the limits of the goal. Only brokers that
    end inside count, so the bound holds for this plan too.
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
        slack = windows.byte_slack
        low_bytes, high_bytes = windows.low_bytes - slack, windows.high_bytes + slack
        ranges = {
            Metric.REPLICAS: (windows.low_count.astype(np.float64), windows.high_count.astype(np.float64)),
            Metric.DISK: (low_bytes, high_bytes),
        }
        amounts = {Metric.REPLICAS: model.replica_counts.astype(np.float64), Metric.DISK: model.broker_bytes}
        least = {
            metric: _sum_groups(
                groups, amounts[metric], *_choose_ranges(placement.load[metric], *ranges[metric], limits.get(metric))
            )
            for metric in amounts
        }
        least_moves = max(least_moves, least[Metric.REPLICAS])
        least_bytes = max(least_bytes, least[Metric.DISK])
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


def _choose_ranges(after: Floats, low: Floats, high: Floats, limits: Limits | None) -> tuple[Floats, Floats]:
    """[B], [B]: the range that each broker ends in: its window, else the limits of the goal, else any."""
    low, high = low.copy(), high.copy()
    outside = (after < low) | (after > high)
    if limits is not None:
        low[outside], high[outside] = limits.low[outside], limits.high[outside]
        outside = (after < low) | (after > high)
    low[outside], high[outside] = -np.inf, np.inf
    return low, high


def _sum_groups(groups: Sequence[Ints], amounts: Floats, low: Floats, high: Floats) -> float:
    surplus, deficit = np.maximum(amounts - high, 0.0), np.maximum(low - amounts, 0.0)
    return float(sum(max(surplus[group].sum(), deficit[group].sum()) for group in groups))
