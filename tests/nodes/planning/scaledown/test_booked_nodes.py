"""Nodes that hold something for a request are not removed, and say how much of them is booked (docs/design/nodes.md
4.3).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.nodes.model.snapshot import PendingPods
from plimsoll.nodes.planning.consolidation.planner import ConsolidationOptions, consolidate
from plimsoll.nodes.planning.scaledown.planner import find_unneeded
from plimsoll.nodes.planning.scaleup.nominations import place_pending
from plimsoll.nodes.planning.state.placeholder_pods import PlaceholderPods, build_placeholder_pod, is_placeholder
from plimsoll.scheduling.cluster_view import PlacedPod
from tests.nodes.planning.scaledown.builders import NOON, group, node, pod, policy, snapshot

if TYPE_CHECKING:
    from plimsoll.nodes.model.snapshot import Snapshot

ASKED = PendingPods(key="default/r/0", pod=pod("template", on="", owner=""), count=3, bundle="default/r")


def booked(world: Snapshot, **places: int) -> Snapshot:
    """Pods of 1 cpu and 1 GiB that a request is to have, by node."""
    on = {name: {ASKED.key: count} for name, count in places.items()}
    return replace(world, view=PlaceholderPods().add_to(world.view, on, [ASKED]))


def kept(world: Snapshot) -> dict[str, Any]:
    return {
        unremovable.node: unremovable.reason for unremovable in find_unneeded(world, policy(), now=NOON).unremovable
    }


def test_an_empty_node_with_a_booking_stays():
    world = booked(snapshot([node("n1"), node("n2")], groups=[group(size=2)]), n1=3)
    found = find_unneeded(world, policy(), now=NOON)
    assert [unneeded.node for unneeded in found.unneeded] == ["n2"]
    assert {unremovable.node: unremovable.reason.code for unremovable in found.unremovable} == {"n1": "BookedCapacity"}


def test_what_is_booked_is_shown_apart_from_what_is_used():
    world = booked(snapshot([node("n1")], [pod("a", on="n1", cpu="500m")], groups=[group(size=1)]), n1=3)
    reason = kept(world)["n1"]
    assert reason.facts == {"utilization": 0.125, "booked": 0.75}
    assert str(reason) == "it is held for a provisioning request: of cpu 75.0% is booked and 12.5% used"


def test_pods_do_not_move_to_where_room_is_booked():
    """A pod of 2 cpu has to leave n1; n2 has 4, of which 1 or 3 are booked."""
    world = snapshot([node("n1"), node("n2")], [pod("a", on="n1", cpu="2")], groups=[group(size=2)])
    assert [unneeded.node for unneeded in find_unneeded(booked(world, n2=1), policy(), now=NOON).unneeded] == ["n1"]
    assert {name: reason.code for name, reason in kept(booked(world, n2=3)).items()} == {
        "n1": "NoPlaceToMovePods",
        "n2": "BookedCapacity",
    }


def test_nothing_is_saved_on_booked_nodes():
    world = snapshot([node("n1"), node("n2")], groups=[group(size=2, price_per_hour=1.0)])
    options = policy(consolidation="underutilized")
    terms = ConsolidationOptions(budgets=(), may_replace=False)
    for where, going in ((world, ["n1", "n2"]), (booked(world, n1=1), ["n2"])):
        found = consolidate(where, options, now=NOON, options=terms)
        assert sorted(removal.node for removal in found.removals) == going


def test_room_that_a_request_was_given_this_very_turn_is_booked():
    world = replace(snapshot([node("n1"), node("n2")], groups=[group(size=2)]), pending=(ASKED,))
    assert {name: reason.code for name, reason in kept(place_pending(world, {"n1": {ASKED.key: 3}})).items()} == {
        "n1": "BookedCapacity"
    }


@pytest.mark.parametrize("count", [1, 7, 16_384])
def test_a_lump_asks_for_what_its_pods_ask_for(count: int):
    template = pod(
        "template",
        on="",
        owner="",
        cpu="333m",
        memory="100Mi",
        overhead={"cpu": "7m"},
        initContainers=[{"name": "i", "resources": {"requests": {"memory": "1Gi", "nvidia.com/gpu": "1"}}}],
    )
    one, all_ = PlacedPod(template), PlacedPod(build_placeholder_pod(template, count, request="default/r"))
    assert all_.demand == one.demand.scale_by(count)
    assert all_.count == count
    assert (all_.labels_key, all_.ports, all_.anti_affinity) == (one.labels_key, one.ports, one.anti_affinity)
    assert is_placeholder(all_.pod)
    assert not is_placeholder(template)
