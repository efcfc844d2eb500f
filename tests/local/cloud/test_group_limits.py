"""What `max` and `min` of a group bind: everybody who asks for more, and not the machines that are there."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.formatting import NO_LIMIT
from plimsoll.kube.errors import Invalid
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import GROUP_LABEL, NodeGroup, NodeGroupSpec
from tests.local.cloud.builders import CloudCluster

TOO_MANY = "target may not be more than max"


def patched(world: CloudCluster, **spec: Any) -> NodeGroup:
    return world.do(world.client.merge_patch(NodeGroup, "g", {"spec": spec}))


def test_a_group_cannot_be_made_with_more_than_its_maximum():
    body = {"metadata": {"name": "g"}, "spec": {"machineType": "small", "max": 2, "target": 3}}
    with CloudCluster() as world, pytest.raises(Invalid, match=TOO_MANY):
        world.do(world.client.create(NodeGroup, body))


def test_a_target_cannot_be_raised_above_the_maximum():
    with CloudCluster() as world:
        world.group("g", target=1, max=2)
        with pytest.raises(Invalid, match=TOO_MANY):
            patched(world, target=3)
        assert world.nodes() == ["g-0"]


def test_nor_by_its_scale():
    with CloudCluster() as world:
        world.group("g", target=1, max=2)
        with pytest.raises(Invalid, match=TOO_MANY):
            world.do(world.client.merge_patch(NodeGroup, "g", {"spec": {"replicas": 3}}, subresource="scale"))
        assert (world.get_group().spec.target, world.nodes()) == (1, ["g-0"])


def test_both_may_be_raised_together():
    with CloudCluster() as world:
        world.group("g", target=1, max=2)
        patched(world, target=3, max=3)
        assert len(world.nodes()) == 3


def test_the_minimum_binds_autoscalers_only():
    with CloudCluster() as world:
        world.group("g", min=2, target=2)
        patched(world, target=1)
        assert world.nodes() == ["g-0"]


def test_a_maximum_that_is_lowered_takes_no_node_away_and_the_group_says_so():
    with CloudCluster() as world:
        world.group("g", target=3)
        patched(world, max=2)
        assert len(world.nodes()) == 3
        assert world.get_group().status.message == "target 3 is more than max 2: no machine is made beyond max"


def test_above_the_maximum_a_machine_that_is_lost_is_not_replaced():
    with CloudCluster() as world:
        world.group("g", target=3)
        patched(world, max=1)
        for name in ("g-1", "g-2"):
            world.do(world.client.delete(type(world.machines()[name]), name))
        assert world.nodes() == ["g-0"]
        world.do(world.client.delete(type(world.machines()["g-0"]), "g-0"))
        assert world.nodes() == ["g-3"]


def test_above_the_maximum_a_machine_that_was_refused_is_given_up():
    with CloudCluster(stock=[{"name": "s", "machineType": "small", "machines": 1}]) as world:
        world.group("g", target=3)
        patched(world, max=2)
        assert world.states() == {"g-0": "running", "g-1": "failed"}
        world.patch_cloud(stock=[])
        assert world.states() == {"g-0": "running", "g-1": "running"}


def test_above_the_maximum_a_deleted_node_gets_none_in_its_place():
    with CloudCluster() as world:
        world.group("g", target=3)
        patched(world, max=2)
        world.do(world.client.delete(type(world.machines()["g-2"]), "g-2"))
        world.do(world.cloud.delete_nodes("g", ["g-1"]))
        assert world.nodes() == ["g-0"]
        group = world.get_group()
        assert (group.spec.target, group.status.message) == (1, "")


def test_other_changes_to_a_group_above_its_maximum_are_not_refused():
    with CloudCluster() as world:
        world.group("g", target=3)
        patched(world, max=1)
        patched(world, bootSeconds=5)
        patched(world, target=2)
        assert len(world.nodes()) == 2
        with pytest.raises(Invalid, match=TOO_MANY):
            patched(world, target=3)


def test_nodes_that_are_adopted_raise_the_maximum_if_need_be():
    with CloudCluster(started=False) as world:
        world.group("g", target=0, max=1)
        for number in range(2):
            metadata = {"name": f"g-{number}", "labels": {GROUP_LABEL: "g"}}
            world.do(world.client.create(Node, {"metadata": metadata}))
        world.start()
        spec = world.get_group().spec
        assert (spec.target, spec.max, len(world.machines())) == (2, 2, 2)


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def test_a_group_without_a_maximum_has_no_limit_and_its_column_is_empty():
    with CloudCluster() as world:
        spec = NodeGroupSpec(max=int(str(NO_LIMIT)), machine_type="small", autoprovisioned=True, boot_seconds=0)
        world.do(world.cloud.create_group("g", spec))
        patched(world, target=3)
        world.group("h", target=1, max=2)
        assert len(world.nodes()) == 4
        assert world.get_group().spec.max == NO_LIMIT
        table = world.kube.ask("GET", "/apis/cloud.plimsoll.io/v1alpha1/nodegroups", headers={"Accept": TABLE})
        column = [column["name"] for column in table["columnDefinitions"]].index("Max")
        assert [row["cells"][column] for row in table["rows"]] == [None, 2]
        assert "2147483647" not in world.everything()
