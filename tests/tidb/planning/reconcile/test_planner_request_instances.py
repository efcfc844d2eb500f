"""What the planner receives of instances on their way and of changed sizes (docs/design/tidb.md 3.2, 3.5.4, 7); which
nodes count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.nodes import Node, NodeCondition, NodeSpec, NodeStatus
from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
from plimsoll.objects.codec.decoding import convert_object
from plimsoll.tidb.model.names import make_size_suffix
from plimsoll.tidb.planning.api.defaults import apply_defaults
from plimsoll.tidb.planning.reconcile.node_counts import (
    MOST_NODES,
    NodeCapacity,
    count_potential_nodes,
    count_ready_nodes,
)
from plimsoll.tidb.planning.reconcile.planner_request import build_planner_request
from tests.cli.tidb.tidb_commands import autoscaler, cluster
from tests.tidb.planning.reconcile.builders import GI, KEY, MARK, OWN, POLICY, SMALL_SIZE, at, base, group, seen

if TYPE_CHECKING:
    from plimsoll.tidb.model.reconcile_types import ObservedGroup
    from plimsoll.tidb.model.strategy import Strategy

TYPE = {"cpu": "1", "memory": "2Gi", "storage": "10Gi"}
SUFFIX = make_size_suffix(1000, 2 * GI, 10 * GI)
OTHER = replace(SMALL_SIZE, cpu_milli=500)


def question(*groups: ObservedGroup, **changes: Any) -> Strategy:
    tc = convert_object(TidbCluster, cluster())
    rules = {"cpu": {"max_threshold": 0.8}}
    tac = convert_object(TidbClusterAutoScaler, autoscaler(tikv={"resources": {"small": TYPE}, "rules": rules}))
    assert isinstance(tc, TidbCluster)
    assert isinstance(tac, TidbClusterAutoScaler)
    effective = apply_defaults(tac, tc)
    world = seen(*groups, **{"scaled": effective.spec.tikv, **changes})
    return build_planner_request(world, tc, effective, node_count=5, policy=POLICY, now=at(0))


def test_what_is_made_and_not_registered_is_reported_by_type():
    found = question(group(replicas=3, registered=1), base=base(5, registered=3))
    assert found.pending == {"small": 2, OWN: 2}
    assert found.node_count == 5
    assert question(group(), base=base(running=None, registered=None)).pending == {}


def test_silent_stores_are_there_and_leaving_ones_are_not_missed():
    silent = group(replicas=2, registered=1, present=2)
    assert question(silent, base=base(3, registered=2, present=3)).pending == {}
    assert question(group(replicas=2, registered=1, drain_record=MARK)).pending == {}
    assert question(group(replicas=3, registered=1, offline=1)).pending == {"small": 1}


def test_what_finds_no_node_for_long_is_not_on_its_way():
    assert question(group(replicas=2, registered=1, unschedulable_since=at(-599))).pending == {"small": 1}
    assert question(group(replicas=2, registered=1, unschedulable_since=at(-600))).pending == {}


def test_a_changed_size_gives_a_suffix():
    assert question(group()).types["small"].group_suffix == ""
    assert question(group(size=OTHER)).types["small"].group_suffix == SUFFIX


def test_no_suffix_if_the_usual_group_has_the_size_again():
    second = group(key=f"{KEY}-0123abcd", name="auto-second", size=OTHER)
    assert question(group(), second).types["small"].group_suffix == ""


def test_instances_of_an_older_size_are_not_counted_to_the_new_group():
    """Or the planner would ask for it as if it were on its way."""
    found = question(group(replicas=2, registered=1, size=OTHER))
    assert found.pending == {"small": 1}
    assert found.types["small"].group_suffix == ""
    second = group(key=f"{KEY}-{SUFFIX}", name="auto-second", replicas=2, registered=0)
    both = question(group(size=OTHER), second)
    assert both.pending == {"small": 2}
    assert both.types["small"].group_suffix == SUFFIX


def test_a_group_of_an_older_name_is_counted_to_itself():
    found = question(group(key="pd-auto-scaling-tikv", replicas=2, registered=1))
    assert found.pending == {"small": 1}
    assert question(group(key="pd-auto-scaling-tikv", replicas=2, registered=0)).pending == {}


# ---- nodes


def node(ready: str = "True", *, labels: dict[str, str] | None = None, cordoned: bool = False, **meta: Any) -> Node:
    return Node(
        metadata=ObjectMeta(name="n", labels=labels or {}, **meta),
        spec=NodeSpec(unschedulable=cordoned),
        status=NodeStatus(conditions=(NodeCondition(type="Ready", status=ready),)),
    )


@pytest.mark.parametrize(
    "other",
    [
        node("False"),
        node("Unknown"),
        node(cordoned=True),
        node(labels={"node-role.kubernetes.io/master": ""}),
        node(labels={"node-role.kubernetes.io/control-plane": ""}),
        node(deletion_timestamp=at(0)),
        Node(),
    ],
    ids=["not-ready", "unknown", "cordoned", "master", "control-plane", "deleted", "silent"],
)
def test_nodes_that_take_no_instance_are_not_counted(other: Node):
    assert count_ready_nodes([node(), other]) == 1


def test_a_node_selector_narrows_the_count():
    assert count_ready_nodes([node(labels={"disk": "ssd", "x": "y"}), node()], selector={"disk": "ssd"}) == 1


def test_nodes_that_may_be_added_count_up_to_the_limit():
    nodes = [node(), node(), node(), node("False"), node(cordoned=True)]
    assert count_potential_nodes(nodes, NodeCapacity(in_groups=2, in_new_groups=1)) == 6
    assert count_potential_nodes(nodes, NodeCapacity(in_groups=3, limit=6)) == 5
    assert count_potential_nodes(nodes, NodeCapacity(in_groups=3, limit=6, broken=1)) == 4
    assert count_potential_nodes(nodes, NodeCapacity(in_groups=3, limit=2)) == 3
    assert count_potential_nodes(nodes, NodeCapacity(in_new_groups=9 * MOST_NODES)) == MOST_NODES
