"""One virtual day of a noisy workload: nodes hardly ever go in vain, and cost little more than they must.

Needs no server, but minutes of processor time.
"""

from __future__ import annotations

import pytest

from tests.nodes.loop.noisy_days import LivedDay


@pytest.mark.xfail(strict=True, reason="not reached: 2 of 55 removals in vain (3.6 %), cost 1.24 x the bound")
def test_a_day_of_noise():
    day = LivedDay(seed="a day", first_hour=6).run(25)
    assert day.removals > 20
    assert day.regained_share <= 0.01
    assert day.over_bound <= 1.15
