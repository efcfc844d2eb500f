"""Liveness of a control loop."""

from __future__ import annotations

import re

import pytest

from plimsoll.operator.health import Health, HealthTimeouts


@pytest.fixture
def health() -> Health:
    return Health(HealthTimeouts(inactivity_s=600, failing_s=900, startup_s=1200))


def assert_overdue(problem: str, what: str, *, waited: str, limit: str) -> None:
    """Check the facts of the problem: what is overdue, since when, and the limit."""
    assert what in problem
    assert re.findall(r"\d+m\d+s", problem) == [waited, limit]


def test_a_process_that_does_not_lead_is_healthy(health: Health):
    assert health.find_problem(1e9) == ""


def test_a_start_without_success_has_twenty_minutes(health: Health):
    health.begin(0)
    for second in range(0, 1300, 10):
        health.on_loop_finished(second, is_success=False)
    assert health.find_problem(1200) == ""
    assert_overdue(health.find_problem(1201), "start", waited="20m1s", limit="20m0s")


def test_ten_minutes_without_any_activity_are_too_many(health: Health):
    health.begin(0)
    health.on_loop_finished(5, is_success=True)
    assert health.find_problem(605) == ""
    assert_overdue(health.find_problem(606), "activity", waited="10m1s", limit="10m0s")


def test_fifteen_minutes_without_success_are_too_many(health: Health):
    health.begin(0)
    health.on_loop_finished(0, is_success=True)
    for second in range(10, 1000, 10):
        health.on_loop_started(second)
    assert health.find_problem(900) == ""
    assert_overdue(health.find_problem(901), "last success", waited="15m1s", limit="15m0s")


def test_a_process_that_stopped_leading_is_healthy(health: Health):
    health.begin(0)
    health.end()
    assert health.find_problem(10_000) == ""
