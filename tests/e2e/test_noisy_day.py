"""One virtual day of a noisy workload: nodes hardly ever go in vain, and cost little more than they must.

Nodes that are used to less than 0.65 may go: by the default of a half, a scheduler that spreads pods keeps a fifth more
nodes than needed. Needs no server, but minutes of processor time.
"""

from __future__ import annotations

from tests.nodes.loop.noisy_days import LivedDay


def test_a_day_of_noise():
    day = LivedDay(seed="a day", first_hour=6, **{"scale-down-utilization-threshold": 0.65}).run(25)
    assert day.removals > 20
    assert day.regained_share <= 0.01
    assert day.over_bound <= 1.15
