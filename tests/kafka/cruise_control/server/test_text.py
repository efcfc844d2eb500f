"""Answers as plain text compare like with like."""

from __future__ import annotations

import re

from plimsoll.kafka.cruise_control.server.bodies import build_optimization
from plimsoll.kafka.cruise_control.server.text import render_optimization
from plimsoll.kafka.model.proposals import OptimizationResult
from plimsoll.kafka.model.requests import Mode, RebalanceRequest
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.optimizer import optimize
from tests.kafka.planning.clusters import build_cluster, describe_broker, describe_topic


def test_a_plan_is_not_shown_below_its_own_bound():
    """Cruise Control counts whole MB per partition; the least possible has the plan in bytes beside it."""
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(3)]
    model = build_cluster(brokers, [describe_topic("t", [(0, 1)] * 6, size=(1 << 20) + 900_000)])
    result = optimize(model, RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(0,)), AnalyzerSettings())
    assert isinstance(result, OptimizationResult)
    text = render_optimization(build_optimization(result, verbose=False), load_after="After:")
    assert "Optimization has 6 inter-broker replica(6 MB) moves" in text
    found = re.search(r"Least possible: (\d+) replicas with (\S+) MB; this plan moves (\d+) with (\S+) MB", text)
    assert found is not None
    assert found.groups() == ("6", "11.1", "6", "11.1")
