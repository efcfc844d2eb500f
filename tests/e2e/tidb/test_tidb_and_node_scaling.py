"""The whole chain once in real time: `plimsoll up`, kubectl, a TiDB cluster whose load rises and falls.

It takes about six minutes, because metrics of an instance count two minutes after its start: nothing here is faked but
the load. The last store of a group stays for its first ten minutes, so it leaves with its autoscaler.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import yaml

from tests.e2e.up.test_journal import plimsoll
from tests.e2e.up.up_processes import UpProcess, needs_kubectl, running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

needs_kubectl()

ONE_PER_NODE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app.kubernetes.io/component": "tikv"}},
            }
        ]
    }
}
CURVE = """\
seconds, tikv_cores, hot_instances, hot_share
0,       2.7,        1,             0.6667
240,     2.7,        1,             0.6667
241,     0.3,        0,             0
"""
OBJECTS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}},
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "load", "namespace": "prod"},
        "data": {"curve.csv": CURVE},
    },
    {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": {"name": "db", "namespace": "prod", "annotations": {"simulated.plimsoll.io/load": "load"}},
        "spec": {
            "version": "v7.5.0",
            "pd": {"replicas": 1, "requests": {"cpu": "200m", "memory": "256Mi", "storage": "1Gi"}},
            "tikv": {
                "replicas": 3,
                "requests": {"cpu": "2", "memory": "2Gi", "storage": "10Gi"},
                "affinity": ONE_PER_NODE,
            },
            "tidb": {"replicas": 1, "requests": {"cpu": "500m", "memory": "512Mi"}},
        },
    },
    {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbClusterAutoScaler",
        "metadata": {"name": "as1", "namespace": "prod"},
        "spec": {
            "cluster": {"name": "db"},
            "tikv": {
                "scaleInIntervalSeconds": 0,
                "scaleOutIntervalSeconds": 0,
                "rules": {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}},
                "resources": {"small": {"cpu": "1", "memory": "1Gi", "storage": "10Gi", "count": 2}},
            },
        },
    },
]
PATIENCE_S = 300


def _until(up: UpProcess, is_so: Callable[[], Any], what: str) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until_s, f"not within {PATIENCE_S} s: {what}: {up.errors.read_text()[-2000:]}"
        time.sleep(1)


def _store_pods(up: UpProcess) -> list[dict[str, Any]]:
    return up.objects("pods", "-n", "prod", "-l", "app.kubernetes.io/component=tikv")


def _running_stores(up: UpProcess) -> list[dict[str, Any]]:
    return [store_pod for store_pod in _store_pods(up) if _is_running(store_pod)]


def _group_pods(up: UpProcess) -> list[dict[str, Any]]:
    return [store_pod for store_pod in _store_pods(up) if store_pod["metadata"]["name"].startswith("auto-")]


def _stores(up: UpProcess) -> dict[str, int]:
    """States by pod, as the simulated PD keeps them."""
    kept = json.loads(up.kubectl("get", "configmap", "db-simulated-pd", "-n", "prod", "-o", "json"))
    return {load["pod"]: load["state"] for load in json.loads(kept["data"]["state.json"])["stores"]}


def test_a_cluster_breathes_with_its_load(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--nodes", "3") as up:
        cluster = ("--kubeconfig", str(up.data / "kubeconfig"))
        plimsoll("nodes", "configure", "--scale-down-unneeded-time=30s", "--scale-down-delay-after-add=10s", *cluster)
        up.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(OBJECTS))
        _until(up, lambda: len(_running_stores(up)) == 3, "the cluster itself")
        nodes = len(up.objects("nodes"))

        _until(up, lambda: len(_group_pods(up)) == 2, "a group for the hot store")
        _until(up, lambda: all(_is_running(group_pod) for group_pod in _group_pods(up)), "machines for its pods")
        assert len(up.objects("nodes")) > nodes
        group = {group_pod["metadata"]["name"] for group_pod in _group_pods(up)}

        _until(up, lambda: len(_group_pods(up)) == 1, "the first store leaves")
        up.kubectl("delete", "tidbclusterautoscaler", "as1", "-n", "prod", "--wait=false")
        _until(up, lambda: not _group_pods(up), "the second store leaves")
        assert {pod for pod, state in _stores(up).items() if state == 2} == group
        assert len(_running_stores(up)) == 3
        _until(up, lambda: len(up.objects("nodes")) <= nodes, "the machines go")
        _until(up, lambda: not _autos(up), "the group is gone")
        _until(up, lambda: not up.objects("tidbclusterautoscalers", "-n", "prod"), "and so is its autoscaler")
        assert "prod/as1" in plimsoll("why", "tidbclusterautoscaler/prod/as1", "--data", up.data)


def _autos(up: UpProcess) -> list[str]:
    return [
        cluster["metadata"]["name"]
        for cluster in up.objects("tidbclusters", "-n", "prod")
        if "cluster" in cluster["spec"]
    ]


def _is_running(pod: dict[str, Any]) -> bool:
    return bool(pod["status"].get("phase") == "Running")
