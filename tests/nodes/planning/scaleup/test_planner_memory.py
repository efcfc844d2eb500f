"""The largest request, 32 sets of 16,384 pods, is planned without an object for each pod."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning.builders import nap
from tests.nodes.planning.scale_up_clusters import COST, added, group, machine, waiting, world

if TYPE_CHECKING:
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot

PODS = 16_384
MIB = 1 << 20


def peak_of(snapshot: Snapshot, policy: Policy) -> tuple[ScaleUpPlan, int]:
    plan_scale_up(world(waiting("warm"), groups=snapshot.groups, machine_types=snapshot.machine_types), policy)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        plan = plan_scale_up(snapshot, policy)
        return plan, tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_the_largest_request_on_one_group():
    sets = [waiting(f"set-{index}", PODS, labels={"set": str(index)}, bundle="default/r") for index in range(32)]
    plan, peak = peak_of(world(*sets, groups=[group("g", cpu=32, most=20_000)]), COST)
    assert added(plan) == {"g": 16_384}
    assert plan.scheduled == 32 * PODS
    assert peak < 50 * MIB


def test_the_largest_request_in_different_shapes_through_auto_provisioning():
    sets = [waiting(f"set-{index}", PODS, 0.25 * (1 + index % 31), bundle="default/r") for index in range(32)]
    types = tuple(machine(f"m{cpu}-{ratio}", cpu, cpu * ratio) for cpu in (1, 4, 16, 64) for ratio in (2, 4, 7))
    plan, peak = peak_of(world(*sets, machine_types=types), nap(max_autoprovisioned_node_group_count=30))
    assert plan.scheduled == 32 * PODS
    assert plan.cost_per_hour <= 1.02 * plan.lower_bound_per_hour
    assert peak < 50 * MIB
