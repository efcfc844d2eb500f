"""Three hours of a noisy afternoon; the whole day is in tests/e2e."""

from __future__ import annotations

import pytest

from tests.nodes.autoscaler.noisy_days import DayRun


@pytest.mark.slow
def test_hours_of_noise_cost_little_more_than_they_must_and_no_node_goes_in_vain():
    hours = DayRun(seed="an afternoon", first_hour=15).run(3)
    assert hours.regained == 0
    assert hours.over_bound <= 1.15
