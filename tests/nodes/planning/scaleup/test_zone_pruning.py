"""Zones that would strand pods if they were opened stay closed; all others are used evenly (docs/decisions/0003)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning.builders import policy
from tests.nodes.planning.plan_checks import problems
from tests.nodes.planning.scale_up_clusters import by_zone, group, left, machine, running, waiting, world
from tests.scheduling.builders import ZONE, node, required, spread, term

if TYPE_CHECKING:
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot

SPREAD = spread({"app": "web"})


def planned(snapshot: Snapshot, **options: Any) -> ScaleUpPlan:
    rules = policy(expander="cost", **options)
    plan = plan_scale_up(snapshot, rules)
    assert problems(snapshot, rules, plan) == []
    return plan


def zones(*most: int) -> list[Any]:
    """Groups of nodes for four pods each, one in each zone, that may have so many nodes."""
    return [group(f"g-{zone}", zone=zone, most=nodes) for zone, nodes in zip("abcde", most, strict=False)]


def test_a_small_zone_that_would_hold_the_others_back():
    snapshot = world(waiting("web", 30, **SPREAD), groups=zones(10, 10, 1))
    plan = planned(snapshot)
    assert left(plan) == {}
    assert by_zone(plan, snapshot, "web") == {"a": 15, "b": 15}


def test_several_small_zones_of_which_closing_one_would_not_help():
    snapshot = world(waiting("web", 30, **SPREAD), groups=zones(1, 10, 1, 1))
    plan = planned(snapshot)
    assert left(plan) == {}
    assert by_zone(plan, snapshot, "web") == {"b": 30}


def test_no_more_zones_than_needed_stay_closed():
    """Without the smallest all have a place; the next one would hold back more pods than there are."""
    snapshot = world(waiting("web", 21, **SPREAD), groups=zones(1, 2, 10, 10))
    plan = planned(snapshot)
    assert by_zone(plan, snapshot, "web") == {"b": 7, "c": 7, "d": 7}


def test_a_zone_that_all_find_room_with_is_opened_though_it_costs_more():
    dear = group("dear", zone="c", most=1, price=9.0)
    snapshot = world(waiting("web", 12, **SPREAD), groups=[*zones(10, 10), dear])
    plan = planned(snapshot)
    assert by_zone(plan, snapshot, "web") == {"a": 4, "b": 4, "c": 4}


def test_an_even_spread_is_kept_where_fewer_zones_would_place_no_more():
    snapshot = world(waiting("web", 30, **SPREAD), groups=zones(1, 1, 1))
    plan = planned(snapshot)
    assert by_zone(plan, snapshot, "web") == {"a": 4, "b": 4, "c": 4}
    assert left(plan) == {"web": 18}


def test_a_zone_where_a_node_stands_counts_whatever_is_planned():
    full = node("full", zone="c", cpu="100m")
    snapshot = world(waiting("web", 30, **SPREAD), nodes=[full], groups=zones(10, 10, 1))
    plan = planned(snapshot)
    assert by_zone(plan, snapshot, "web") == {"a": 5, "b": 5, "c": 4}


def test_new_zones_stay_closed_if_the_old_ones_take_all_pods():
    snapshot = world(
        waiting("web", 12, **SPREAD), nodes=[node("old", zone="a", cpu="100m")], groups=zones(10, 1, 1, 10)[:3]
    )
    plan = planned(snapshot)
    assert by_zone(plan, snapshot, "web") == {"a": 4, "b": 4, "c": 4}
    more = world(waiting("web", 20, **SPREAD), nodes=[node("old", zone="a", cpu="100m")], groups=zones(10, 1, 1))
    assert by_zone(planned(more), more, "web") == {"a": 20}


def test_what_runs_in_a_zone_counts_for_those_that_stay_open():
    on = [("n", running(f"web-{index}", app="web")) for index in range(4)]
    snapshot = world(waiting("web", 20, **SPREAD), nodes=[node("n", zone="a", cpu=4)], on=on, groups=zones(10, 10, 1))
    plan = planned(snapshot)
    assert left(plan) == {}
    assert by_zone(plan, snapshot, "web") == {"a": 8, "b": 12}


def test_limits_of_the_cluster_close_zones_of_small_machines():
    """Sixteen more cores: four pods where nodes are small, sixteen where they are not."""
    small = group("small", zone="a", cpu=8, most=10, memory="2Gi")
    snapshot = world(waiting("web", 16, **SPREAD), groups=[small, group("large", zone="b", cpu=16)])
    plan = planned(snapshot, max_cpu=16)
    assert by_zone(plan, snapshot, "web") == {"b": 16}


def test_later_classes_do_not_open_it_either():
    pinned = waiting("pinned", 1, nodeSelector={ZONE: "c"}, age=-9)
    snapshot = world(waiting("web", 30, **SPREAD), pinned, groups=zones(10, 10, 1))
    assert left(planned(snapshot)) == {"pinned": 1}


def test_the_first_class_opens_it_and_the_others_follow():
    pinned = waiting("pinned", 1, nodeSelector={ZONE: "c"}, priority=5)
    snapshot = world(waiting("web", 30, **SPREAD), pinned, groups=zones(10, 10, 1))
    plan = planned(snapshot)
    assert by_zone(plan, snapshot, "pinned") == {"c": 1}
    assert by_zone(plan, snapshot, "web") == {"a": 4, "b": 4, "c": 3}


def test_a_bundle_that_would_be_refused_for_a_small_zone():
    snapshot = world(waiting("web", 30, bundle="default/r", **SPREAD), groups=zones(10, 10, 1))
    assert left(planned(snapshot)) == {}


def test_pods_that_want_to_be_together_get_the_zone_that_has_room_for_all():
    """All on one node: a small zone that is cheaper has room for two of them."""
    web = waiting("web", 4, **required(term({"app": "web"}), "podAffinity"), **spread({"app": "web"}, maxSkew=3))
    groups = [group("large", zone="a", cpu=4), group("small", zone="b", cpu=2, price=0.01)]
    snapshot = world(web, groups=groups)
    assert by_zone(planned(snapshot), snapshot, "web") == {"a": 4}


def test_zones_of_groups_that_are_made():
    types = (machine("four", 4, zones=("a", "b")), machine("one", 1, zones=("c",)))
    snapshot = world(waiting("web", 12, 2, **SPREAD), machine_types=types)
    plan = planned(snapshot, node_autoprovisioning=True)
    assert by_zone(plan, snapshot, "web") == {"a": 6, "b": 6}


def most_by_hand(rooms: list[int], pods: int) -> int:
    """Pods that find a place in the best choice of zones, each of which takes so many, with a skew of one."""
    best = 0
    for chosen in range(1, 1 << len(rooms)):
        open_ = [room for index, room in enumerate(rooms) if chosen >> index & 1]
        best = max(best, sum(min(room, min(open_) + 1) for room in open_))
    return min(best, pods)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 40))
def test_as_many_as_the_best_choice_of_zones_takes(most: list[int], pods: int):
    snapshot = world(waiting("web", pods, **SPREAD), groups=zones(*most))
    assert planned(snapshot).scheduled == most_by_hand([4 * size for size in most], pods)
