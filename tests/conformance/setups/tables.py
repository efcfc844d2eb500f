"""Set-up of the recordings of tables: they list what everything recorded before them had left behind.

Only what shows in a row is made as it was; of the rest only the number is known (`remainingItemCount`).
"""

from __future__ import annotations

from typing import Any

from tests.conformance.setups.steps import (
    APPS,
    BATCH,
    CONTROLLERS,
    CORE,
    POLICY,
    RBAC,
    SCHEDULING,
    STORAGE,
    FillUp,
    Json,
    Send,
    StatusAsRecorded,
    Step,
    budget,
    configmap,
    namespace,
    node,
    patch,
    pod,
    pod_status,
    workload,
)

# Any name after these sorts behind what the recorded rows show.
REST = "zz"


def _post(path: str, api_version: str, kind: str, name: str, **fields: Any) -> Send:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return Send("POST", path, {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def _job(name: str, *, completions: int) -> Send:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1.36"}]}}
    spec = {"suspend": True, "completions": completions, "template": template}
    return _post(f"{BATCH}/namespaces/create/jobs", "batch/v1", "Job", name, spec=spec)


def _service(name: str, **spec: Any) -> Send:
    full = {"selector": {"app": "x"}, "ports": [{"port": 80}], **spec}
    return _post(f"{CORE}/namespaces/create/services", "v1", "Service", name, spec=full)


def _claim(where: str, name: str, **spec: Any) -> Send:
    full = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    path = f"{CORE}/namespaces/{where}/persistentvolumeclaims"
    return _post(path, "v1", "PersistentVolumeClaim", name, spec=full)


def _replica_set(name: str, *, app: str, hash_: str) -> Send:
    labels = {"app": app, "pod-template-hash": hash_}
    pod_spec = {"containers": [{"name": "c", "image": "nginx:1.27"}]}
    spec: Json = {
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod_spec},
    }
    return _post(f"{APPS}/namespaces/create/replicasets", "apps/v1", "ReplicaSet", name, spec=spec)


def _event(name: str, *, kind: str, of: str, reason: str, message: str, **fields: Any) -> Send:
    involved = {"kind": kind, "namespace": "create", "name": of}
    path = f"{CORE}/namespaces/create/events"
    return _post(
        path, "v1", "Event", name, involvedObject=involved, reason=reason, message=message, type="Normal", **fields
    )


def _fill(listed: str, posted: str, total: int, template: Json) -> FillUp:
    return FillUp(listed, posted, template, total)


_CONTAINER: Json = {"name": "c", "image": "nginx:1.27", "imageID": "", "ready": False, "restartCount": 0}
_BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
_FINISHED = {"finishedAt": "2026-01-01T00:00:00Z", "startedAt": "2026-01-01T00:00:00Z", "exitCode": 1}

_PODS: list[Step] = [
    namespace("table"),
    pod("table", "p1", metadata={"labels": {"app": "t"}}),
    pod("table", "p2", metadata={"labels": {"app": "t"}}, nodeName="ghost2"),
    pod_status(
        "table",
        "p2",
        phase="Running",
        podIP="10.1.1.1",
        podIPs=[{"ip": "10.1.1.1"}],
        conditions=[{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        containerStatuses=[
            {
                **_CONTAINER,
                "ready": True,
                "restartCount": 2,
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                "lastState": {"terminated": _FINISHED},
            }
        ],
    ),
    pod("table", "p3", metadata={"labels": {"app": "t"}}),
    pod_status("table", "p3", containerStatuses=[{**_CONTAINER, "state": _BACK_OFF}]),
    *(node(name, spec={"unschedulable": True}) for name in ("create-node", "ghost", "patch-node")),
    patch(
        f"{CORE}/nodes/patch-node/status",
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
    ),
]

_RULES = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
_TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]}}

