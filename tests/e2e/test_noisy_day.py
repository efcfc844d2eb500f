"""A noisy workload in virtual time: nodes are hardly ever removed in vain, and cost little more than they must.

Nodes with a utilization below 0.65 may be removed: at the default of 0.5, a scheduler that spreads pods keeps a fifth
more nodes than needed. The test needs no server, but a minute of processor time; a long run plays the whole day.
"""

from __future__ import annotations

import pytest

from tests.effort import IS_LONG
from tests.nodes.autoscaler.noisy_days import DayRun

FIRST_HOUR, HOURS = (6, 25) if IS_LONG else (15, 8)


@pytest.mark.slow
def test_a_day_of_noise():
    day = DayRun(seed="a day", first_hour=FIRST_HOUR, **{"scale-down-utilization-threshold": 0.65}).run(HOURS)
    assert day.removals > 20
    assert day.regained_share <= 0.01
    assert day.over_bound <= 1.15
