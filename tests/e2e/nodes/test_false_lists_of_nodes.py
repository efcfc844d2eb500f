"""Over TLS, behind a proxy that falsifies lists of nodes: the autoscaler deletes no instance and evicts no pod."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.nodes.live_clusters import autoscaling
from tests.e2e.nodes.recording_proxies import Answer, recording

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.nodes.live_clusters import Cluster

FLAGS = ("--max-node-provision-time=2s", "--force-delete-unregistered-nodes")
NODES = "/api/v1/nodes"


def keep_half(listed: dict[str, Any]) -> bytes:
    return json.dumps({**listed, "items": listed["items"][::2]}).encode()


def keep_none(listed: dict[str, Any]) -> bytes:
    return json.dumps({**listed, "items": []}).encode()


def garble_all(listed: dict[str, Any]) -> bytes:
    taint = {"key": "odd", "effect": "PreferNoSchedule", "timeAdded": "0000-01-01T00:00:00Z"}
    items = [{**item, "spec": {**item["spec"], "taints": [taint]}, "status": "?"} for item in listed["items"]]
    return json.dumps({**listed, "items": items}).encode()


def break_off(listed: dict[str, Any]) -> bytes:
    whole = json.dumps(listed).encode()
    return whole[: len(whole) // 2]


@pytest.mark.parametrize("change", [keep_half, keep_none, garble_all, break_off])
def test_instances_of_nodes_that_a_list_misses_are_kept(cluster: Cluster, change: Callable[[dict[str, Any]], bytes]):
    with recording(cluster.kubeconfig, cluster.folder) as proxy:
        account = cluster.as_account("falsified", through=proxy)
        cluster.deploy("large", 3, cpu="3")
        with autoscaling(cluster, account, *FLAGS, name="first"):
            cluster.until(lambda: cluster.running("large") == 3, "large pods run")
        before = machines_and_pods(cluster)
        proxy.falsify = lambda path, answer: (
            Answer(answer.status, change(json.loads(answer.body))) if path == NODES else answer
        )
        with autoscaling(cluster, account, *FLAGS, name="second") as autoscaler:
            if change in {keep_half, keep_none}:
                cluster.until(lambda: "deletion.held_back" in autoscaler.said, "the deletions are held back")
            else:
                cluster.until(lambda: proxy.falsified or "loop.done" in autoscaler.said, "lists were falsified")
        assert machines_and_pods(cluster) == before


def machines_and_pods(cluster: Cluster) -> tuple[set[str], dict[str, str]]:
    pods = {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in cluster.items("pods")}
    return cluster.names("machines"), pods
