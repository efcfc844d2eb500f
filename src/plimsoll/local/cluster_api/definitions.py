"""Small definitions of the kinds of Cluster API: their names, versions and subresources, with wide schemas."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.objects.api.cluster_api import CLUSTER_API_GROUP

SCALED_KINDS: Final = ("MachineDeployment", "MachineSet", "MachinePool")
KINDS: Final = (*SCALED_KINDS, "Machine")
"""What the node autoscaler uses."""
CLUSTER_KINDS: Final = ("Cluster", "ClusterClass")
V1BETA1: Final = "v1beta1"
V1BETA2: Final = "v1beta2"
_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def build_definition(kind: str, *, group: str = CLUSTER_API_GROUP, version: str = V1BETA1) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind in one version."""
    plural = "clusterclasses" if kind == "ClusterClass" else f"{kind.lower()}s"
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    with_scale = {"scale": scale} if kind in SCALED_KINDS else {}
    spec = {**_ANYTHING, "properties": _build_spec_properties(kind)}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}, **with_scale},
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": _ANYTHING}}
                    },
                }
            ],
        },
    }


def _build_spec_properties(kind: str) -> dict[str, Any]:
    """Where a schema matters: numbers of replicas, and the list whose items server-side apply merges by name."""
    if kind != "Cluster":
        return {"replicas": {"type": "integer"}}
    deployments = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {**_ANYTHING, "required": ["name"], "properties": {"name": {"type": "string"}}},
    }
    workers = {**_ANYTHING, "properties": {"machineDeployments": deployments}}
    return {"topology": {**_ANYTHING, "properties": {"workers": workers}}}
