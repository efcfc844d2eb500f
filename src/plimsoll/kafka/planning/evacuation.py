"""Replicas that must leave: places for them, and leaders among the replicas that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.core.formatting import format_count
from plimsoll.core.plans import Reason
from plimsoll.kafka.model.cluster import NONE
from plimsoll.kafka.model.proposals import Refusal
from plimsoll.kafka.planning.loads import Metric
from plimsoll.kafka.planning.placement import RackRule
from plimsoll.kafka.planning.scope import BrokerRole, explain_uncounted, explain_uneven_factor, list_partitions
from plimsoll.kafka.planning.search.metric_search import list_able_to_lead
from plimsoll.kafka.planning.search.relocation import relocate

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import Ints
    from plimsoll.kafka.planning.placement import Placement
    from plimsoll.kafka.planning.search.budget import Budget


def check_brokers_left(placement: Placement, goal: str) -> Refusal | None:
    """A refusal if a partition has more replicas than brokers are left for them."""
    model, scope = placement.model, placement.scope
    left = int((scope.is_alive & (scope.role != BrokerRole.LEAVING)).sum())
    partitions = model.partition_of[scope.must_leave]
    if not len(partitions):
        return None
    factors = np.diff(model.offsets)[partitions]
    most = int(factors.max())
    if most <= left:
        return None
    topic_index = int(model.topic_of[partitions[int(factors.argmax())]])
    topic = model.topics[topic_index]
    return Refusal(
        goal=goal,
        reason=Reason(
            code="InsufficientBrokers",
            message=f"topic {topic} has replication factor {most}, brokers left {left}",
            facts={"topic": topic, "replicationFactor": most, "brokers": left},
            because=(
                *explain_uneven_factor(model, topic_index, most),
                *explain_uncounted(model, scope.is_alive | (scope.role == BrokerRole.LEAVING)),
            ),
        ),
    )


def evacuate(placement: Placement, goals: tuple[str, ...], budget: Budget) -> Refusal | None:
    """Move what must leave and has not moved yet, and hand its leadership over; a refusal names what has no place."""
    if placement.has_brokers_for_followers_only:
        _hand_over_leaders(placement, budget)
    must_leave = placement.scope.must_leave & ~placement.moved
    unplaced = relocate(placement, np.flatnonzero(must_leave), budget)
    if len(unplaced):
        return _refuse_unplaced(placement, goals, unplaced)
    _hand_over_leaders(placement, budget)
    return None


def keep_leaders_off_excluded_brokers(placement: Placement, budget: Budget) -> None:
    """Leaders that moved onto brokers that may not lead: another replica leads, or they go elsewhere, or back."""
    model, scope = placement.model, placement.scope
    if not placement.has_brokers_for_followers_only:
        return
    leading = placement.leading[placement.leading != NONE]
    for row in leading[placement.moved[leading] & ~scope.takes_leaders[placement.broker_of[leading]]].tolist():
        budget.spend()
        partition = model.partition_of[row]
        rows = np.arange(model.offsets[partition], model.offsets[partition + 1])
        able = rows[list_able_to_lead(placement, rows) & scope.leadership_is_movable[partition]]
        if len(able):
            placement.lead(int(able[placement.load[Metric.LEADERS][placement.broker_of[able]].argmin()]))
            continue
        moved = np.array([row], dtype=np.int64)
        if placement.list_returnable(moved)[0]:
            placement.move(row, int(model.broker_of[row]))
        else:
            relocate(placement, moved, budget)


def _refuse_unplaced(placement: Placement, goals: tuple[str, ...], rows: Ints) -> Refusal:
    model, scope = placement.model, placement.scope
    partitions = np.unique(model.partition_of[rows])
    legal = placement.list_legal(rows[:1])[0]
    size = float(placement.loads.of_replica[Metric.DISK][model.partition_of[rows]].sum())
    if not legal.any():
        is_racks = placement.rack_rule is RackRule.ONE_PER_RACK
        goal = "RackAwareGoal" if is_racks else goals[0]
        cause = (
            "no broker that may take them is in a rack without the partition"
            if is_racks
            else ("every broker that may take replicas has one of the partition")
        )
    else:
        goal = next((name for name in ("DiskCapacityGoal", "ReplicaCapacityGoal") if name in goals), goals[0])
        cause = "the brokers that may take them are full"
    return Refusal(
        goal=goal,
        reason=Reason(
            code="NoPlace",
            message=f"{format_count(len(rows), 'replica that must leave has', 'replicas that must leave have')} "
            f"no place ({list_partitions(model, partitions)}): {cause}",
            facts={"replicas": len(rows), "partitions": len(partitions), "bytes": size},
            because=explain_uncounted(model, scope.is_known | (scope.role == BrokerRole.LEAVING)),
        ),
    )


def _hand_over_leaders(placement: Placement, budget: Budget) -> None:
    """A leader that leaves hands over to an in-sync follower that stays, the one whose broker leads least."""
    model, scope = placement.model, placement.scope
    leading = placement.leading
    is_leaving = (leading != NONE) & scope.must_leave[leading]
    load = placement.load[Metric.LEADERS]
    for partition in np.flatnonzero(is_leaving).tolist():
        budget.spend()
        rows = model.offsets[partition] + np.arange(model.offsets[partition + 1] - model.offsets[partition])
        rows = rows[~scope.must_leave[rows]]
        rows = rows[list_able_to_lead(placement, rows)]
        if len(rows):
            placement.lead(int(rows[load[placement.broker_of[rows]].argmin()]))
