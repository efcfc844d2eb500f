"""Small remainders are searched exactly before pods stay unschedulable (docs/design/nodes.md 7.6)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.planning.packing import exact_fallback
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning.builders import policy
from tests.nodes.planning.plan_checks import problems
from tests.nodes.planning.scale_up_clusters import added, group, left, on_existing, waiting, world
from tests.scheduling.builders import node, required, term

if TYPE_CHECKING:
    import pytest

    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot


def planned(snapshot: Snapshot, **options: Any) -> ScaleUpPlan:
    rules = policy(**{"expander": "cost", **options})
    plan = plan_scale_up(snapshot, rules)
    assert problems(snapshot, rules, plan) == []
    return plan


TRICKY = (3, 2, 15, 4, 5, 11, 15, 1, 4)
"""Three nodes of 20 are filled to the last core by them, three to a node, and not by the largest first."""


def whole(sizes: tuple[int, ...] = TRICKY) -> list[PendingPods]:
    return [waiting(f"p{index}", 1, requests={"cpu": size}, bundle="default/all") for index, size in enumerate(sizes)]


def harder(nodes: int) -> list[PendingPods]:
    """Fills so many nodes of 100 to the last core, in triples that largest first does not find."""
    triples = [(50 - index, 26 + 2 * index, 24 - index) for index in range(nodes)]
    return [
        waiting(f"p{row}-{index}", 1, requests={"cpu": size}, bundle="default/all")
        for row, sizes in enumerate(triples)
        for index, size in enumerate(sizes)
    ]


def test_a_bundle_that_fits_on_nodes_that_stand_one_way_only_finds_it(monkeypatch: pytest.MonkeyPatch):
    snapshot = world(*whole(), nodes=[node(f"n{index}", cpu=20) for index in range(3)])
    plan = planned(snapshot)
    assert (plan.scheduled, left(plan), len(on_existing(plan))) == (9, {}, 3)
    monkeypatch.setattr(exact_fallback, "SEARCHES", 0)
    assert planned(snapshot).scheduled == 0, "what packs by rule of thumb does not find it"


def test_a_bundle_that_fits_into_a_limited_group_one_way_only_finds_it(monkeypatch: pytest.MonkeyPatch):
    snapshot = world(*harder(4), groups=[group("g", cpu=100, most=4)])
    assert added(planned(snapshot)) == {"g": 4}
    monkeypatch.setattr(exact_fallback, "SEARCHES", 0)
    assert planned(snapshot).scheduled == 0


def test_limits_of_the_cluster_hold_for_it():
    snapshot = world(*harder(4), groups=[group("a", cpu=100), group("b", cpu=100)])
    assert sum(added(planned(snapshot, max_nodes_total=4)).values()) == 4
    assert planned(snapshot, max_nodes_total=3).scheduled == 0


def test_ordinary_pods_are_placed_by_it_too():
    pending = [
        waiting(pending.key.partition("/")[2], 1, requests=pending.pod.spec.containers[0].resources.requests)
        for pending in harder(4)
    ]
    assert left(planned(world(*pending, groups=[group("g", cpu=100, most=4)]))) == {}


def test_pods_that_look_at_others_stay_where_they_are():
    apart = waiting("apart", 2, requests={"cpu": 10}, **required(term({"app": "apart"})))
    nodes = [node(f"n{index}", cpu=20) for index in range(3)] + [node(f"s{index}", cpu=10) for index in range(2)]
    plan = planned(world(apart, *whole(), nodes=nodes))
    assert left(plan) == {}


def test_no_node_is_bought_where_nodes_that_stand_take_all_one_way_only(monkeypatch: pytest.MonkeyPatch):
    pending = [
        waiting("a", 3, requests={"cpu": "3500m"}),
        waiting("b", 3, requests={"cpu": "2500m"}),
        waiting("c", 1, requests={"cpu": 1}),
    ]
    nodes = [node("n0", cpu=4), node("n1", cpu=8), node("n2", cpu=8)]
    snapshot = world(*pending, nodes=nodes, groups=[group("g", cpu=4)])
    plan = planned(snapshot)
    assert (plan.scheduled, added(plan), len(on_existing(plan))) == (7, {}, 3)
    monkeypatch.setattr(exact_fallback, "SAVINGS", 0)
    assert added(planned(snapshot)) == {"g": 1}, "what packs by rule of thumb does not find it"


def test_a_pod_that_fits_on_no_existing_node_keeps_its_new_one():
    pending = [
        waiting("a", 3, requests={"cpu": "3500m"}),
        waiting("b", 3, requests={"cpu": "2500m"}),
        waiting("c", 1, requests={"cpu": 1}),
        waiting("large", 1, requests={"cpu": 16}),
    ]
    nodes = [node("n0", cpu=4), node("n1", cpu=8), node("n2", cpu=8)]
    plan = planned(world(*pending, nodes=nodes, groups=[group("g", cpu=4), group("h", cpu=16)]))
    assert (plan.scheduled, added(plan)) == (8, {"h": 1})


def some_way_exists(sizes: list[int], cores: int, nodes: int) -> bool:
    return any(
        all(sum(size for size, at in zip(sizes, homes, strict=True) if at == place) <= cores for place in range(nodes))
        for homes in product(range(nodes), repeat=len(sizes))
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 3), st.booleans())
def test_all_or_nothing_is_answered_as_by_trying_everything(sizes: list[int], nodes: int, standing: bool):
    pending = whole(tuple(sizes))
    places: dict[str, Any] = (
        {"nodes": [node(f"n{index}", cpu=12) for index in range(nodes)]}
        if standing
        else {"groups": [group("g", cpu=12, most=nodes)]}
    )
    assert (planned(world(*pending, **places)).scheduled > 0) == some_way_exists(sizes, 12, nodes)
