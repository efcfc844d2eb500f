"""Set-ups of the recordings about endings and observers: delete, eviction, watch, expired, auth.

No controller runs in the replay. What the recorded ones did between two requests (a replica set's pods, garbage
collection, budgets' status) is written here, in the name of kube-controller-manager.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.setups.steps import (
    APPS,
    CONTROLLERS,
    CORE,
    POLICY,
    RBAC,
    AdvanceTime,
    Compact,
    IssueToken,
    Json,
    Send,
    StatusAsRecorded,
    Step,
    budget,
    configmap,
    delete,
    namespace,
    node,
    patch,
    pod,
    pod_status,
    running,
    workload,
)

_HOLD = ["ex.com/hold"]


def made_by_replica_set(where: str, owner: str, name: str, **metadata: Any) -> Send:
    """A pod as the replica set controller makes it. Its owner's uid is filled in by the replay."""
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": owner,
        "uid": f"<uid of {APPS}/namespaces/{where}/replicasets/{owner}>",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    full = {"generateName": f"{owner}-", "labels": {"app": owner}, "ownerReferences": [reference], **metadata}
    return pod(where, name, agent=CONTROLLERS, metadata=full)


def _replica_set_status(name: str, **status: Any) -> Send:
    return patch(f"{APPS}/namespaces/delete/replicasets/{name}/status", {"status": status}, agent=CONTROLLERS)


def _budget_status(where: str, name: str, **status: Any) -> Send:
    zero = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}
    path = f"{POLICY}/namespaces/{where}/poddisruptionbudgets/{name}/status"
    return patch(path, {"status": {"observedGeneration": 1, **zero, **status}}, agent=CONTROLLERS)


def _config_map_owner(name: str, uid: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}


_DELETE: dict[str, list[Step]] = {
    "delete-001": [
        namespace("delete"),
        configmap("delete", "a", data={"a": "b"}),
        configmap(
            "delete",
            "b",
            data={"a": "b"},
            stands_for={"uid": "e4a48ab0-dff4-4972-b318-d2e932b6008a", "resourceVersion": "508"},
        ),
        configmap("delete", "c", data={"a": "b"}),
        configmap("delete", "f", data={"a": "b"}, finalizers=_HOLD),
        configmap("delete", "bad", data={"a": "b"}),
    ],
    "delete-021": [pod("delete", "p1", nodeName="ghost")],
    "delete-026": [pod("delete", "p2", nodeName="ghost", terminationGracePeriodSeconds=7)],
    "delete-027": [pod("delete", "p3")],
    "delete-029": [
        pod("delete", "p4", nodeName="ghost"),
        pod_status("delete", "p4", phase="Succeeded"),
    ],
    "delete-030": [pod("delete", "p5", nodeName="ghost", metadata={"finalizers": ["ex.com/x"]})],
    "delete-032": [workload("ReplicaSet", "delete", "bg", replicas=1), made_by_replica_set("delete", "bg", "bg-tpvww")],
    "delete-035": [delete(f"{CORE}/namespaces/delete/pods/bg-tpvww", agent=CONTROLLERS)],
    "delete-036": [
        workload("ReplicaSet", "delete", "fg", replicas=1),
        made_by_replica_set("delete", "fg", "fg-vls5p"),
        _replica_set_status("fg", replicas=1, fullyLabeledReplicas=1, observedGeneration=1),
        patch(f"{CORE}/namespaces/delete/pods/fg-vls5p", {"metadata": {"finalizers": ["ex.com/slow"]}}),
    ],
    "delete-037": [
        delete(f"{CORE}/namespaces/delete/pods/fg-vls5p", agent=CONTROLLERS),
        StatusAsRecorded("delete-037"),
    ],
    "delete-039": [
        patch(f"{CORE}/namespaces/delete/pods/fg-vls5p", {"metadata": {"finalizers": None}}),
        patch(f"{APPS}/namespaces/delete/replicasets/fg", {"metadata": {"finalizers": None}}, agent=CONTROLLERS),
    ],
    "delete-040": [
        workload("ReplicaSet", "delete", "or", replicas=1),
        made_by_replica_set("delete", "or", "or-52srt"),
        StatusAsRecorded("delete-040"),
    ],
    "delete-041": [
        patch(f"{CORE}/namespaces/delete/pods/or-52srt", {"metadata": {"ownerReferences": None}}, agent=CONTROLLERS),
        patch(f"{APPS}/namespaces/delete/replicasets/or", {"metadata": {"finalizers": None}}, agent=CONTROLLERS),
    ],
    "delete-042": [
        configmap("delete", "owner", stands_for={"uid": "dd5f4711-a9d8-4bd3-a1b5-2788ba815d92"}),
    ],
    "delete-043": [delete(f"{CORE}/namespaces/delete/configmaps/child", agent=CONTROLLERS)],
    "delete-044": [
        configmap("delete", "owner2", stands_for={"uid": "055c7c7e-006a-4041-8959-7f7f2a5128a8"}),
        configmap(
            "delete",
            "twoparents",
            data={"a": "b"},
            ownerReferences=[_config_map_owner("owner2", "055c7c7e-006a-4041-8959-7f7f2a5128a8")],
        ),
    ],
    "delete-049": [
        *(configmap("delete", f"dc{number}", data={"a": "b"}, labels={"dc": str(number)}) for number in range(3)),
    ],
    "delete-053": [namespace("delete-ns"), configmap("delete-ns", "held", finalizers=_HOLD)],
    "delete-055": [AdvanceTime(5), StatusAsRecorded("delete-055")],
    "delete-057": [
        patch(f"{CORE}/namespaces/delete-ns/configmaps/held", {"metadata": {"finalizers": None}}),
        delete(f"{CORE}/namespaces/delete-ns/configmaps/held", agent=CONTROLLERS),
        Send(
            "PUT",
            f"{CORE}/namespaces/delete-ns/finalize",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "delete-ns"}, "spec": {"finalizers": []}},
            agent=CONTROLLERS,
        ),
    ],
}


