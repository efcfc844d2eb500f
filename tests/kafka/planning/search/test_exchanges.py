"""Which replicas move is part of the search, and reasons say what it found (docs/design/kafka.md 8.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kafka.model.cluster import build_model
from plimsoll.kafka.model.description import ClusterDescription, TopicDescription
from plimsoll.kafka.model.proposals import GoalStatus, OptimizationResult
from plimsoll.kafka.model.requests import Mode, RebalanceRequest
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.goals import obstacles
from plimsoll.kafka.planning.goals.distribution import DistributionGoal
from plimsoll.kafka.planning.loads import Metric
from plimsoll.kafka.planning.optimizer import optimize
from tests.effort import share_of
from tests.kafka.planning.clusters import describe_broker, describe_partition, rebuild_placement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kafka.model.cluster import Floats
    from plimsoll.kafka.planning.goals.goal import Goal
    from plimsoll.kafka.planning.placement import Placement

LEADERS = "LeaderReplicaDistributionGoal"
MB = 10**6
METRICS = {
    "ReplicaDistributionGoal": Metric.REPLICAS,
    "DiskUsageDistributionGoal": Metric.DISK,
    LEADERS: Metric.LEADERS,
}


@st.composite
def clusters(draw: st.DrawFn, mode: Mode) -> tuple[ClusterDescription, RebalanceRequest]:
    """Three racks, a few partitions, the last broker is new or leaves."""
    count = draw(st.integers(4, 6))
    brokers = tuple(describe_broker(index, rack=f"r{index % 3}") for index in range(count))
    hosts = range(count - 1) if mode is Mode.ADD_BROKERS else range(count)
    factor = draw(st.integers(1, 3))
    racks = [[broker for broker in hosts if broker % 3 == rack] for rack in range(3)]
    partitions = []
    for number in range(draw(st.integers(4, 16))):
        chosen = draw(st.permutations(racks))[:factor]
        replicas = tuple(draw(st.sampled_from(rack)) for rack in chosen)
        partitions.append(describe_partition(number, replicas, size=draw(st.sampled_from([MB, MB, 2 * MB]))))
    topic = TopicDescription(name="t", partitions=tuple(partitions))
    return ClusterDescription(brokers=brokers, topics=(topic,)), RebalanceRequest(mode=mode, brokers=(count - 1,))


def measure(goals: list[Goal]) -> dict[str, Floats]:
    """How far each broker is from the limits of each goal."""
    return {
        goal.name: np.array([goal.measure_violation()])
        if goal.limits is None
        else np.abs(goal.limits.measure_excess(goal.placement.load))
        for goal in goals
    }


def may_be(placement: Placement, row: int, broker: int) -> bool:
    """Whether a replica and its leadership may be on a broker: its rack has no other one of the partition."""
    model, partition = placement.model, placement.model.partition_of[row]
    members = [int(other) for other in placement.rows[partition] if other not in {-1, row}]
    if any(model.rack_of[placement.broker_of[other]] == model.rack_of[broker] for other in members):
        return False
    leads = placement.leading[partition] == row
    return not leads or bool(placement.scope.may_lead[broker]) or model.leader[partition] == broker


def list_exchanges(placement: Placement) -> Iterator[tuple[int, int, int, int]]:
    """A replica that moves and one that comes in its place: (row, to, row, to). No move more, no byte more."""
    model, sizes = placement.model, placement.model.size_bytes[placement.model.partition_of]
    is_add = placement.scope.mode is Mode.ADD_BROKERS
    moved = np.flatnonzero(placement.moved).tolist()
    for row in moved:
        here, home = int(placement.broker_of[row]), int(model.broker_of[row])
        others = np.flatnonzero((placement.broker_of == home) & ~placement.moved).tolist() if is_add else moved
        for other in others:
            there = int(placement.broker_of[other])
            if there == here or model.partition_of[row] == model.partition_of[other]:
                continue
            if is_add and sizes[other] > sizes[row]:
                continue
            if may_be(placement, row, there) and may_be(placement, other, here):
                yield row, there, other, here


def find_better(placement: Placement, goals: list[Goal]) -> str:
    """An exchange after which leaders are evener, and no goal before them is worse; empty: there is none."""
    before = measure(goals)
    for row, there, other, here in list(list_exchanges(placement)):
        partition = placement.model.partition_of[other]
        for leads in (False, True):
            saved = placement.save()
            placement.move(row, there)
            placement.move(other, here)
            if leads and placement.scope.may_lead[here] and placement.scope.leadership_is_movable[partition]:
                placement.lead(other)
            after = measure(goals)
            placement.restore(saved)
            is_no_worse = all((after[name] <= before[name] + 1e-6).all() for name in before if name != LEADERS)
            if is_no_worse and after[LEADERS].sum() < 0.9 * before[LEADERS].sum() - 1e-6:
                return f"row {row} to {there}, row {other} to {here}, leads: {leads}"
    return ""


def plan(description: ClusterDescription, request: RebalanceRequest) -> OptimizationResult:
    result = optimize(build_model(description), request, AnalyzerSettings())
    assert isinstance(result, OptimizationResult), result
    return result


@pytest.mark.parametrize("mode", [Mode.ADD_BROKERS, Mode.REMOVE_BROKERS])
@settings(max_examples=share_of(200))
@given(st.data())
def test_no_replica_that_moves_could_be_exchanged_for_one_that_evens_leaders(mode: Mode, data: st.DataObject):
    result = plan(*data.draw(clusters(mode)))
    placement, goals = rebuild_placement(result)
    assert find_better(placement, goals) == ""


def test_what_is_undone_in_the_end_may_open_an_exchange_that_evens_leaders():
    """The last pass takes one move back. Then another replica is the better one to move."""
    brokers = tuple(describe_broker(index, rack=f"r{index % 3}") for index in range(4))
    assignment = [(0, 1)] * 5 + [(0, 2)] * 3 + [(2, 1)] * 2 + [(1, 2)] * 2
    partitions = tuple(
        describe_partition(number, replicas, size=2 * MB if number == 9 else MB)
        for number, replicas in enumerate(assignment)
    )
    description = ClusterDescription(brokers=brokers, topics=(TopicDescription(name="t", partitions=partitions),))
    result = plan(description, RebalanceRequest(mode=Mode.ADD_BROKERS, brokers=(3,)))
    placement, goals = rebuild_placement(result)
    assert find_better(placement, goals) == ""
    assert sorted(result.after.leader_counts.tolist()) == [2, 2, 2, 6]


@pytest.mark.parametrize("mode", [Mode.ADD_BROKERS, Mode.REMOVE_BROKERS, Mode.FULL])
@settings(max_examples=share_of(100))
@given(st.data())
def test_reasons_have_the_numbers_of_the_proposed_state(mode: Mode, data: st.DataObject):
    description, request = data.draw(clusters(Mode.REMOVE_BROKERS if mode is Mode.FULL else mode))
    result = plan(description, RebalanceRequest() if mode is Mode.FULL else request)
    placement, goals = rebuild_placement(result)
    limits = {goal.name: goal.window if isinstance(goal, DistributionGoal) else goal.limits for goal in goals}
    for goal in result.goals:
        if goal.status is not GoalStatus.VIOLATED or goal.goal not in METRICS:
            continue
        reason, goal_limits = goal.reason, limits[goal.goal]
        assert reason is not None
        assert goal_limits is not None
        excess = goal_limits.measure_excess(placement.load)
        broker = placement.model.index_of_broker[reason.facts["broker"]]
        assert reason.facts["value"] == placement.load[METRICS[goal.goal], broker]
        assert reason.facts["outside"] == np.count_nonzero(excess)
        assert abs(excess[broker]) == np.abs(excess).max()
        assert reason.because


def test_a_reason_says_how_many_changes_it_did_not_examine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(obstacles, "_EXAMINED_AT_MOST", 5)
    brokers = tuple(describe_broker(index, rack=f"r{index}") for index in range(3))
    partitions = tuple(describe_partition(number, (0, 1), size=MB) for number in range(8))
    description = ClusterDescription(brokers=brokers, topics=(TopicDescription(name="t", partitions=partitions),))
    result = plan(description, RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(2,)))
    reason = next(goal.reason for goal in result.goals if goal.goal == LEADERS)
    assert reason is not None
    assert "each of 5 would not be allowed in mode remove-brokers (3 more were not examined)" in str(reason)


def test_a_reason_counts_what_forbids_the_changes():
    """Nothing is on the broker that leaves, so nothing may move, and broker 0 leads all."""
    brokers = tuple(describe_broker(index, rack=f"r{index % 2}") for index in range(3))
    partitions = tuple(describe_partition(number, (0, 1), size=MB) for number in range(8))
    description = ClusterDescription(brokers=brokers, topics=(TopicDescription(name="t", partitions=partitions),))
    result = plan(description, RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(2,)))
    reason = next(goal.reason for goal in result.goals if goal.goal == LEADERS)
    assert reason is not None
    assert [cause.message for cause in reason.because] == [
        "no move off broker 0 is accepted: each of 8 would not be allowed in mode remove-brokers",
        "no change of leader away from broker 0 is accepted: each of 8 would not be allowed in mode remove-brokers",
    ]
