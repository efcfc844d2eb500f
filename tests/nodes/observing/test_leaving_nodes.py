"""Nodes that are being removed are marked in the snapshot, whatever the cache of nodes shows."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.nodes.model.instances import InstanceState
from plimsoll.nodes.model.node_labels import LEAVING
from plimsoll.nodes.model.taints import BEING_DELETED
from plimsoll.nodes.observing.leaving_nodes import LeavingNodes
from plimsoll.nodes.observing.provider_state import NodeGroupState, ProviderState
from plimsoll.nodes.providers.values import GroupOptions, Instance
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.nodes import Node, NodeSpec, Taint

DELETED = datetime(2026, 1, 1, tzinfo=UTC)


def build_node(name: str = "n", *, deleted: datetime | None = None, **spec: Any) -> Node:
    return Node(
        metadata=ObjectMeta(name=name, deletion_timestamp=deleted), spec=NodeSpec(provider_id=f"cloud://{name}", **spec)
    )


def build_provider(*instances: Instance) -> ProviderState:
    port: Any = SimpleNamespace(id="g")
    options = GroupOptions(
        utilization_threshold=0.5,
        gpu_utilization_threshold=0.5,
        unneeded_s=600,
        unready_s=1200,
        provision_s=900,
        startup_s=900,
    )
    return ProviderState(
        groups={"g": NodeGroupState(port=port, target=1, instances=instances, options=options, template=None)}
    )


@pytest.mark.parametrize(
    ("node", "instances", "in_progress"),
    [
        (build_node(), (), {"n"}),
        (build_node(), (Instance(id="cloud://n", state=InstanceState.DELETING),), ()),
        (build_node(), (Instance(id="other", name="n", state=InstanceState.DELETING),), ()),
        (build_node(deleted=DELETED), (), ()),
    ],
    ids=["removed by this process", "deleted by provider id", "deleted by name", "deletion time"],
)
def test_a_node_that_is_deleted_is_tainted_and_labelled(node: Node, instances: tuple[Instance, ...], in_progress: Any):
    (marked,) = LeavingNodes().mark([node], build_provider(*instances), in_progress)
    assert [taint.key for taint in marked.spec.taints] == [BEING_DELETED]
    assert marked.metadata.labels == {LEAVING: "true"}


def test_a_taint_that_is_there_is_not_added_again():
    node = build_node(taints=(Taint(key=BEING_DELETED, effect="NoSchedule"),))
    (marked,) = LeavingNodes().mark([node], build_provider(), {"n"})
    assert len(marked.spec.taints) == 1


def test_other_nodes_are_the_same_objects_and_so_are_marked_ones_the_next_time():
    nodes = [build_node("a"), build_node("b")]
    leaving = LeavingNodes()
    running = Instance(id="cloud://a", state=InstanceState.RUNNING)
    first = leaving.mark(nodes, build_provider(running), {"b"})
    second = leaving.mark(nodes, build_provider(running), {"b"})
    assert first[0] is nodes[0]
    assert [before is after for before, after in zip(first, second, strict=True)] == [True, True]
    assert leaving.mark(nodes, build_provider(running), ())[1] is nodes[1]
