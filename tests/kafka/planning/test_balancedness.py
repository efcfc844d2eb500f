"""K28: the balancedness score equals Cruise Control's, on the specified statuses and on recorded answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kafka.model.proposals import GoalStatus
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.balancedness import score_goals, weigh_goals
from plimsoll.kafka.planning.goal_list import DEFAULT_GOALS

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWERS = Path(__file__).parents[2] / "fixtures" / "cruise_control"
CRUISE_CONTROL_GOALS = [
    goal for goal in DEFAULT_GOALS if goal not in {"RackAwareDistributionGoal", "MinTopicLeadersPerBrokerGoal"}
]


def list_recorded_proposals() -> list[tuple[str, dict[str, Any]]]:
    """Every recorded answer that carries a goal summary, also inside the text of a user task."""
    return [
        (path.stem, answer)
        for path in sorted(ANSWERS.glob("*.json"))
        for answer in _find_summaries(json.loads(path.read_text()))
    ]


def _find_summaries(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "goalSummary" in value and "summary" in value:
            yield value
        for child in value.values():
            yield from _find_summaries(child)
    elif isinstance(value, list):
        for child in value:
            yield from _find_summaries(child)
    elif isinstance(value, str) and value.startswith("{") and "goalSummary" in value:
        yield from _find_summaries(json.loads(value))


RECORDED = list_recorded_proposals()


def test_k28_the_specified_statuses_have_the_specified_scores():
    fixed = {"DiskUsageDistributionGoal", "NetworkOutboundUsageDistributionGoal"}
    violated = {
        "NetworkInboundUsageDistributionGoal",
        "CpuUsageDistributionGoal",
        "LeaderReplicaDistributionGoal",
        "LeaderBytesInDistributionGoal",
    }
    statuses = [
        (
            goal,
            GoalStatus.FIXED if goal in fixed else GoalStatus.VIOLATED if goal in violated else GoalStatus.NO_ACTION,
        )
        for goal in CRUISE_CONTROL_GOALS
    ]
    assert score_goals(statuses) == pytest.approx((79.74705957325753, 87.66421502095022), abs=1e-9)


def test_k28_there_are_at_least_seventeen_recorded_answers():
    assert len(RECORDED) >= 17


@pytest.mark.parametrize(("name", "answer"), RECORDED, ids=[name for name, _ in RECORDED])
def test_k28_recorded_statuses_have_the_recorded_scores(name: str, answer: dict[str, Any]):
    statuses = [(goal["goal"], GoalStatus(goal["status"])) for goal in answer["goalSummary"]]
    summary = answer["summary"]
    recorded = summary["onDemandBalancednessScoreBefore"], summary["onDemandBalancednessScoreAfter"]
    assert score_goals(statuses) == pytest.approx(recorded, abs=1e-9)


def test_the_costs_of_all_goals_are_a_hundred():
    assert sum(weigh_goals(DEFAULT_GOALS, AnalyzerSettings()).values()) == pytest.approx(100.0)
