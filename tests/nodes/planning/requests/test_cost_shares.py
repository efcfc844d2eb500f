"""Which part of a plan for many requests is whose: nodes are counted once, costs add up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.planning.requests.cost_shares import share_costs
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning.builders import policy
from tests.nodes.planning.scale_up_clusters import group, machine, waiting, world


def asked(name: str, pods: int = 1, **more: Any) -> Any:
    return waiting(f"{name}-pods", pods, bundle=f"default/{name}", **more)


def test_five_hundred_small_requests_grow_by_what_they_need_together():
    """N43."""
    pending = [asked(f"r{number}", app="r") for number in range(500)]
    snapshot = world(*pending, machine_types=(machine("four", 4),))
    plan = plan_scale_up(snapshot, policy(node_autoprovisioning=True))
    found = share_costs(plan, snapshot.pending)
    assert sum(nodes for share in found.values() for nodes in share.nodes.values()) == 125
    assert sum(share.cost_per_hour for share in found.values()) == pytest.approx(plan.cost_per_hour)
    assert sum(share.lower_bound_per_hour for share in found.values()) == pytest.approx(plan.lower_bound_per_hour)
    assert all(share.nodes for share in found.values()), "each names the group it is on"


def test_a_node_is_of_the_first_in_line_on_it():
    young, old = asked("young", 2, app="x", age=1), asked("old", 2, app="x", age=9)
    snapshot = world(young, old, groups=[group("g")])
    found = share_costs(plan_scale_up(snapshot, policy(expander="cost")), snapshot.pending)
    assert (found["default/old"].nodes, found["default/young"].nodes) == ({"g": 1}, {"g": 0})
    assert found["default/old"].cost_per_hour == found["default/young"].cost_per_hour == pytest.approx(0.2)


def test_priority_goes_before_age_for_whose_a_node_is_too():
    old, urgent = asked("old", 2, age=9), asked("urgent", 2, age=1, priority=3)
    snapshot = world(old, urgent, groups=[group("g")])
    found = share_costs(plan_scale_up(snapshot, policy(expander="cost")), snapshot.pending)
    assert (found["default/old"].nodes, found["default/urgent"].nodes) == ({"g": 0}, {"g": 1})


def test_the_price_is_shared_by_what_pods_ask_for():
    snapshot = world(asked("large", 1, cpu=3), asked("small", 1, cpu=1), groups=[group("g")])
    found = share_costs(plan_scale_up(snapshot, policy(expander="cost")), snapshot.pending)
    assert [share.cost_per_hour for share in found.values()] == pytest.approx([0.3, 0.1])


def test_ordinary_pods_beside_it_pay_their_part():
    snapshot = world(asked("r", 2), waiting("web", 2), groups=[group("g")])
    found = share_costs(plan_scale_up(snapshot, policy(expander="cost")), snapshot.pending)
    assert list(found) == ["default/r"]
    assert (found["default/r"].nodes, found["default/r"].cost_per_hour) == ({"g": 1}, pytest.approx(0.2))


def test_nodes_beyond_those_that_are_filled_go_with_the_first():
    snapshot = world(asked("r", 4), groups=[group("g", most=3, zero_or_max=True)])
    found = share_costs(plan_scale_up(snapshot, policy(expander="cost")), snapshot.pending)
    assert found["default/r"].nodes == {"g": 3}
    assert found["default/r"].cost_per_hour == pytest.approx(1.2)


def test_a_request_without_new_nodes_has_no_share_of_nodes():
    snapshot = world(asked("r", 100, cpu=8), groups=[group("g")])
    assert share_costs(plan_scale_up(snapshot, policy(expander="cost")), snapshot.pending)["default/r"].nodes == {}


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=6), st.booleans())
@settings(max_examples=30, deadline=None)
def test_nodes_and_costs_add_up(sizes: list[tuple[int, int]], with_others: bool):
    pending = [asked(f"r{index}", pods, cpu=cpu) for index, (pods, cpu) in enumerate(sizes)]
    others = [waiting("web", 3)] if with_others else []
    snapshot = world(*pending, *others, groups=[group("g"), group("h", cpu=8, price=0.7)])
    plan = plan_scale_up(snapshot, policy(expander="cost"))
    found = share_costs(plan, snapshot.pending).values()
    nodes = sum(scale_up.added for scale_up in plan.scale_ups)
    cost = sum(share.cost_per_hour for share in found)
    assert sum(count for share in found for count in share.nodes.values()) <= nodes
    assert cost <= plan.cost_per_hour + 1e-9
    if not with_others:
        assert cost == pytest.approx(plan.cost_per_hour)
        assert sum(count for share in found for count in share.nodes.values()) == nodes
