"""Plans of small worlds with rules between pods against the cheapest that trying everything finds."""

from __future__ import annotations

from statistics import mean

from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.effort import IS_LONG
from tests.nodes.planning.plan_checks import problems
from tests.nodes.planning.scale_up_clusters import COST
from tests.nodes.planning.topology.small_worlds import SmallWorld


def measure_excess(seed: int) -> float | None:
    """The cost of the plan above the least possible; None if pods are left."""
    small = SmallWorld.draw(seed)
    snapshot = small.build_snapshot()
    plan = plan_scale_up(snapshot, COST)
    assert problems(snapshot, COST, plan) == [], f"seed {seed}"
    if plan.unschedulable:
        assert small.find_cheapest(below=3.0) is None, f"seed {seed}: all pods can be scheduled"
        return None
    cheapest = small.find_cheapest(below=plan.cost_per_hour)
    return 0.0 if cheapest is None else plan.cost_per_hour / cheapest - 1


def test_small_plans_are_close_to_the_cheapest():
    found = [excess for seed in range(2_000 if IS_LONG else 80) if (excess := measure_excess(seed)) is not None]
    assert mean(found) <= 0.02
    assert sum(excess > 0.25 for excess in found) <= max(1, 0.02 * len(found))
    assert max(found) <= 0.5
