"""Budgets of disruption and when their windows are open."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.config.node_disruption_budgets import (
    DEFAULT_BUDGETS,
    EMPTY,
    UNDERUTILIZED,
    UNLIMITED,
    BudgetScope,
    DisruptionBudget,
    Window,
    compute_allowed_disruptions,
)

THURSDAY_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "minutes", "is_open"),
    [
        ("0 12 * * *", 1, True),
        ("0 11 * * *", 60, False),
        ("0 11 * * *", 61, True),
        ("@daily", 12 * 60, False),
        ("@daily", 12 * 60 + 1, True),
        ("*/30 9-17 * * mon-fri", 10, True),
        ("*/30 9-17 * * sat,sun", 10, False),
        ("0 12 * feb *", 10, False),
        ("0 12 5 * thu", 10, True),
        ("0 12 5 * fri", 10, False),
        ("0 12 1 * fri", 10, True),
        ("0 12 1 1 *", 10, True),
        ("55/2 11 * * *", 4, True),
        ("55/2 11 * * *", 1, False),
        ("0 12 ? * thu-4/3", 10, True),
        ("0 12 ? * 3-wed/1", 10, False),
        ("0 12 * * 1/3", 10, True),
        ("0 12 31 feb *", 10, False),
    ],
)
def test_a_window_is_open_from_when_its_schedule_fires(schedule: str, minutes: int, is_open: bool):
    assert Window(schedule, duration_s=minutes * 60).is_open(THURSDAY_NOON) is is_open


def test_steps_over_days_of_the_week_end_on_saturday():
    sunday_noon = datetime(2026, 1, 4, 12, tzinfo=UTC)
    assert not Window("0 12 * * 1/2", duration_s=60).is_open(sunday_noon)
    assert not Window("0 12 * * sat/1", duration_s=60).is_open(sunday_noon)
    assert Window("0 12 * * */6", duration_s=60).is_open(sunday_noon)


@pytest.mark.parametrize("schedule", ["", "61 * * * *", "@every 5m", "* * *"])
def test_an_unreadable_schedule_is_refused(schedule: str):
    with pytest.raises(InvalidInput):
        Window(schedule, duration_s=60)


def most(*budgets: DisruptionBudget, size: int = 30, reason: str = EMPTY, group: str = "g") -> int:
    return compute_allowed_disruptions(budgets, BudgetScope(group=group, size=size, reason=reason), THURSDAY_NOON)


def test_one_in_ten_and_never_less_than_one():
    assert most(*DEFAULT_BUDGETS, size=30) == 3
    assert most(*DEFAULT_BUDGETS, size=31) == 4
    assert most(*DEFAULT_BUDGETS, size=1) == 1


def test_the_smallest_budget_that_holds_counts():
    assert most(DisruptionBudget(nodes=5), DisruptionBudget(nodes=2), DisruptionBudget(percent=50)) == 2
    assert most() == UNLIMITED


def test_a_budget_may_be_for_one_reason_or_one_group():
    only = DisruptionBudget(nodes=0, reasons=frozenset({UNDERUTILIZED}), groups=frozenset({"g"}))
    assert most(only, reason=UNDERUTILIZED) == 0
    assert most(only, reason=EMPTY) == UNLIMITED
    assert most(only, reason=UNDERUTILIZED, group="h") == UNLIMITED


def test_a_budget_holds_only_in_its_window():
    closed = DisruptionBudget(nodes=0, window=Window("0 3 * * *", duration_s=3600))
    assert most(closed, DisruptionBudget(nodes=4)) == 4
    assert most(DisruptionBudget(nodes=0, window=Window("0 12 * * *", duration_s=3600))) == 0
