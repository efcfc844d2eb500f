"""Disruption budgets as an operator writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.config.flags import InvalidOptions
from plimsoll.nodes.config.node_disruption_budgets import BudgetScope, compute_allowed_disruptions, parse_budget
from plimsoll.nodes.config.options import read_options

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

MONDAY_NOON = datetime(2025, 1, 6, 12, tzinfo=UTC)
SUNDAY_NOON = datetime(2025, 1, 5, 12, tzinfo=UTC)


def most(written: str, *, reason: str = "Underutilized", now: datetime = MONDAY_NOON) -> int:
    return compute_allowed_disruptions([parse_budget(written)], BudgetScope(group="g", size=25, reason=reason), now)


def test_budgets_are_shares_or_numbers_for_some_reasons_at_some_times():
    assert most("10%") == 3
    assert most("2") == 2
    assert most("0:Empty") > 1_000_000
    assert most("0:Empty", reason="Empty") == 0
    assert most("0@0 9 * * mon-fri/8h") == 0
    assert most("0@0 9 * * mon-fri/8h", now=SUNDAY_NOON) > 1_000_000


@pytest.mark.parametrize("wrong", ["", "ten", "101%", "1%2", "2:Bored", "1@often/8h", "1@0 9 * * */soon", "-1"])
def test_a_budget_that_cannot_be_read_is_refused_with_an_example(wrong: str):
    with pytest.raises(InvalidInput):
        parse_budget(wrong)


def test_the_option_names_itself_when_a_budget_is_wrong(reviewed: ReviewedSentences):
    with pytest.raises(InvalidOptions) as raised:
        read_options({"consolidation-budget": "101%"})
    reviewed(str(raised.value))
