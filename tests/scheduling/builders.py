"""Builders of small clusters for the tests of the scheduling rules: nodes, pods and storage with sensible defaults."""

from __future__ import annotations

from typing import Any

import msgspec

from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def node(
    name: str = "n1",
    *,
    zone: str = "z1",
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    unschedulable: bool = False,
    **allocatable: Any,
) -> Node:
    """A node of 4 cpu, 8Gi and 110 pods; `labels` come on top of hostname and zone, underscores stand for dashes."""
    offered = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    offered |= {key.replace("_", "-"): value for key, value in allocatable.items()}
    known = {HOSTNAME: name, **({ZONE: zone} if zone else {}), **(labels or {})}
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": known},
            "spec": {"unschedulable": unschedulable, "taints": taints or []},
            "status": {"allocatable": offered},
        },
        Node,
    )


def pod(
    name: str = "p",
    *,
    on: str = "",
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    requests: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """A pod of one container; everything else of the spec as it stands in a manifest."""
    container = {"name": "c", "resources": {"requests": requests or {}}}
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels or {}},
            "spec": {"nodeName": on, "containers": [container], **spec},
        },
        Pod,
    )


def required(term: dict[str, Any] | list[dict[str, Any]], kind: str = "podAntiAffinity") -> dict[str, Any]:
    """`affinity` of a pod spec, with required terms between pods."""
    terms = term if isinstance(term, list) else [term]
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def term(match: dict[str, str] | None = None, key: str = HOSTNAME, **more: Any) -> dict[str, Any]:
    """A term between pods over `key`; `match` None leaves the selector out."""
    selector = {} if match is None else {"labelSelector": {"matchLabels": match}}
    return {"topologyKey": key, **selector, **more}


def spread(match: dict[str, str] | None = None, key: str = ZONE, max_skew: int = 1, **more: Any) -> dict[str, Any]:
    selector = {} if match is None else {"labelSelector": {"matchLabels": match}}
    constraint = {"maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **selector, **more}
    return {"topologySpreadConstraints": [constraint]}


def node_affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    chosen = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": chosen}}


def uses(*claims: str) -> dict[str, Any]:
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]}


def claim(
    name: str = "data",
    *,
    namespace: str = "default",
    volume: str = "",
    storage_class: str = "fast",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    storage: str = "1Gi",
    **metadata: Any,
) -> PersistentVolumeClaim:
    """Bound when it names a volume, pending otherwise."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace, **metadata},
            "spec": {
                "volumeName": volume,
                "storageClassName": storage_class,
                "accessModes": list(modes),
                "resources": {"requests": {"storage": storage}},
            },
            "status": {"phase": "Bound" if volume else "Pending"},
        },
        PersistentVolumeClaim,
    )


def volume(
    name: str = "pv",
    *,
    zone: str = "",
    labels: dict[str, str] | None = None,
    storage_class: str = "fast",
    storage: str = "1Gi",
    **spec: Any,
) -> PersistentVolume:
    """`zone` gives it a node affinity."""
    wanted = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [wanted]}}} if zone else {}
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {
                "capacity": {"storage": storage},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": storage_class,
                **affinity,
                **spec,
            },
            "status": {"phase": "Available"},
        },
        PersistentVolume,
    )


def storage_class(
    name: str = "fast",
    *,
    provisioner: str = "csi.example.com",
    mode: str = "WaitForFirstConsumer",
    zones: tuple[str, ...] = (),
) -> StorageClass:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}] if zones else []
    return msgspec.convert(
        {
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": mode,
            "allowedTopologies": allowed,
        },
        StorageClass,
    )


def csi_node(name: str = "n1", *, driver: str = "csi.example.com", count: int | None = None) -> CSINode:
    limit = {} if count is None else {"allocatable": {"count": count}}
    drivers = [{"name": driver, "nodeID": name, **limit}]
    return msgspec.convert({"metadata": {"name": name}, "spec": {"drivers": drivers}}, CSINode)
