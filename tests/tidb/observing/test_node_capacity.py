"""`--node-count=potential`: nodes that the node autoscaler may still add count as if they were there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.nodes.config.options import list_policy_flags
from plimsoll.nodes.config.policy import AutoProvisioning, Limits, Policy
from plimsoll.nodes.reporting.status import configmap
from plimsoll.tidb.observing import node_capacity
from plimsoll.tidb.observing.node_capacity import parse_node_capacity
from plimsoll.tidb.planning.reconcile.node_counts import MOST_NODES, NodeCapacity
from tests.tidb.autoscaled_clusters import AutoscaledCluster, EmbeddedServer

STATUS = """\
autoscalerStatus: Running
nodeGroups:
- name: workers
  health: {cloudProviderTarget: 3, minSize: 0, maxSize: 8}
- name: full
  health: {cloudProviderTarget: 5, minSize: 0, maxSize: 5}
- name: odd
  health: {maxSize: many}
"""


LIMITED = Policy(limits=Limits(max_nodes_total=12))
PROVISIONING = Policy(limits=Limits(max_nodes_total=40), nap=AutoProvisioning(enabled=True))


def options_of(policy: Policy) -> str:
    return json.dumps(list_policy_flags(policy))


@pytest.mark.parametrize(
    ("potential", "status", "options", "counted"),
    [
        (False, STATUS, options_of(PROVISIONING), 10),
        (True, STATUS, "", 15),
        (True, STATUS, "[", 15),
        (True, STATUS, options_of(LIMITED), 12),
        (True, STATUS, options_of(PROVISIONING), 40),
        (True, "", options_of(PROVISIONING), 40),
        (True, "[", "", 10),
        (True, None, "", 10),
    ],
    ids=[
        "ready",
        "potential",
        "unreadable options",
        "limited",
        "provisioning",
        "no groups yet",
        "unreadable status",
        "no status",
    ],
)
def test_what_is_counted(potential: bool, status: str | None, options: str, counted: int) -> None:
    with AutoscaledCluster(EmbeddedServer, potential_nodes=potential) as world:
        assert isinstance(world.server, EmbeddedServer)
        if status is not None:
            metadata = {"name": "cluster-autoscaler-status", "annotations": {"plimsoll.io/options": options}}
            body = {"metadata": metadata, "data": {"status": status}}
            world.server.world.made("/api/v1/namespaces/kube-system/configmaps", body)
        world.autoscaler().cluster().once()
        assert [request["node_count"] for request in world.planner.asked] == [counted]


# ---- groups


def group(name: str = "workers", **health: Any) -> dict[str, Any]:
    return {"name": name, "health": {"cloudProviderTarget": 5, "maxSize": 8, **health}}


def registered(**counts: Any) -> dict[str, Any]:
    return {"registered": {"total": 5, "ready": 5, "unready": {"total": 0}, "beingDeleted": 0, **counts}}


@pytest.mark.parametrize(
    ("health", "left"),
    [
        ({"nodeCounts": registered()}, 3),
        ({"nodeCounts": registered(ready=2, notStarted=2)}, 6),
        ({"nodeCounts": registered(ready=3, unready={"total": 1}, beingDeleted=1)}, 3),
        ({"maxSize": 4}, 0),
        ({"cloudProviderTarget": "five"}, 0),
    ],
    ids=["all ready", "some on their way", "some that are not well", "more than may be", "odd"],
)
def test_nodes_on_their_way_are_still_to_come(health: dict[str, Any], left: int) -> None:
    assert parse_node_capacity({"nodeGroups": [group(**health)]}, {}) == NodeCapacity(in_groups=left)


def provisioned(names: list[str], **options: Any) -> int:
    document = {"nodeGroups": [group(name, maxSize=5) for name in names]}
    return parse_node_capacity(document, {"node-autoprovisioning": True, **options}).in_new_groups


def test_new_groups_count_as_far_as_there_may_be_any() -> None:
    size = {"autoprovisioned-group-max-size": 4}
    assert provisioned([], **size) == 15 * 4
    assert provisioned(["nodeautoprovisioning-a", "x/nodeautoprovisioning_b", "c"], **size) == 13 * 4
    assert provisioned(["a", "b"], **size, **{"max-node-groups": 3}) == 4
    assert provisioned(["a", "b"], **{"max-node-groups": 2}) == 0
    assert provisioned(["a"]) >= MOST_NODES


def test_words_and_defaults_are_those_of_our_node_autoscaler() -> None:
    """The two subsystems know nothing of each other: this is where they are held together."""
    default = AutoProvisioning()
    assert (default.max_node_groups, default.max_own_groups) == (
        node_capacity.MOST_GROUPS,
        node_capacity.MOST_OWN_GROUPS,
    )
    assert (default.prefix, configmap.OPTIONS_ANNOTATION) == (node_capacity.PREFIX, node_capacity.OPTIONS)
    chosen = replace(default, enabled=True, prefix="nap", max_node_groups=9, max_own_groups=2, max_group_size=3)
    options = list_policy_flags(Policy(limits=Limits(max_nodes_total=7), nap=chosen))
    assert parse_node_capacity({"nodeGroups": [group("nap-x", maxSize=5)]}, options) == NodeCapacity(
        in_new_groups=3, limit=7
    )
