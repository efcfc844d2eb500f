"""What the map shows of nodes and pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from plimsoll.console.cluster_map.cells import (
    NODE_COLUMNS,
    POD_COLUMNS,
    NodeState,
    PodPhase,
    build_node_cell,
    build_pod_cell,
    find_node_state,
)
from plimsoll.core.resources import LARGEST_AMOUNT
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod

CREATED = datetime(2026, 1, 1, tzinfo=UTC)


def node(*, ready: str = "True", changed_s: float = 30.0, **spec: Any) -> Node:
    changed = (CREATED + timedelta(seconds=changed_s)).isoformat()
    body = {
        "metadata": {
            "name": "n1",
            "creationTimestamp": CREATED.isoformat(),
            "labels": {"cloud.plimsoll.io/node-group": "batch", "topology.kubernetes.io/zone": "a"},
        },
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "3500m", "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": changed}],
        },
    }
    return msgspec.convert(body, Node)


def taint(key: str) -> list[dict[str, str]]:
    return [{"key": key, "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (node(), NodeState.READY),
        (node(ready="False"), NodeState.STARTING),
        (node(ready="False", changed_s=3_600), NodeState.FAILED),
        (node(ready="Unknown"), NodeState.FAILED),
        (node(unschedulable=True), NodeState.CORDONED),
        (node(taints=taint("DeletionCandidateOfClusterAutoscaler")), NodeState.UNNEEDED),
        (node(taints=taint("ToBeDeletedByClusterAutoscaler"), unschedulable=True), NodeState.DRAINING),
        (node(taints=taint("karpenter.sh/disrupted")), NodeState.DRAINING),
        (Node(), NodeState.STARTING),
    ],
)
def test_the_state_of_a_node(found: Node, state: NodeState) -> None:
    assert find_node_state(found) is state


def test_a_node_has_its_group_zone_and_room() -> None:
    cell = dict(zip(NODE_COLUMNS, build_node_cell(node()), strict=True))
    assert cell | {"cpu": 3500, "memory": 8192, "pods": 110, "group": "batch", "zone": "a"} == cell


def test_a_pod_has_its_requests_and_owner() -> None:
    body = {
        "metadata": {
            "name": "web-0",
            "namespace": "shop",
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "controller": True}],
        },
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}}}],
        },
        "status": {"phase": "Running"},
    }
    cell = dict(zip(POD_COLUMNS, build_pod_cell(msgspec.convert(body, Pod)), strict=True))
    assert cell == {
        "name": "web-0",
        "namespace": "shop",
        "owner": "ReplicaSet/shop/web",
        "node": "n1",
        "cpu": 250,
        "memory": 64,
        "phase": PodPhase.RUNNING,
    }


@pytest.mark.parametrize("quantity", ["1e300", "-5", "none", "9" * 600])
def test_an_odd_quantity_is_shown_as_nothing_or_bounded(quantity: str) -> None:
    body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": quantity}}}]}}
    cell = dict(zip(POD_COLUMNS, build_pod_cell(msgspec.convert(body, Pod)), strict=True))
    assert isinstance(cell["cpu"], int)
    assert 0 <= cell["cpu"] <= LARGEST_AMOUNT
    odd_node = msgspec.convert({"status": {"allocatable": {"cpu": quantity}}}, Node)
    room = dict(zip(NODE_COLUMNS, build_node_cell(odd_node), strict=True))["cpu"]
    assert isinstance(room, int)
    assert 0 <= room <= LARGEST_AMOUNT
