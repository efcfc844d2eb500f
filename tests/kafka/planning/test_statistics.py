"""Statistics of brokers, in the units and by the rules of Cruise Control."""

from __future__ import annotations

import pytest

from plimsoll.kafka.model.proposals import OptimizationResult
from plimsoll.kafka.model.requests import Mode, RebalanceRequest
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.optimizer import optimize
from tests.kafka.planning.clusters import build_cluster, describe_broker, describe_topic

MIB = 1 << 20
ONE_GOAL = ("ReplicaCapacityGoal",)


def test_means_deviations_and_extremes_are_those_of_cruise_control():
    """Its recorded cluster has 80, 77 and 80 replicas on three brokers: mean 79, deviation 1.41."""
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(3)]
    rows = [(0, 2)] * 80 + [(1,)] * 77
    model = build_cluster(brokers, [describe_topic("t", rows, size=2 * MIB)])
    result = optimize(model, RebalanceRequest(goals=ONE_GOAL, skip_hard_goal_check=True), AnalyzerSettings())
    assert isinstance(result, OptimizationResult)
    statistics = result.goals[0].statistics
    assert (statistics.brokers, statistics.replicas, statistics.topics) == (3, 237, 1)
    assert statistics.average.replicas == 79.0
    assert statistics.standard_deviation.replicas == pytest.approx(1.414213562373095)
    assert (statistics.minimum.replicas, statistics.maximum.replicas) == (77.0, 80.0)
    assert statistics.average.disk == pytest.approx(2 * 79)
    assert (statistics.minimum.leader_replicas, statistics.maximum.leader_replicas) == (0.0, 80.0)
    assert statistics.average.topic_replicas == 79.0
    assert statistics.standard_deviation.topic_replicas == pytest.approx(1.414213562373095)


def test_a_removed_broker_counts_among_extremes_and_not_among_means():
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(4)]
    model = build_cluster(brokers, [describe_topic("t", [(0, 1, 3)] * 9 + [(2, 1, 0)] * 3)])
    request = RebalanceRequest(
        mode=Mode.REMOVE_BROKERS, brokers=(3,), goals=("RackAwareGoal",), skip_hard_goal_check=True
    )
    result = optimize(model, request, AnalyzerSettings())
    assert isinstance(result, OptimizationResult)
    statistics = result.goals[0].statistics
    assert statistics.brokers == 4
    assert statistics.average.replicas == 12.0
    assert statistics.standard_deviation.replicas == 0.0
    assert (statistics.minimum.replicas, statistics.maximum.replicas) == (0.0, 12.0)
