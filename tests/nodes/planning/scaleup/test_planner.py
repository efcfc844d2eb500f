"""A few pods cost no more than they have to: there a node too many is a third of the money."""

from __future__ import annotations

from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning.scale_up_clusters import COST, group, waiting, world


def test_nine_pods_that_fit_three_nodes_get_three():
    pods = [
        waiting(name, count, requests={"cpu": f"{milli}m", "memory": f"{mebi}Mi"})
        for name, count, milli, mebi in (("a", 2, 699, 1704), ("b", 4, 544, 206), ("c", 3, 737, 1808))
    ]
    plan = plan_scale_up(world(*pods, groups=[group("g", cpu=2, memory="4000Mi")]), COST)
    assert not plan.unschedulable
    assert sum(growth.added for growth in plan.scale_ups) == 3
