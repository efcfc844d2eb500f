"""A cluster with the volume controllers and no others: tests play the scheduler, the kubelet and people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from plimsoll.local.volumes.provisioning import SIMULATED, ZONE
from plimsoll.local.volumes.services import build_volume_services
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import LocalClusterHarness

if TYPE_CHECKING:
    from collections.abc import Callable

NAMESPACE = "here"
CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
NODES = "/api/v1/nodes"


class VolumeCluster(LocalClusterHarness):
    """With the namespace `here`."""

    def __init__(self, *, through: Callable[[Any], Any] = lambda port: port) -> None:
        super().__init__(build_volume_services, through=through)

    def __enter__(self) -> Self:
        super().__enter__()
        self.namespace(NAMESPACE)
        return self

    # ---- asking

    def claim(self, name: str = "c") -> Any:
        return self.ask("GET", f"{CLAIMS}/{name}").body

    def volume(self, name: str = "v") -> Any:
        return self.ask("GET", f"{VOLUMES}/{name}").body

    def phases(self, url: str) -> dict[str, str]:
        items = self.ask("GET", url).body["items"]
        return {item["metadata"]["name"]: item["status"]["phase"] for item in items}

    def reported(self) -> list[tuple[str, str]]:
        self.run.settle()
        return [(item["reason"], item["message"]) for item in self.ask("GET", EVENTS).body["items"]]

    # ---- doing

    def make(self, url: str, body: Any) -> Any:
        made = self.made(url, body)
        self.run.settle()
        return made

    def patch(self, url: str, body: Any) -> Any:
        reply = self.ask("PATCH", url, body, content=MERGE)
        assert reply.status == 200, reply
        self.run.settle()
        return reply.body

    def delete(self, url: str) -> None:
        reply = self.ask("DELETE", url, {"gracePeriodSeconds": 0} if "/pods/" in url else None)
        assert reply.status in {200, 202}, reply
        self.run.settle()

    def select_node(self, name: str, node: str) -> None:
        """What the scheduler writes on a claim that is to be provisioned."""
        self.patch(f"{CLAIMS}/{name}", {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": node}}})


# ---- builders


def claim(name: str = "c", *, size: str = "1Gi", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": whole,
    }


def volume(name: str = "v", *, size: str = "1Gi", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    whole = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "hostPath": {"path": "/x"}, **spec}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": whole,
    }


def storage_class(name: str = "fast", *, waits: bool = False, is_default: bool = False, **more: Any) -> dict[str, Any]:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    marks = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": marks},
        "provisioner": SIMULATED,
        "volumeBindingMode": mode,
        **more,
    }


def node(name: str, zone: str = "") -> dict[str, Any]:
    labels = {ZONE: zone} if zone else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def pod_with(claim_name: str, name: str = "p", *, on: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "image": "nginx:1.27"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}],
    }
    if on:
        spec["nodeName"] = on
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
