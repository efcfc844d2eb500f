"""Nodes that were asked for are for the pods they were asked for, until these run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from plimsoll.nodes.planning.scaleup.nominations import PodNominations
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning import scale_up_clusters as worlds
from tests.nodes.planning.scale_up_clusters import COST, running

if TYPE_CHECKING:
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
    from plimsoll.objects.api.nodes import Node


def waiting(name: str, count: int, cpu: float, **more: Any) -> PendingPods:
    one = worlds.waiting(name, count, cpu, **more)
    return replace(one, names=(name, *(f"{name}-{number}" for number in range(1, count))))


def world(*pending: PendingPods, nodes: int = 0, **more: Any) -> Snapshot:
    """Nodes of four cores in one group."""
    machines = [machine(number) for number in range(nodes)]
    of = {node.metadata.name: "g" for node in machines}
    groups = [worlds.group("g", target=nodes)]
    return worlds.world(*pending, groups=groups, nodes=machines, group_of=of, **more)


def machine(number: int) -> Node:
    return worlds.node(f"g-{number}", cpu=4, memory="16Gi")  # type: ignore[attr-defined]


def promised(before: Snapshot) -> PodNominations:
    plan = plan_scale_up(before, COST)
    promises = PodNominations()
    promises.make(before, plan.existing, [("g", scale_up.added, scale_up) for scale_up in plan.scale_ups])
    return promises


def test_pods_have_the_nodes_that_were_asked_for_them():
    before = world(waiting("large", 2, 2.5), waiting("small", 2, 1.2))
    promises = promised(before)
    after = world(*before.pending, nodes=2)
    places = promises.find_places(after)
    assert places == {f"g-{index}": {"default/large": 1, "default/small": 1} for index in range(2)}
    plan = plan_scale_up(replace(after, nominations=places), COST)
    assert (plan.scale_ups, plan.unschedulable, plan.scheduled, plan.existing) == ((), (), 4, places)


def test_pods_that_run_are_promised_nothing_any_more():
    before = world(waiting("large", 2, 2.5))
    promises = promised(before)
    assert promises.find_places(world(nodes=2)) == {}
    assert promises.find_places(world(*before.pending, nodes=2)) == {}, "it is forgotten"


def test_a_node_that_is_not_what_was_asked_for_keeps_no_promise():
    before = world(waiting("large", 1, 2.5))
    promises = promised(before)
    after = world(*before.pending, nodes=1)
    taken = world(*before.pending, nodes=1, on=[("g-0", running("x", cpu=3))])
    assert promises.find_places(taken) == {}
    assert promises.find_places(after) == {"g-0": {"default/large": 1}}


def test_others_do_not_take_a_promised_place():
    before = world(waiting("large", 1, 2.5))
    promises = promised(before)
    after = world(*before.pending, waiting("other", 1, 2.5), nodes=1)
    plan = plan_scale_up(replace(after, nominations=promises.find_places(after)), COST)
    assert plan.existing == {"g-0": {"default/large": 1}}
    assert [(growth.option.group, growth.added) for growth in plan.scale_ups] == [("g", 1)]


def test_pods_that_look_at_others_are_promised_nothing():
    selector = {"matchLabels": {"app": "apart"}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    before = world(waiting("apart", 2, 1, affinity=apart))
    assert promised(before).find_places(world(*before.pending, nodes=2)) == {}
