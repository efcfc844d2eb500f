"""A node that cannot be decoded: it counts as present, its instance is not deleted, and its group is not emptied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.local.apiserver.storage.objects import Key
from plimsoll.nodes.cluster_state.observed import ObservedCluster, ObservedInstance, UnreadableNode
from tests.nodes.autoscaler.faulty_clusters import FaultyCluster
from tests.nodes.autoscaler.loop_scenarios import group, pods
from tests.nodes.cluster_state.builders import at, ready_nodes, state, world

if TYPE_CHECKING:
    from tests.nodes.autoscaler.loop_scenarios import Json


def spoil(body: Json) -> None:
    body["spec"]["taints"] = "not a list"


def observed(unreadable: UnreadableNode) -> ObservedCluster:
    """Two readable nodes and one unreadable node, each with a running instance, in a group of three."""
    readable = world(3, *ready_nodes(2), waiting=(ObservedInstance(id="cloud://odd", name="odd"),))
    return ObservedCluster(
        nodes=readable.nodes, unreadable=(unreadable,), group_of=readable.group_of, groups=readable.groups
    )


@pytest.mark.parametrize(
    "unreadable",
    [
        UnreadableNode(name="odd", provider_id="cloud://odd"),
        UnreadableNode(name="odd"),
        UnreadableNode(name="", provider_id="cloud://odd"),
    ],
)
def test_its_instance_is_registered_for_good(unreadable: UnreadableNode):
    registry = state(force_delete_unregistered_nodes=True)
    for seconds in (0, 10, 2000, 100_000):
        changes = registry.observe(observed(unreadable), at(seconds))
        health = registry.assess_health(at(seconds))
        assert (changes.shrink, changes.delete_failed, changes.delete_unregistered) == ((), (), ())
        assert health.groups["g"].readiness.all_unregistered == 0
        assert health.groups["g"].readiness.unready == (unreadable.name,)
        assert health.upcoming == {}


def test_a_readable_neighbour_hides_no_missing_instance():
    registry = state()
    registry.observe(observed(UnreadableNode(name="another")), at(0))
    assert registry.assess_health(at(0)).groups["g"].readiness.unregistered == ("cloud://odd",)


@pytest.mark.parametrize("kind", ["live", "stepped"])
def test_the_loop_deletes_neither_the_node_nor_its_instance(kind: str):
    options = {
        "scale-down-unneeded-time": "1m",
        "scale-down-delay-after-add": "1s",
        "max-node-provision-time": "2m",
        "force-delete-unregistered-nodes": True,
    }
    with FaultyCluster(world=kind, nodeGroups=[group("g", target=2)], pods=[pods("p", 1)], options=options) as cluster:
        cluster.change_body(Key("nodes", "", "g-1"), spoil)
        for _ in range(8):
            cluster.take(*([{"advance": "1m"}] if kind == "live" else [{"loop": 6}]))
        assert "g-1" in cluster.outcome()["nodes"]
        assert cluster.outcome()["nodeGroups"]["g"]["target"] >= 1
        assert not any("g-1" in str(call) for call in cluster.calls("DeleteNodes"))
