"""Where the recorder's own part in a scenario differs from `lifecycles`, because controllers do the rest."""

from __future__ import annotations

from tests.conformance.setups.lifecycles import made_by_replica_set
from tests.conformance.setups.steps import (
    CORE,
    POLICY,
    AdvanceTime,
    Json,
    Send,
    Step,
    budget,
    configmap,
    delete,
    patch,
    pod,
    running,
    workload,
)

_OWNER = "dd5f4711-a9d8-4bd3-a1b5-2788ba815d92"
_OTHER_OWNER = "055c7c7e-006a-4041-8959-7f7f2a5128a8"
_HOLDER = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "holder",
    "uid": f"<uid of {CORE}/namespaces/evict/configmaps/holder>",
    "controller": True,
}


def _reference(name: str, uid: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}


def _on_the_ghost(replica_set: Send) -> Send:
    template = replica_set.body["spec"]["template"]
    bound = {**template, "spec": {**template["spec"], "nodeName": "ghost"}}
    return replica_set._replace(body={**replica_set.body, "spec": {**replica_set.body["spec"], "template": bound}})


def _budget(name: str, **spec: object) -> Send:
    return patch(f"{POLICY}/namespaces/evict/poddisruptionbudgets/{name}", {"spec": spec})


INSTEAD: dict[str, list[Step]] = {
    "delete-043": [delete(f"{CORE}/namespaces/delete/configmaps/owner")],
    "delete-044": [
        configmap("delete", "owner2", stands_for={"uid": _OTHER_OWNER}),
        configmap(
            "delete",
            "twoparents",
            data={"a": "b"},
            ownerReferences=[_reference("owner", _OWNER), _reference("owner2", _OTHER_OWNER)],
        ),
    ],
    "delete-045": [
        configmap("delete", "dangling", ownerReferences=[_reference("never", "00000000-0000-4000-8000-000000000000")])
    ],
    "delete-057": [
        patch(f"{CORE}/namespaces/delete-ns/configmaps/held", {"metadata": {"finalizers": None}}),
        AdvanceTime(15),
    ],
    "eviction-004": [
        _on_the_ghost(workload("ReplicaSet", "evict", "w", replicas=2)),
        made_by_replica_set("evict", "w", "w-8m78c"),
        made_by_replica_set("evict", "w", "w-hpn9p"),
        running("evict", "w-8m78c"),
        running("evict", "w-hpn9p"),
        budget("evict", "w", app="w", minAvailable=1),
    ],
    "eviction-011": [_budget("w", minAvailable=5)],
    # It has an owner already, or the replica set would take it for one too many.
    "eviction-017": [
        configmap("evict", "holder"),
        pod("evict", "pend", metadata={"labels": {"app": "w"}, "ownerReferences": [_HOLDER]}),
    ],
    "eviction-019": [
        pod("evict", "unh", nodeName="ghost", metadata={"labels": {"app": "u"}}),
        running("evict", "unh", ready="False"),
        budget("evict", "u", app="u", minAvailable=1),
    ],
    "eviction-020": [_budget("u", unhealthyPodEvictionPolicy="AlwaysAllow")],
}

# After these the recorder ended the controller manager.
LAST = {"eviction": "eviction-029"}