def _evictable(name: str, app: str, *, image: str = "nginx:1.27") -> Send:
    return pod("evict", name, image=image, nodeName="ghost", metadata={"labels": {"app": app}})


_EVICTION: dict[str, list[Step]] = {
    "eviction-001": [
        namespace("evict"),
        node("ghost", spec={"unschedulable": True}),
        _evictable("free", "none"),
        running("evict", "free"),
    ],
    "eviction-004": [
        _evictable("w-8m78c", "w"),
        running("evict", "w-8m78c"),
        _evictable("w-hpn9p", "w"),
        running("evict", "w-hpn9p"),
        budget("evict", "w", app="w", minAvailable=1),
        StatusAsRecorded("eviction-004"),
    ],
    "eviction-007": [StatusAsRecorded("eviction-007")],
    "eviction-010": [StatusAsRecorded("eviction-010")],
    "eviction-011": [
        patch(f"{POLICY}/namespaces/evict/poddisruptionbudgets/w", {"spec": {"minAvailable": 5}}),
        _budget_status("evict", "w", observedGeneration=2, currentHealthy=1, desiredHealthy=5, expectedPods=3),
    ],
    "eviction-013": [budget("evict", "w2", app="w", minAvailable=1)],
    "eviction-017": [pod("evict", "pend", metadata={"labels": {"app": "w"}})],
    "eviction-019": [
        _evictable("unh", "u"),
        running("evict", "unh", ready="False"),
        budget("evict", "u", app="u", minAvailable=1),
        _budget_status("evict", "u", desiredHealthy=1, expectedPods=1),
    ],
    "eviction-020": [
        patch(
            f"{POLICY}/namespaces/evict/poddisruptionbudgets/u", {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}
        ),
        _budget_status("evict", "u", observedGeneration=2, desiredHealthy=1, expectedPods=1),
    ],
    "eviction-022": [_evictable("e1", "solo", image="x")],
    "eviction-025": [_evictable("e2", "solo", image="x")],
    "eviction-029": [_evictable("e3", "zero", image="x"), budget("evict", "zero", app="zero", minAvailable=0)],
    "eviction-030": [_evictable("e9", "unobserved", image="x"), running("evict", "e9")],
}

_AUTH: dict[str, list[Step]] = {
    "auth-001": [
        namespace("auth"),
        Send(
            "POST",
            f"{CORE}/namespaces/auth/serviceaccounts",
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}},
            stands_for={"uid": "0d1e35d3-d600-459f-8d90-b8f4a3d6ecfd"},
        ),
        IssueToken("auth", "sa"),
    ],
    "auth-018": [
        Send(
            "POST",
            f"{RBAC}/namespaces/auth/roles",
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": {"name": "r"},
                "rules": [
                    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"], "resourceNames": ["only"]},
                    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create"]},
                    {
                        "apiGroups": ["rbac.authorization.k8s.io"],
                        "resources": ["roles", "rolebindings"],
                        "verbs": ["create"],
                    },
                ],
            },
        ),
        Send(
            "POST",
            f"{RBAC}/namespaces/auth/rolebindings",
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": "r"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
                "subjects": [{"kind": "ServiceAccount", "name": "sa", "namespace": "auth"}],
            },
        ),
    ],
}

_WATCHED = f"{CORE}/namespaces/watch/configmaps"
_LABELLED = {"w": "1"}

_WATCH: dict[str, list[Step]] = {
    "watch-001": [
        namespace("watch"),
        configmap("watch", "a", labels=_LABELLED),
        configmap("watch", "b", labels=_LABELLED),
    ],
    "watch-005": [configmap("watch", "unlabelled", stands_for={"resourceVersion": "708"})],
    "expired-001": [
        namespace("exp"),
        *(configmap("exp", f"c{number}") for number in range(4)),
        configmap("exp", "c4", stands_for={"resourceVersion": "460"}),
        configmap("exp", "later"),
        Send("DELETE", f"{CORE}/namespaces/exp/configmaps/later"),
        Compact(),
    ],
    "expired-008": [configmap("exp", "last", stands_for={"resourceVersion": "536"})],
}

# What happened while a recorded watch was open.
DURING: dict[str, list[Step]] = {
    "watch-001": [
        configmap("watch", "n", labels=_LABELLED),
        patch(f"{_WATCHED}/n", {"data": {"a": "b"}}),
        patch(f"{_WATCHED}/n", {"data": {"a": "b"}}),
        delete(f"{_WATCHED}/n"),
    ],
    "watch-005": [
        patch(f"{_WATCHED}/a", {"metadata": {"labels": {"w": None}}}),
        patch(f"{_WATCHED}/a", {"data": {"out": "1"}}),
        patch(f"{_WATCHED}/a", {"metadata": {"labels": _LABELLED}}),
    ],
    "watch-006": [
        configmap("watch", "fin", labels=_LABELLED, finalizers=["ex.com/x"]),
        delete(f"{_WATCHED}/fin"),
        patch(f"{_WATCHED}/fin", {"metadata": {"finalizers": None}}),
    ],
    "table-041": [patch(f"{CORE}/namespaces/table/pods/p1", {"metadata": {"labels": {"x": "z"}}})],
    "expired-008": [
        Send(
            "POST",
            f"{CORE}/namespaces/exp/configmaps",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "z-"}},
        )
    ],
}

BEFORE: dict[str, list[Step]] = {**_DELETE, **_EVICTION, **_AUTH, **_WATCH}
