"""Numbers for people have one style."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from plimsoll.core.formatting import format_age, format_amount, format_limit, format_money, format_time


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 500_000, "500"),
        ("cpu", 3_920, "3.92"),
        ("cpu", 250, "0.25"),
        ("memory", 8 << 30, "8Gi"),
        ("memory", 830_000_000_000, "773Gi"),
        ("memory", 1 << 40, "1Ti"),
        ("memory", 0, "0"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("nvidia.com/gpu", 8, "8"),
    ],
)
def test_amounts_have_the_units_of_kubernetes(resource: str, amount: int, text: str):
    assert format_amount(resource, amount) == text


@pytest.mark.parametrize(
    ("amount", "text"), [(11.29, "11.29 USD"), (4.779_999, "4.78 USD"), (0.0425, "0.0425 USD"), (0, "0.00 USD")]
)
def test_money_has_a_currency(amount: float, text: str):
    assert format_money(amount) == text
    assert format_money(amount, "EUR").endswith(" EUR")


def test_a_limit_that_is_none_says_so():
    assert format_limit(2**31 - 1) == "no limit"
    assert format_limit(100) == "100"


def test_times_have_a_zone_and_ages_one_unit():
    assert format_time(datetime(2026, 1, 31, 12, tzinfo=UTC)) == "2026-01-31 12:00:00 UTC"
    assert [format_age(seconds) for seconds in (15, 200, 7_200, 200_000)] == ["15 s", "3 min", "2 h", "2 d"]
