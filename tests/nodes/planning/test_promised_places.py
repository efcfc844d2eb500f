"""Nodes that were asked for are for the pods they were asked for, until these run."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.planning_worlds import groups, n1_shapes, node, pod, policy, snapshot
from plimsoll.nodes.planning.promises import Promises
from plimsoll.nodes.planning.scale_up import plan_scale_up
from plimsoll.nodes.planning.world import Pending, Snapshot
from plimsoll.scheduling import ClusterView

SHAPE = next(one for one in n1_shapes() if one.name == "n1-standard-4")
GROUP = replace(groups([SHAPE])[0], id="g")


def waiting(name: str, count: int, cpu: str, **spec: object) -> Pending:
    one = pod(f"{name}-0", {"cpu": cpu}, app=name, **spec)
    return Pending(
        key=f"default/{name}-0", pod=one, count=count, names=tuple(f"{name}-{index}" for index in range(count))
    )


def world(*pending: Pending, nodes: int = 0) -> Snapshot:
    machines = [node(f"g-{index}", SHAPE) for index in range(nodes)]
    of = {one.metadata.name: "g" for one in machines}
    return snapshot(
        pending, groups=(replace(GROUP, target_size=nodes),), view=ClusterView.of(machines, []), group_of=of
    )


def promised(before: Snapshot) -> Promises:
    plan = plan_scale_up(before, policy())
    promises = Promises()
    promises.make(before, plan.existing, [("g", one.added, one) for one in plan.growths])
    return promises


def test_pods_have_the_nodes_that_were_asked_for_them():
    before = world(waiting("large", 2, "2500m"), waiting("small", 2, "1200m"))
    promises = promised(before)
    after = world(*before.pending, nodes=2)
    places = promises.places(after)
    assert places == {f"g-{index}": {"default/large-0": 1, "default/small-0": 1} for index in range(2)}
    plan = plan_scale_up(replace(after, promises=places), policy())
    assert (plan.growths, plan.remaining, plan.helped, plan.existing) == ((), (), 4, places)


def test_pods_that_run_are_promised_nothing_any_more():
    before = world(waiting("large", 2, "2500m"))
    promises = promised(before)
    assert promises.places(world(nodes=2)) == {}
    assert promises.places(world(*before.pending, nodes=2)) == {}, "it is forgotten"


def test_a_node_that_is_not_what_was_asked_for_keeps_no_promise():
    before = world(waiting("large", 1, "2500m"))
    promises = promised(before)
    after = world(*before.pending, nodes=1)
    taken = replace(after, view=ClusterView.of([node("g-0", SHAPE)], [pod("x", {"cpu": "3"}, nodeName="g-0")]))
    assert promises.places(taken) == {}
    assert promises.places(after) == {"g-0": {"default/large-0": 1}}


def test_others_do_not_take_a_promised_place():
    before = world(waiting("large", 1, "2500m"))
    promises = promised(before)
    after = world(*before.pending, waiting("other", 1, "2500m"), nodes=1)
    plan = plan_scale_up(replace(after, promises=promises.places(after)), policy())
    assert plan.existing == {"g-0": {"default/large-0": 1}}
    assert [(one.offer.group, one.added) for one in plan.growths] == [("g", 1)]


def test_pods_that_look_at_others_are_promised_nothing():
    selector = {"matchLabels": {"app": "apart"}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    before = world(waiting("apart", 2, "1", affinity=apart))
    assert promised(before).places(world(*before.pending, nodes=2)) == {}
