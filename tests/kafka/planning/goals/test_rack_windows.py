"""Racks with many more or many fewer brokers than others: their brokers are even among themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kafka.model.description import TopicDescription
from plimsoll.kafka.model.proposals import GoalStatus, OptimizationResult
from plimsoll.kafka.model.requests import Mode, RebalanceRequest
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.goals.distribution import DistributionGoal
from plimsoll.kafka.planning.optimizer import optimize
from tests.effort import share_of
from tests.kafka.planning.clusters import (
    GB,
    apply_proposals,
    build_cluster,
    describe_broker,
    describe_partition,
    rebuild_placement,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.kafka.model.cluster import ClusterModel

MB = 10**6
WINDOWED = ("ReplicaDistributionGoal", "DiskUsageDistributionGoal")


def build_racks(
    brokers: Sequence[int], *, new: Sequence[int], factor: int = 3, partitions: int = 18
) -> tuple[ClusterModel, dict[str, list[int]]]:
    """Racks with so many brokers and new ones, which are empty; every partition is in `factor` racks in turn."""
    racks: dict[str, list[int]] = {}
    described, first = [], 0
    for rack, count in enumerate(brokers):
        ids = list(range(first, first + count + new[rack]))
        racks[f"r{rack}"] = ids
        first += len(ids)
        described += [describe_broker(broker, rack=f"r{rack}", disk=100 * GB) for broker in ids]
    members = [ids[: brokers[rack]] for rack, ids in enumerate(racks.values())]
    found = []
    for number in range(partitions):
        chosen = [(number + place) % len(brokers) for place in range(factor)]
        replicas = [members[rack][number % len(members[rack])] for rack in chosen]
        found.append(describe_partition(number, replicas, size=MB))
    return build_cluster(described, [TopicDescription(name="orders", partitions=tuple(found))]), racks


def plan(model: ClusterModel, *brokers: int) -> OptimizationResult:
    request = RebalanceRequest(mode=Mode.ADD_BROKERS, brokers=brokers) if brokers else RebalanceRequest()
    result = optimize(model, request, AnalyzerSettings())
    assert isinstance(result, OptimizationResult), result
    return result


def count_replicas(model: ClusterModel, brokers: Sequence[int]) -> list[int]:
    counts = dict(zip(model.broker_ids.tolist(), model.replica_counts.tolist(), strict=True))
    return [counts[broker] for broker in brokers]


@pytest.mark.parametrize("added", [(6, 7, 8, 9), ()], ids=["add-brokers", "full"])
def test_empty_brokers_of_an_overfull_rack_share_its_replicas(added: tuple[int, ...]):
    model, racks = build_racks((6, 3, 3), new=(4, 0, 0))
    result = plan(model, *added)
    assert sorted(count_replicas(result.after, racks["r0"])) == [1, 1, 2, 2, 2, 2, 2, 2, 2, 2]
    assert result.bounds.moves == 6
    assert result.bounds.least_moves <= 6
    again = plan(apply_proposals(model, result), *added)
    assert again.proposals == ()
    statuses = {goal.goal: goal for goal in result.goals}
    for name in WINDOWED:
        assert statuses[name].status is GoalStatus.VIOLATED, "no plan brings all brokers near one mean"
        assert "rack r1 has 3 brokers and needs a replica of each of 18 partitions" in str(statuses[name].reason)


def test_one_more_broker_in_an_overfull_rack_gets_replicas():
    model, _ = build_racks((9, 3, 3), new=(1, 0, 0))
    result = plan(model, 9)
    assert 1 <= count_replicas(result.after, [9])[0] <= 2
    assert result.bounds.moves == count_replicas(result.after, [9])[0]


@pytest.mark.parametrize(("brokers", "factor"), [((4, 4, 4), 3), ((5, 4, 4), 2), ((6, 3, 3), 2), ((4, 4, 1), 1)])
def test_racks_that_can_be_near_one_mean_have_its_window(brokers: tuple[int, ...], factor: int):
    model, _ = build_racks(brokers, new=(0,) * len(brokers), factor=factor, partitions=120)
    _, goals = rebuild_placement(plan(model))
    for goal in goals:
        if isinstance(goal, DistributionGoal):
            assert goal.limits is not None
            assert np.array_equal(goal.window.low, goal.limits.low), goal.name
            assert np.array_equal(goal.window.high, goal.limits.high), goal.name


@settings(max_examples=share_of(20))
@given(st.data())
def test_no_new_broker_stays_far_below_the_mean_of_its_rack(data: st.DataObject):
    brokers = [data.draw(st.integers(3, 8)), *data.draw(st.lists(st.integers(1, 2), min_size=2, max_size=3))]
    factor = len(brokers)
    new = [
        data.draw(st.integers(2, 6)),
        *data.draw(st.lists(st.integers(0, 1), min_size=factor - 1, max_size=factor - 1)),
    ]
    model, racks = build_racks(brokers, new=new, factor=factor, partitions=data.draw(st.integers(12, 30)))
    added = [broker for rack, ids in enumerate(racks.values()) for broker in ids[brokers[rack] :]]
    result = plan(model, *added)
    for ids in racks.values():
        mean = model.partition_count / len(ids)
        counts = count_replicas(result.after, ids)
        assert min(counts) >= np.floor(mean * 0.8), (ids, counts)
        assert sum(counts) == model.partition_count
    assert result.bounds.least_moves <= result.bounds.moves <= 1.1 * max(result.bounds.least_moves, 10)
    assert len(plan(apply_proposals(model, result), *added).proposals) <= 1
