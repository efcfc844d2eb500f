"""A plan does not depend on what cannot matter: order, names, useless offers, scale, kernels, hash seeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.solver.kernels import is_cache_warm
from tests.nodes.planning.builders import nap, policy
from tests.nodes.planning.plan_checks import placed
from tests.nodes.planning.scale_up_clusters import COST, added, group, machine, snapshots, waiting, world
from tests.scheduling.builders import spread

if TYPE_CHECKING:
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot

few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def answer(plan: ScaleUpPlan) -> Any:
    return plan.cost_per_hour, placed(plan), added(plan)


@few
@given(snapshots(social=False, nap=False), st.randoms(use_true_random=False))
def test_the_order_of_pods_and_groups_does_not_matter(snapshot: Snapshot, random: Any):
    groups, pending = list(snapshot.groups), list(snapshot.pending)
    random.shuffle(groups)
    random.shuffle(pending)
    other = replace(snapshot, groups=tuple(groups), pending=tuple(pending))
    one, two = plan_scale_up(snapshot, COST), plan_scale_up(other, COST)
    assert one.scheduled == two.scheduled
    assert one.cost_per_hour == two.cost_per_hour


def renamed(snapshot: Snapshot) -> Snapshot:
    """Every node label "disk" is called "tier" instead."""

    def label(labels: Any) -> dict[str, str]:
        return {("tier" if key == "disk" else key): value for key, value in labels.items()}

    pending = tuple(
        replace(
            pending_pods,
            pod=structs.replace(
                pending_pods.pod,
                spec=structs.replace(pending_pods.pod.spec, node_selector=label(pending_pods.pod.spec.node_selector)),
            ),
        )
        for pending_pods in snapshot.pending
    )
    groups = tuple(
        replace(
            node_group,
            template=structs.replace(
                node_group.template,
                metadata=structs.replace(
                    node_group.template.metadata, labels=label(node_group.template.metadata.labels)
                ),
            ),
        )
        for node_group in snapshot.groups
    )
    return replace(snapshot, pending=pending, groups=groups)


@few
@given(snapshots(nap=False))
def test_the_name_of_a_label_does_not_matter(snapshot: Snapshot):
    empty = world(*snapshot.pending, groups=snapshot.groups)
    assert answer(plan_scale_up(empty, COST)) == answer(plan_scale_up(renamed(empty), COST))


@few
@given(snapshots(nap=False))
def test_a_group_that_no_pod_can_use_does_not_matter(snapshot: Snapshot):
    taint = {"key": "nobody", "value": "x", "effect": "NoSchedule"}
    useless = group("useless", cpu=64, price=0.01, taints=[taint])
    other = replace(snapshot, groups=(*snapshot.groups, useless))
    assert answer(plan_scale_up(snapshot, COST)) == answer(plan_scale_up(other, COST))


def test_a_machine_type_that_no_pod_can_use_does_not_matter():
    types = (machine("m4", 4), machine("m16", 16))
    pending = [waiting("web", 7), waiting("db", 3, 3)]
    plan = plan_scale_up(world(*pending, machine_types=types), nap())
    more = plan_scale_up(world(*pending, machine_types=(*types, machine("tiny", 0, 0.1, price=0.001))), nap())
    assert answer(plan) == answer(more)


@pytest.mark.parametrize("times", [2, 10, 1000])
def test_a_request_so_many_times_as_large_costs_so_many_times_as_much(times: int):
    def plan(by: int) -> ScaleUpPlan:
        groups = [group("a", cpu=4, most=10 * by), group("b", cpu=16, most=4 * by, price=1.5)]
        pending = [waiting("web", 12 * by), waiting("db", 5 * by, 3), waiting("big", 2 * by, 7)]
        return plan_scale_up(world(*pending, groups=groups), policy(expander="cost", max_cpu=100 * by))

    once, often = plan(1), plan(times)
    assert often.scheduled == once.scheduled * times
    dearest = 1.5
    assert often.cost_per_hour <= once.cost_per_hour * times + 1e-6
    assert often.cost_per_hour >= once.cost_per_hour * times * 0.9 - dearest


_PROGRAM = """
import json
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning.scaleup.test_planner_metamorphic import mixed_world
from tests.nodes.planning.builders import nap
plan = plan_scale_up(mixed_world(), nap(max_cpu=60))
print(json.dumps({
    "growths": [[g.option.group, g.after, [[p.nodes, dict(p.pods)] for p in g.patterns]] for g in plan.scale_ups],
    "existing": {n: dict(f) for n, f in plan.existing.items()},
    "remaining": [[r.pods, dict(r.keys), [str(x) for x in r.reasons]] for r in plan.unschedulable],
    "cost": plan.cost_per_hour, "bound": plan.lower_bound_per_hour,
}))
"""


def mixed_world() -> Snapshot:
    pending = [
        waiting("web", 9, **spread({"app": "web"})),
        waiting("db", 4, 3, age=60),
        waiting("red", 3, nodeSelector={"color": "red"}),
        waiting("blue", 3, 2, nodeSelector={"color": "blue"}),
        waiting("whole", 40, 2, bundle="default/whole"),
        waiting("ml", 2, tolerations=[{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]),
    ]
    groups = [group(f"g-{zone}", zone=zone, most=2) for zone in "abc"]
    types = (machine("m4", 4, zones=("a", "b")), machine("m16", 16, price=1.5, zones=("a", "b", "c")))
    return world(*pending, groups=groups, machine_types=types)


def planned_elsewhere(**environment: str) -> Any:
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **environment},
        capture_output=True,
        check=True,
        text=True,
    )
    assert json.loads(ran.stdout)["growths"]
    return ran.stdout


@pytest.mark.slow
def test_hash_seeds_do_not_matter():
    first = planned_elsewhere(PYTHONHASHSEED="1", PLIMSOLL_KERNELS="plain")
    assert planned_elsewhere(PYTHONHASHSEED="2", PLIMSOLL_KERNELS="plain") == first


@pytest.mark.skipif(
    os.environ.get("PLIMSOLL_KERNELS") != "numba" and not is_cache_warm(), reason="compiling takes a minute"
)
def test_compiled_and_plain_kernels_make_the_same_plan():
    plain = planned_elsewhere(PYTHONHASHSEED="1", PLIMSOLL_KERNELS="plain")
    assert planned_elsewhere(PYTHONHASHSEED="2", PLIMSOLL_KERNELS="numba") == plain
