"""The balancedness score of Cruise Control: 100 minus the cost of violated goals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.kafka.model.proposals import GoalStatus
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.goal_list import HARD_GOALS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LARGEST_SCORE = 100.0


def score_goals(
    statuses: Sequence[tuple[str, GoalStatus]], settings: AnalyzerSettings | None = None
) -> tuple[float, float]:
    """The scores before and after, from the status of each goal by priority.

    A goal that moved something was violated before; only a goal that failed is violated after.
    """
    costs = weigh_goals([goal for goal, _ in statuses], settings or AnalyzerSettings())
    before = sum(costs[goal] for goal, status in statuses if status is not GoalStatus.NO_ACTION)
    after = sum(costs[goal] for goal, status in statuses if status is GoalStatus.VIOLATED)
    return LARGEST_SCORE - before, LARGEST_SCORE - after


def weigh_goals(goals: Sequence[str], settings: AnalyzerSettings) -> Mapping[str, float]:
    """What the violation of each goal costs; together 100."""
    weights = {
        goal: settings.priority_weight ** (len(goals) - index)
        * (settings.strictness_weight if goal in HARD_GOALS else 1.0)
        for index, goal in enumerate(goals)
    }
    total = sum(weights.values())
    return {goal: LARGEST_SCORE * weight / total for goal, weight in weights.items()}
