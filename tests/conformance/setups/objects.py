"""Set-ups of the recordings about objects: create, read, update, patch, apply, subresources and the like."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.setups.steps import (
    APPS,
    BATCH,
    CONTROLLERS,
    CORE,
    RBAC,
    SCHEDULING,
    STORAGE,
    Send,
    StatusAsRecorded,
    Step,
    configmap,
    namespace,
    node,
    patch,
    pod,
    workload,
)


def _read_configmap(number: int) -> Send:
    labels = {"n": str(number), "even": "true" if number % 2 == 0 else "false"}
    if number == 3:
        labels["only"] = "x"
    return configmap("read", f"cm-{number}", data={"i": str(number)}, labels=labels)


def _read_pod(name: str, **spec: Any) -> Send:
    return pod("read", name, metadata={"labels": {"p": name}}, **spec)


_JOB_TEMPLATE = {
    "spec": {"schedulerName": "none", "restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}
}

_UPDATE_OBJECTS: list[Step] = [
    workload("StatefulSet", "update", "s", serviceName="s", replicas=0),
    Send(
        "POST",
        f"{BATCH}/namespaces/update/jobs",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {"suspend": True, "completions": 1, "template": _JOB_TEMPLATE},
        },
    ),
    Send(
        "POST",
        f"{CORE}/namespaces/update/services",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "svc"},
            "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]},
        },
    ),
    Send(
        "POST",
        f"{CORE}/namespaces/update/secrets",
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sec"}, "data": {"a": "Yg=="}},
    ),
    Send(
        "POST",
        f"{CORE}/namespaces/update/configmaps",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "im"},
            "data": {"a": "b"},
            "immutable": True,
        },
    ),
    Send(
        "POST",
        f"{CORE}/namespaces/update/persistentvolumeclaims",
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "pvc"},
            "spec": {
                "storageClassName": "x",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    ),
    Send(
        "POST",
        f"{STORAGE}/storageclasses",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "upd"},
            "provisioner": "a/b",
        },
    ),
    Send(
        "POST",
        f"{SCHEDULING}/priorityclasses",
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "upd"}, "value": 5},
    ),
    Send(
        "POST",
        f"{RBAC}/namespaces/update/rolebindings",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "rb"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        },
    ),
    Send(
        "POST",
        "/apis/policy/v1/namespaces/update/poddisruptionbudgets",
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "pdb"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
        },
    ),
]

BEFORE: dict[str, list[Step]] = {
    "create-002": [namespace("create")],
    "create-044": [namespace("create-lr")],
    "create-047": [namespace("create-quota")],
    "create-048": [StatusAsRecorded("create-048")],
    "read-001": [namespace("read"), *(_read_configmap(number) for number in range(5))],
    # "New object not seen": it sorts between the pages.
    "read-006": [configmap("read", "cm-1a", labels={"n": "late"})],
    "read-036": [_read_pod("a"), _read_pod("b", restartPolicy="Never")],
    "read-048": [
        Send(
            "POST",
            f"{CORE}/nodes",
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "create-node", "labels": {"kubernetes.io/hostname": "create-node"}},
                "spec": {"unschedulable": True},
            },
        )
    ],
    "update-001": [
        namespace("update"),
        configmap(
            "update",
            "a",
            data={"x": "1"},
            stands_for={"uid": "b99015a3-8e9a-4987-8f08-1b80d0314a41", "resourceVersion": "357"},
        ),
    ],
    "update-017": [StatusAsRecorded("update-017")],
    "update-018": [StatusAsRecorded("update-018")],
    "update-019": [StatusAsRecorded("update-019")],
    "update-020": [
        patch(
            f"{APPS}/namespaces/update/deployments/g/status", {"status": {"observedGeneration": 3}}, agent=CONTROLLERS
        )
    ],
    "update-030": _UPDATE_OBJECTS,
    "patch-001": [
        namespace("patch"),
        configmap("patch", "a", data={"x": "1", "y": "2"}, labels={"l": "1"}),
    ],
    "patch-036": [
        patch(f"{APPS}/namespaces/patch/deployments/d", {"metadata": {"finalizers": ["ex.com/a", "ex.com/b"]}}),
    ],
    "patch-043": [node("patch-node", spec={"unschedulable": True})],
    "patch-044": [
        patch(
            f"{CORE}/nodes/patch-node",
            {"metadata": {"annotations": {"node.alpha.kubernetes.io/ttl": "0"}}},
            agent=CONTROLLERS,
        )
    ],
    "apply-001": [namespace("apply")],
    "apply-029": [StatusAsRecorded("apply-029")],
    "apply-034": [StatusAsRecorded("apply-034")],
    "apply-036": [StatusAsRecorded("apply-036", without=("Mine",))],
    "apply-038": [
        Send(
            "POST",
            f"{CORE}/namespaces/apply/configmaps",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "csa"}, "data": {"a": "1", "b": "1"}},
            query={"fieldManager": "kubectl-client-side-apply"},
        )
    ],
    "subresources-001": [
        namespace("sub"),
        pod(
            "sub",
            "p",
            stands_for={"uid": "710d51aa-ef56-4213-aa81-445c0b66cf3f", "resourceVersion": "470"},
        ),
        pod("sub", "p2", stands_for={"uid": "55fc0467-76f4-447d-a0b7-75f0305b2f23"}),
        workload("Deployment", "sub", "d", paused=True, replicas=1),
        StatusAsRecorded("subresources-007"),
    ],
    "subresources-010": [StatusAsRecorded("subresources-018", stands_for={"resourceVersion": "482"})],
    "subresources-018": [StatusAsRecorded("subresources-018")],
    "subresources-019": [workload("StatefulSet", "sub", "s", serviceName="s", replicas=0)],
    "subresources-027": [pod("sub", "gated", schedulingGates=[{"name": "ex.com/g"}])],
    "fieldvalidation-001": [namespace("fv")],
    "fieldvalidation-012": [configmap("fv", "p")],
    "errors-001": [namespace("err")],
    "errors-039": [configmap("err", "dup")],
    "lease-001": [namespace("lease")],
    "events-001": [namespace("events")],
}

# Bodies that were too long to be recorded.
_LONG_VALUE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}}
LONG_BODIES: dict[str, bytes] = {
    "errors-049": json.dumps({**_LONG_VALUE, "data": {"a": "x" * 3_300_000}}).encode(),
    "errors-050": json.dumps({**_LONG_VALUE, "data": {"a": "x" * 1_100_000}}).encode(),
    "errors-051": json.dumps(
        {**_LONG_VALUE, "metadata": {"name": "big", "annotations": {"a": "x" * 270_000}}},
    ).encode(),
    "errors-052": json.dumps({"data": {"a": "x" * 3_300_000}}).encode(),
    "errors-053": json.dumps([{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 10_001).encode(),
}

# Headers that were sent and are not in the recording; None: not sent although it is there.
HEADERS_AS_SENT: dict[str, dict[str, str | None]] = {
    "errors-048": {"Content-Type": None},
    "auth-017": {"Impersonate-User": "bob"},
}