_EVERYTHING: list[Step] = [
    *(namespace(name) for name in ("apply", "auth", "create", "evict", "sub", "update", REST)),
    _replica_set("d-6d847b74b", app="x", hash_="6d847b74b"),
    _replica_set("d3-6bb64d9f7", app="x3", hash_="6bb64d9f7"),
    workload("StatefulSet", "create", "s", serviceName="s", replicas=0),
    workload("StatefulSet", "sub", "s", serviceName="s", replicas=0),
    workload("DaemonSet", "create", "ds", app="x6"),
    patch(
        f"{APPS}/namespaces/create/daemonsets/ds/status",
        {
            "status": {
                "currentNumberScheduled": 2,
                "desiredNumberScheduled": 2,
                "updatedNumberScheduled": 2,
                "numberMisscheduled": 0,
                "numberReady": 0,
            }
        },
        agent=CONTROLLERS,
    ),
    _job("j", completions=1),
    _job("ji", completions=3),
    *(
        patch(
            f"{BATCH}/namespaces/create/jobs/{name}/status",
            {"status": {"conditions": [{"type": "Suspended", "status": "True"}]}},
            agent=CONTROLLERS,
        )
        for name in ("j", "ji")
    ),
    _service("headless", clusterIP="None"),
    _service("svc"),
    configmap("apply", "a", data={"a": "1", "b": "2"}),
    configmap("apply", "csa", data={"a": "1", "b": "2"}),
    _post(f"{CORE}/namespaces/create/secrets", "v1", "Secret", "sec", data={"a": "Yg==", "b": "Yg=="}),
    _post(f"{CORE}/namespaces/update/secrets", "v1", "Secret", "sec", data={"a": "Yg=="}),
    _event(
        "data.18e81c184dcd0dac",
        kind="PersistentVolumeClaim",
        of="data",
        reason="FailedBinding",
        message="no persistent volumes available for this claim and no storage class is set",
        source={"component": "persistentvolume-controller"},
        firstTimestamp="2026-11-15T04:01:43Z",
        lastTimestamp="2026-11-15T04:02:07Z",
        count=3,
    ),
    _event(
        "ds.18e81c185e817aa1",
        kind="DaemonSet",
        of="ds",
        reason="SuccessfulCreate",
        message="Created pod: ds-nnx4t",
        source={"component": "daemonset-controller"},
        firstTimestamp="2026-11-15T04:01:43Z",
        lastTimestamp="2026-11-15T04:01:43Z",
        count=1,
    ),
    _claim("create", "data"),
    _claim("update", "pvc", storageClassName="x"),
    _post(
        f"{CORE}/persistentvolumes",
        "v1",
        "PersistentVolume",
        "create-pv",
        spec={
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "none-such",
            "hostPath": {"path": "/x"},
        },
    ),
    patch(f"{CORE}/persistentvolumes/create-pv/status", {"status": {"phase": "Available"}}, agent=CONTROLLERS),
    budget("create", "pdb", app="x", minAvailable="50%"),
    budget("evict", "u", app="u", minAvailable=1),
    _post(
        "/apis/coordination.k8s.io/v1/namespaces/create/leases",
        "coordination.k8s.io/v1",
        "Lease",
        "l",
        spec={"holderIdentity": "me"},
    ),
    _post(
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
        "coordination.k8s.io/v1",
        "Lease",
        "apiserver-wlv32tlttr4jl3gtroqexyxapa",
        spec={"holderIdentity": "apiserver-wlv32tlttr4jl3gtroqexyxapa_2a93ba22-6da2-49fa-9bc4-d6e21e97a400"},
    ),
    _post(f"{STORAGE}/storageclasses", "storage.k8s.io/v1", "StorageClass", "create-sc", provisioner="example.com/p"),
    _post(f"{STORAGE}/storageclasses", "storage.k8s.io/v1", "StorageClass", "upd", provisioner="a/b"),
    _post(f"{SCHEDULING}/priorityclasses", "scheduling.k8s.io/v1", "PriorityClass", "create-high", value=1000),
    _post(f"{SCHEDULING}/priorityclasses", "scheduling.k8s.io/v1", "PriorityClass", "upd", value=5),
    _post(
        f"{CORE}/namespaces/create/resourcequotas",
        "v1",
        "ResourceQuota",
        "rq",
        spec={"hard": {"count/configmaps": "2", "pods": "1", "requests.cpu": "1"}},
    ),
    patch(
        f"{CORE}/namespaces/create/resourcequotas/rq/status",
        {
            "status": {
                "hard": {"count/configmaps": "2", "pods": "1", "requests.cpu": "1"},
                "used": {"count/configmaps": "1", "pods": "1", "requests.cpu": "600m"},
            }
        },
        agent=CONTROLLERS,
    ),
    _post(f"{CORE}/namespaces/create/podtemplates", "v1", "PodTemplate", "pt", template=_TEMPLATE),
    _post(f"{RBAC}/namespaces/auth/roles", "rbac.authorization.k8s.io/v1", "Role", "r", **_RULES),
    _post(f"{RBAC}/namespaces/create/roles", "rbac.authorization.k8s.io/v1", "Role", "r", **_RULES),
    _post(
        "/apis/discovery.k8s.io/v1/namespaces/create/endpointslices",
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "es",
        addressType="IPv4",
        endpoints=[{"addresses": ["10.0.0.1"]}],
        ports=[{"port": 80}],
    ),
    _post(
        "/apis/discovery.k8s.io/v1/namespaces/create/endpointslices",
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "headless-knvg9",
        addressType="IPv4",
        endpoints=[],
        ports=[],
    ),
    _post(
        "/apis/networking.k8s.io/v1/namespaces/create/networkpolicies",
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "np",
        spec={"podSelector": {}},
    ),
    _post(
        f"{STORAGE}/csinodes",
        "storage.k8s.io/v1",
        "CSINode",
        "nonode",
        spec={"drivers": [{"name": "d", "nodeID": "n"}]},
    ),
    _post(
        f"{APPS}/namespaces/create/controllerrevisions",
        "apps/v1",
        "ControllerRevision",
        "cr",
        revision=1,
        data={"a": 1},
    ),
    _post(
        f"{APPS}/namespaces/create/controllerrevisions",
        "apps/v1",
        "ControllerRevision",
        "ds-777db5645b",
        metadata={
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": "ds",
                    "uid": f"<uid of {APPS}/namespaces/create/daemonsets/ds>",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ]
        },
        revision=1,
        data={"a": 1},
    ),
]

