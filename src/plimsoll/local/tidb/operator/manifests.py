"""The objects of a TidbCluster: one StatefulSet and its services per component. Pure.

`clusters` writes them. Names, labels and ports are those that TiDB Operator gives, because monitoring, PD and people
go by them. What a container would have to know to start TiDB is left out: nothing starts here.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from plimsoll.local.tidb.instances import CLIENT_PORTS, COMPONENTS, PD, TIDB, TIKV, build_component_labels, set_name

APPLIED: Final = "simulated.plimsoll.io/applied"
"""On every object made here: a hash of what was written, so that what did not change is not written again."""

_PEER_PORTS: Final = {PD: 2380, TIKV: 20160, TIDB: 10080}
_PORT_NAMES: Final = {PD: "client", TIKV: "server", TIDB: "mysql-client"}
_IMAGES: Final = {PD: "pingcap/pd", TIKV: "pingcap/tikv", TIDB: "pingcap/tidb"}
_STORAGE: Final = "storage"
_WITH_SERVICE: Final = (PD, TIDB)
_RECLAIMED: Final = {"whenDeleted": "Delete", "whenScaled": "Delete"}
# What comes back after it was scaled away must not find the data of a store that PD has buried.
_RETAINED: Final = {"whenDeleted": "Retain", "whenScaled": "Delete"}
_POD_FIELDS: Final = (
    "affinity",
    "hostNetwork",
    "nodeSelector",
    "priorityClassName",
    "schedulerName",
    "tolerations",
    "topologySpreadConstraints",
)

Json = dict[str, Any]


def list_components(spec: Json) -> tuple[str, ...]:
    """Those that a TidbCluster has, in the order in which they start."""
    return tuple(component for component in COMPONENTS if isinstance(spec.get(component), dict))


def build_services(metadata: Json, component: str, *, owner: Json) -> list[Json]:
    """`<tc>-<component>-peer` without an address of its own, and for PD and TiDB one that clients use."""
    name = set_name(metadata["name"], component)
    peer = _build_service(metadata, component, name=f"{name}-peer", owner=owner)
    peer["spec"] |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    peer["spec"]["ports"] = [{"name": "peer", "port": _PEER_PORTS[component]}]
    if component not in _WITH_SERVICE:
        return [add_hash(peer)]
    return [add_hash(peer), add_hash(_build_service(metadata, component, name=name, owner=owner))]


def build_stateful_set(metadata: Json, spec: Json, component: str, *, owner: Json) -> Json:
    """The StatefulSet with the replicas of the TidbCluster. The caller decides whether that count applies at once."""
    own = spec[component]
    labels = build_component_labels(metadata["name"], component)
    name = set_name(metadata["name"], component)
    body: Json = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": _build_metadata(metadata, name, labels, owner),
        "spec": {
            "serviceName": f"{name}-peer",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "persistentVolumeClaimRetentionPolicy": _RECLAIMED if spec.get("enablePVReclaim") else _RETAINED,
            "template": {
                "metadata": {"labels": labels, "annotations": _build_annotations(spec, own)},
                "spec": _build_pod_spec(spec, own, component),
            },
            "volumeClaimTemplates": _build_claims(own, component, labels),
        },
    }
    marked_body = add_hash(body)
    marked_body["spec"]["replicas"] = own.get("replicas", 0)
    return marked_body


def add_hash(body: Json) -> Json:
    """With the hash of itself. What is set afterwards is not part of it."""
    digest = hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()[:16]
    body["metadata"]["annotations"] = {**body["metadata"].get("annotations", {}), APPLIED: digest}
    return body


def _build_service(metadata: Json, component: str, *, name: str, owner: Json) -> Json:
    labels = build_component_labels(metadata["name"], component)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _build_metadata(metadata, name, labels, owner),
        "spec": {
            "selector": labels,
            "ports": [{"name": _PORT_NAMES[component], "port": CLIENT_PORTS[component]}],
        },
    }


def _build_metadata(metadata: Json, name: str, labels: dict[str, str], owner: Json) -> Json:
    return {"name": name, "namespace": metadata["namespace"], "labels": labels, "ownerReferences": [owner]}


def _build_annotations(spec: Json, own: Json) -> dict[str, str]:
    return {**(spec.get("annotations") or {}), **(own.get("annotations") or {})}


def _build_pod_spec(spec: Json, own: Json, component: str) -> Json:
    fields = {name: own.get(name, spec.get(name)) for name in _POD_FIELDS}
    if spec.get("nodeSelector") and own.get("nodeSelector"):
        fields["nodeSelector"] = {**spec["nodeSelector"], **own["nodeSelector"]}
    container: Json = {
        "name": component,
        "image": _choose_image(spec, own, component),
        "ports": [{"name": _PORT_NAMES[component], "containerPort": CLIENT_PORTS[component]}],
        "resources": {kind: _strip_storage(own[kind]) for kind in ("requests", "limits") if own.get(kind)},
    }
    if _needs_disk(own, component):
        container["volumeMounts"] = [{"name": component, "mountPath": f"/var/lib/{component}"}]
    return {"containers": [container], **{name: value for name, value in fields.items() if value}}


def _choose_image(spec: Json, own: Json, component: str) -> str:
    if own.get("image"):
        return str(own["image"])
    base, version = own.get("baseImage") or _IMAGES[component], own.get("version") or spec.get("version")
    return f"{base}:{version}" if version else str(base)


def _strip_storage(amounts: Json) -> Json:
    return {name: str(amount) for name, amount in amounts.items() if name != _STORAGE}


def _needs_disk(own: Json, component: str) -> bool:
    return component != TIDB and bool((own.get("requests") or {}).get(_STORAGE))


def _build_claims(own: Json, component: str, labels: dict[str, str]) -> list[Json]:
    if not _needs_disk(own, component):
        return []
    spec: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {_STORAGE: str(own["requests"][_STORAGE])}},
    }
    if own.get("storageClassName"):
        spec["storageClassName"] = own["storageClassName"]
    return [{"metadata": {"name": component, "labels": labels}, "spec": spec}]
