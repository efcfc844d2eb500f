"""A scenario in which most of what can happen in a cluster does: deployments, jobs, volumes, a drain, a stock-out."""

from __future__ import annotations

from typing import Any

from tests.simulation.builders import SMALL, group, replica_set, template


def busy_scenario(world: str) -> dict[str, Any]:
    groups = [group("a", target=2, zone="z1", bootSeconds=20), group("b", target=1, zone="z2", bootSeconds=35)]
    whole = {"world": world, "machineTypes": [{**SMALL, "zones": ["z1", "z2"]}], "nodeGroups": groups}
    passing: list[dict[str, Any]] = [{"advance": "1m"}]
    if world == "stepped":
        passing = [{"schedule": True}, {"advance": "30s"}, {"schedule": True}, {"advance": "30s"}]
    return {**whole, "objects": _objects(), "steps": _steps(passing, is_live=world == "live")}


def _steps(passing: list[dict[str, Any]], *, is_live: bool) -> list[dict[str, Any]]:
    # What is sold out is given up by the autoscaler, which runs by itself in a live world only.
    wanted = 2 if is_live else 3
    grow = [{"call": "IncreaseSize", "group": name, "arg": 2} for name in ("a", "b")]
    taint = {"key": "going", "effect": "NoExecute"}
    drain = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a-0"}, "spec": {"taints": [taint]}}
    return [
        *passing,
        {"provider": {"stockout": {"small": 3}}},
        {"provider": {"calls": grow}},
        *passing,
        {"expect": {"/nodes": {"count": 6}, "/nodeGroups/a/target": 4, "/nodeGroups/b/target": wanted}},
        {"apply": _with_replicas(10)},
        {"crash": {"component": "kube-controller-manager", "afterCalls": 3}},
        *passing,
        {"apply": drain},
        {"delete": {"kind": "Job", "name": "sums"}},
        {"provider": {"calls": [{"call": "DeleteNodes", "group": "b", "arg": ["b-0"]}]}},
        *passing,
        *passing,
    ]


def _with_replicas(replicas: int) -> dict[str, Any]:
    return {**replica_set("web", replicas=replicas, cpu="500m"), "kind": "Deployment"}


def _objects() -> list[dict[str, Any]]:
    job = {
        "parallelism": 3,
        "completions": 6,
        "template": {"spec": {**template("100m")["spec"], "restartPolicy": "Never"}},
    }
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "disk",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    stateful = replica_set("db", replicas=3, cpu="500m")
    stateful["spec"] |= {
        "serviceName": "db",
        "podManagementPolicy": "Parallel",
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "disk"},
            "provisioner": "plimsoll.io/simulated",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        _with_replicas(6),
        {**stateful, "kind": "StatefulSet"},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sums"}, "spec": job},
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web"},
            "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}},
        },
    ]
