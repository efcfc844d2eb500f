"""The compatible planner (docs/design/nodes.md 6.6): who is helped by one group under limits, and who waits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.nodes.planning.scaleup.single_group import AWAITS_A_LATER_LOOP
from tests.nodes.planning.builders import policy
from tests.nodes.planning.plan_checks import placed, problems
from tests.nodes.planning.scale_up_clusters import (
    added,
    group,
    left,
    on_existing,
    reason_codes,
    reported,
    waiting,
    world,
)
from tests.scheduling.builders import ZONE, node, required, spread, term

if TYPE_CHECKING:
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot
    from tests.golden.reviewed_sentences import ReviewedSentences


def planned(snapshot: Snapshot, **options: Any) -> ScaleUpPlan:
    rules = policy(**{"planner": "compatible", "expander": "most-pods", **options})
    plan = plan_scale_up(snapshot, rules)
    assert problems(snapshot, rules, plan) == []
    return plan


def codes(plan: ScaleUpPlan) -> set[str]:
    return {reason.code for unschedulable in plan.unschedulable for reason in unschedulable.reasons}


# ---- who is helped


def test_small_pods_of_low_priority_fill_the_gaps_that_large_ones_leave():
    pending = [waiting("urgent", 2, 3, priority=10), waiting("small", 2, 1)]
    plan = planned(world(*pending, groups=[group("g", cpu=4, most=2)]))
    assert left(plan) == {}
    assert added(plan) == {"g": 2}


@pytest.mark.parametrize("options", [{}, {"max_nodes_total": 2}, {"max_cpu": 8}, {"max_memory": 32}])
def test_the_largest_go_first_whatever_their_priority_as_in_cluster_autoscaler(options: dict[str, Any]):
    pending = [waiting("urgent", 6, 1, priority=10), waiting("large", 2, 3)]
    plan = planned(world(*pending, groups=[group("g", cpu=4, most=10 if options else 2)]), **options)
    assert left(plan) == {"urgent": 4}


def test_room_on_nodes_that_stand_goes_by_priority():
    pending = [waiting("large", 1, 3), waiting("urgent", 4, 1, priority=10)]
    plan = planned(world(*pending, nodes=[node("n1", cpu=4)], groups=[group("g", cpu=4, most=1)]))
    assert on_existing(plan) == {"n1": {"urgent": 4}}
    assert left(plan) == {}


def _first_fit_decreasing(snapshot: Snapshot, cores: int, nodes: int) -> int:
    """Pods that so many nodes of so many cores take, one pod after the other, the largest first."""
    sizes = [int(pod.pod.spec.containers[0].resources.requests["cpu"]) for pod in snapshot.pending]
    free = [0] * 0
    helped = 0
    for size, count in sorted(zip(sizes, (pending.count for pending in snapshot.pending), strict=True), reverse=True):
        for _ in range(count):
            spot = next((index for index, room in enumerate(free) if room >= size), None)
            if spot is None and len(free) < nodes and size <= cores:
                free.append(cores)
                spot = len(free) - 1
            if spot is None:
                break
            free[spot] -= size
            helped += 1
    return helped


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 6), st.sampled_from([0, 10])), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from([2, 4, 6]), st.integers(1, 4)), min_size=1, max_size=3),
    st.sampled_from([("max_nodes_total", 2), ("max_cpu", 12), ("max_nodes_per_scaleup", 1), ("", 0)]),
)
def test_each_group_is_estimated_as_pod_by_pod(
    shapes: list[tuple[int, int, int]], sizes: list[tuple[int, int]], limit: tuple[str, int]
):
    pending = [waiting(f"p{i}", count, cpu, priority=rank) for i, (cpu, count, rank) in enumerate(shapes)]
    groups = [group(f"g{i}", cpu=cores, most=most) for i, (cores, most) in enumerate(sizes)]
    snapshot = world(*pending, groups=groups)
    name, most = limit
    plan = planned(snapshot, **({name: most} if name else {}))
    grant = {"max_nodes_total": lambda _: most, "max_nodes_per_scaleup": lambda _: most, "max_cpu": lambda c: most // c}
    by_group = [
        _first_fit_decreasing(snapshot, cores, min(room, grant[name](cores) if name else room)) for cores, room in sizes
    ]
    assert plan.scheduled == max(by_group)
    assert len(plan.scale_ups) == (plan.scheduled > 0)


# ---- who waits


def test_a_pod_that_another_group_may_help_waits_for_a_later_loop(reviewed: ReviewedSentences):
    plan = planned(world(waiting("web", 12), groups=[group("a", cpu=4, most=2), group("b", cpu=4, most=1)]))
    assert added(plan) == {"a": 2}
    assert left(plan) == {"web": 4}
    assert codes(plan) == {AWAITS_A_LATER_LOOP}
    assert reason_codes(plan) == ["AwaitsLaterLoop"]
    reviewed(reported(plan))


def test_a_pod_that_needs_another_group_waits_for_a_later_loop():
    labels = {"disk": "ssd"}
    pending = [waiting("web", 4), waiting("db", 1, nodeSelector=labels)]
    plan = planned(world(*pending, groups=[group("plain"), group("ssd", labels=labels, cpu=2, most=1)]))
    assert (left(plan), codes(plan)) == ({"db": 1}, {AWAITS_A_LATER_LOOP})


def test_the_limit_of_one_loop_is_no_reason_but_a_wait():
    plan = planned(world(waiting("web", 12), groups=[group("g", cpu=4)]), max_nodes_per_scaleup=2)
    assert (left(plan), codes(plan)) == ({"web": 4}, {AWAITS_A_LATER_LOOP})


def test_loop_after_loop_helps_all_pending_pods():
    pending = [waiting("web", 10, priority=10), waiting("db", 3, 3), waiting("huge", 1, 9)]
    groups = [group("a", cpu=4, most=2), group("b", cpu=8, most=1), group("c", cpu=2, most=2)]
    snapshot = world(*pending, groups=groups)
    turns = 0
    while AWAITS_A_LATER_LOOP in codes(plan := planned(snapshot)):
        there = placed(plan)
        rest = [replace(pending, count=pending.count - there.get(pending.key, 0)) for pending in snapshot.pending]
        grown = {growth.option.group: growth.after for growth in plan.scale_ups}
        snapshot = world(
            *(pending for pending in rest if pending.count),
            groups=[replace(group, target_size=grown.get(group.id, group.target_size)) for group in snapshot.groups],
        )
        turns += 1
    assert turns == 2
    assert left(plan) == {"huge": 1}
    assert "Insufficient cpu" in reported(plan)


@pytest.mark.parametrize(
    ("options", "code"),
    [({}, "MaxSizeReached"), ({"max_nodes_total": 1}, "MaxNodesTotal"), ({"max_cpu": 4}, "CpuResourceLimit")],
)
def test_where_nothing_can_grow_any_more_the_limit_is_the_reason(options: dict[str, Any], code: str):
    plan = planned(world(waiting("web", 12), groups=[group("g", cpu=4, most=10 if options else 1)]), **options)
    assert left(plan) == {"web": 8}
    assert code in codes(plan)
    assert AWAITS_A_LATER_LOOP not in codes(plan)


def test_no_pod_waits_for_a_loop_that_would_not_help():
    company = required(term({"app": "gone"}, key=ZONE), "podAffinity")
    plan = planned(world(waiting("web", 4), waiting("lonely", 1, **company), groups=[group("g", zone="a")]))
    assert left(plan) == {"lonely": 1}
    assert codes(plan) == {"NoCompany"}


def test_pods_spread_over_zones_get_nodes_in_every_zone_at_once():
    zones = [group(f"g-{zone}", zone=zone) for zone in "ab"]
    plan = planned(world(waiting("web", 4, **spread({"app": "web"})), groups=zones))
    assert {scale_up.option.zone: scale_up.added for scale_up in plan.scale_ups} == {"a": 1, "b": 1}
    assert plan.scheduled == 4


# ---- groups that are alike


ALIKE = tuple(group(f"g{index}", cpu=4, most=2, target=1) for index in range(3))


def test_similar_groups_are_estimated_as_one():
    plan = planned(world(waiting("web", 12), groups=ALIKE), balance_similar_node_groups=True)
    assert added(plan) == {"g0": 1, "g1": 1, "g2": 1}
    assert left(plan) == {}


def test_without_balancing_only_one_of_them_grows():
    plan = planned(world(waiting("web", 12), groups=ALIKE))
    assert (sum(added(plan).values()), codes(plan)) == (1, {AWAITS_A_LATER_LOOP})


def test_a_similar_group_that_does_not_take_the_pods_does_not_count():
    taint = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
    groups = [*ALIKE[:2], group("g2", cpu=4, most=9, taints=[taint])]
    plan = planned(world(waiting("web", 16), groups=groups), balance_similar_node_groups=True)
    assert added(plan).keys() <= {"g0", "g1"}
    assert problems(world(waiting("web", 16), groups=groups), policy(), plan) == []
