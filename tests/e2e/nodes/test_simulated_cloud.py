"""`plimsoll run cloud` and `plimsoll run kubelet` on an API server that has nothing else: groups become ready nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e.apiserver.processes import running
from tests.e2e.nodes.live_clusters import Cluster, playing
from tests.e2e.up.up_processes import needs_kubectl

if TYPE_CHECKING:
    from pathlib import Path


def ready(cluster: Cluster) -> set[str]:
    return {
        node["metadata"]["name"]
        for node in cluster.items("nodes")
        for condition in node["status"].get("conditions", ())
        if (condition["type"], condition["status"]) == ("Ready", "True")
    }


def test_a_group_becomes_ready_nodes_and_goes_with_them(tmp_path: Path):
    needs_kubectl()
    with running(tmp_path / "data") as server:
        cluster = Cluster(server.kubeconfig, tmp_path)
        with playing(cluster, "cloud", "--boot-seconds", "0.5"), playing(cluster, "kubelet"):
            group = {"machineType": "n1-standard-4", "max": 3, "target": 2}
            head = {"apiVersion": "cloud.plimsoll.io/v1alpha1", "kind": "NodeGroup"}
            cluster.apply({**head, "metadata": {"name": "web"}, "spec": group})
            cluster.until(lambda: ready(cluster) == {"web-0", "web-1"}, "two ready nodes")
            cluster.kubectl("delete", "nodegroup", "web")
            cluster.until(lambda: not cluster.names("nodes"), "no node is left")