_SELECTED = {"selector": {"matchLabels": {"app": "zz"}}}
_ZZ_TEMPLATE = {"metadata": {"labels": {"app": "zz"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
_ZZ_JOB = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}

_NUMBERS: list[Step] = [
    _fill(f"{CORE}/namespaces", f"{CORE}/namespaces", 19, {"kind": "Namespace"}),
    _fill(
        f"{APPS}/replicasets",
        f"{APPS}/namespaces/{REST}/replicasets",
        4,
        {"kind": "ReplicaSet", "spec": {**_SELECTED, "template": _ZZ_TEMPLATE}},
    ),
    _fill(
        f"{APPS}/statefulsets",
        f"{APPS}/namespaces/{REST}/statefulsets",
        3,
        {"kind": "StatefulSet", "spec": {**_SELECTED, "serviceName": "s", "template": _ZZ_TEMPLATE}},
    ),
    _fill(
        f"{BATCH}/jobs",
        f"{BATCH}/namespaces/{REST}/jobs",
        3,
        {"kind": "Job", "spec": {"suspend": True, "template": _ZZ_JOB}},
    ),
    _fill(
        f"{CORE}/services",
        f"{CORE}/namespaces/{REST}/services",
        4,
        {"kind": "Service", "spec": {"ports": [{"port": 80}]}},
    ),
    _fill(f"{CORE}/configmaps", f"{CORE}/namespaces/{REST}/configmaps", 50, {"kind": "ConfigMap"}),
    _fill(
        f"{CORE}/events",
        f"{CORE}/namespaces/{REST}/events",
        20,
        {"kind": "Event", "involvedObject": {"kind": "Pod", "namespace": REST, "name": "p"}},
    ),
    _fill(
        f"{POLICY}/poddisruptionbudgets",
        f"{POLICY}/namespaces/{REST}/poddisruptionbudgets",
        5,
        {"kind": "PodDisruptionBudget", "spec": {**_SELECTED, "minAvailable": 1}},
    ),
    _fill(
        "/apis/coordination.k8s.io/v1/leases",
        f"/apis/coordination.k8s.io/v1/namespaces/{REST}/leases",
        3,
        {"kind": "Lease"},
    ),
    _fill(f"{CORE}/serviceaccounts", f"{CORE}/namespaces/{REST}/serviceaccounts", 55, {"kind": "ServiceAccount"}),
    _fill(f"{RBAC}/roles", f"{RBAC}/namespaces/{REST}/roles", 9, {"kind": "Role", **_RULES}),
    _fill(
        "/apis/discovery.k8s.io/v1/endpointslices",
        f"/apis/discovery.k8s.io/v1/namespaces/{REST}/endpointslices",
        3,
        {"kind": "EndpointSlice", "addressType": "IPv4", "endpoints": []},
    ),
    _fill(
        f"{APPS}/controllerrevisions",
        f"{APPS}/namespaces/{REST}/controllerrevisions",
        5,
        {"kind": "ControllerRevision", "revision": 1, "data": {"a": 1}},
    ),
]

BEFORE: dict[str, list[Step]] = {
    "table-001": _PODS,
    "table-010": [workload("Deployment", "table", "d", paused=True, replicas=2), StatusAsRecorded("table-010")],
    "table-011": [*_EVERYTHING, *_NUMBERS],
}

# A table does not show the status it was made from.
STATUS_BEHIND_TABLES: dict[str, Json] = {
    "table-010": {
        "observedGeneration": 1,
        "conditions": [
            {
                "type": "Progressing",
                "status": "Unknown",
                "reason": "DeploymentPaused",
                "message": "Deployment is paused",
                "lastUpdateTime": "2026-11-15T04:02:58Z",
                "lastTransitionTime": "2026-11-15T04:02:58Z",
            },
            {
                "type": "Available",
                "status": "False",
                "reason": "MinimumReplicasUnavailable",
                "message": "Deployment does not have minimum availability.",
                "lastUpdateTime": "2026-11-15T04:02:58Z",
                "lastTransitionTime": "2026-11-15T04:02:58Z",
            },
        ],
    }
}
