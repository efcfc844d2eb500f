"""Objects of Cluster API for tests: bodies with defaults."""

from __future__ import annotations

from typing import Any

GROUP = "cluster.x-k8s.io"
HERE = "here"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
MIN = f"{GROUP}/cluster-api-autoscaler-node-group-min-size"
MAX = f"{GROUP}/cluster-api-autoscaler-node-group-max-size"
MARK = f"{GROUP}/delete-machine"
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"
LARGE_ENOUGH = {f"{CAPACITY}cpu": "4", f"{CAPACITY}memory": "16Gi"}


def collection(kind: str, *, group: str = GROUP, version: str = "v1beta1", namespace: str = HERE) -> str:
    return f"/apis/{group}/{version}/namespaces/{namespace}/{kind.lower()}s"


def owner(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": kind, "name": name, "uid": f"uid-of-{name}", "controller": True}


def bounds(least: int | str | None = 0, most: int | str | None = 10) -> dict[str, str]:
    given = {MIN: least, MAX: most}
    return {name: str(value) for name, value in given.items() if value is not None}


def scalable(kind: str = "MachineDeployment", name: str = "md", **spec: Any) -> dict[str, Any]:
    """`annotations`, `labels`, `owners` and `namespace` go into its metadata; without annotations it has bounds."""
    meta = {
        "name": name,
        "namespace": spec.pop("namespace", HERE),
        "annotations": spec.pop("annotations", bounds()),
        "labels": spec.pop("labels", {}),
        "ownerReferences": [owner(*reference) for reference in spec.pop("owners", ())],
    }
    template = spec.pop("template", {})
    whole = {"replicas": 0, "clusterName": "c", "selector": {}, "template": template, **spec}
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": kind, "metadata": meta, "spec": whole}


def machine(name: str, owned_by: tuple[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    status = spec.pop("status", {})
    meta = {
        "name": name,
        "namespace": HERE,
        "annotations": spec.pop("annotations", {}),
        "ownerReferences": [owner(*owned_by)] if owned_by else [],
        "finalizers": spec.pop("finalizers", []),
    }
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "Machine",
        "metadata": meta,
        "spec": {"clusterName": "c", **spec},
        "status": status,
    }
