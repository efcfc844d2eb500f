"""Pods that want to be on a node with pods that wait, too: room is kept for them that others would take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning.builders import policy
from tests.nodes.planning.plan_checks import problems
from tests.nodes.planning.scale_up_clusters import added, group, left, on_existing, on_new_nodes, waiting, world
from tests.scheduling.builders import node, required, term

if TYPE_CHECKING:
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot

NEAR = required(term({"app": "db"}), "podAffinity")


def planned(snapshot: Snapshot, **options: Any) -> ScaleUpPlan:
    rules = policy(**{"expander": "cost", **options})
    plan = plan_scale_up(snapshot, rules)
    assert problems(snapshot, rules, plan) == []
    return plan


def test_hosts_that_would_fill_their_nodes_leave_room():
    plan = planned(world(waiting("db", 4, 2), waiting("side", 4, 1, **NEAR), groups=[group("g", cpu=4)]))
    assert (added(plan), left(plan)) == ({"g": 3}, {})


def test_all_guests_of_one_host_go_to_a_node_that_is_large_enough():
    groups = [group("small", cpu=4), group("large", cpu=8)]
    plan = planned(world(waiting("db", 1, 2), waiting("side", 6, 1, **NEAR), groups=groups))
    assert on_new_nodes(plan) == {"db": [1], "side": [6]}


def test_only_as_many_hosts_as_guests_need_have_room_beside_them():
    plan = planned(world(waiting("db", 8, 1), waiting("side", 2, 3, **NEAR), groups=[group("g", cpu=4)]))
    assert (added(plan), left(plan)) == ({"g": 4}, {})


def test_others_do_not_take_the_room():
    pending = [waiting("db", 2, 1), waiting("other", 6, 1), waiting("side", 2, 3, **NEAR)]
    assert left(planned(world(*pending, groups=[group("g", cpu=4)]))) == {}


def test_nodes_that_stand_are_shared_by_hosts_and_guests():
    nodes = [node("n1", cpu=4), node("n2", cpu=4)]
    plan = planned(world(waiting("db", 2, 2), waiting("side", 2, 2, **NEAR), nodes=nodes))
    assert on_existing(plan) == {"n1": {"db": 1, "side": 1}, "n2": {"db": 1, "side": 1}}


def test_guests_of_several_kinds_share_a_host():
    pending = [waiting("db", 4, 2), waiting("log", 4, 0.5, **NEAR), waiting("proxy", 4, 1, **NEAR)]
    assert left(planned(world(*pending, groups=[group("g", cpu=4)]))) == {}


def test_guests_of_a_bundle_are_no_reason_to_refuse_it():
    pending = [waiting("db", 4, 2, bundle="default/all"), waiting("side", 4, 2, bundle="default/all", **NEAR)]
    assert added(planned(world(*pending, groups=[group("g", cpu=4, most=4)]))) == {"g": 4}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 6), st.integers(1, 3))
def test_with_nodes_enough_no_pod_is_left_that_fits_beside_a_host(hosts: int, size: int, guests: int, beside: int):
    pending = [waiting("db", hosts, size), waiting("side", guests, beside, **NEAR)]
    plan = planned(world(*pending, groups=[group("g", cpu=6, most=20)]))
    assert left(plan).get("side", 0) == max(0, guests - hosts * ((6 - size) // beside))
    assert "db" not in left(plan)
