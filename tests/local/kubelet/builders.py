"""A virtual kubelet on an API server in virtual time, and builders of what it plays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.components import KUBELET, Components
from plimsoll.local.kubelet import Kubelet, KubeletSettings
from plimsoll.local.liveness import ReportedLiveness
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import LocalClusterHarness

if TYPE_CHECKING:
    from plimsoll.runtime.supervisor import Service

PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SIZE = {"cpu": "4", "memory": "16Gi", "pods": "110"}


class KubeletCluster(LocalClusterHarness):
    """`liveness`: heartbeats are reported to `self.liveness`; otherwise they are written. `writes`: both."""

    def __init__(
        self, *, reported: bool = False, writes: bool = False, through: Any = lambda port: port, **settings: Any
    ) -> None:
        self._reported = reported
        self._writes = writes
        self._settings = KubeletSettings(**{"emits_events": False, **settings})
        super().__init__(self._kubelet, through=through)
        self.liveness: ReportedLiveness

    def _kubelet(self, parts: Components) -> list[Service]:
        self.liveness = ReportedLiveness(clock=self.run.clock)
        component = parts.build_component("kubelet", manager=KUBELET)
        reported = self.liveness if self._reported or self._writes else None
        self.kubelet = Kubelet(
            component, settings=self._settings, liveness=reported, writes=self._writes or not self._reported
        )
        return self.kubelet.list_services()

    # ---- the world's things

    def account(self) -> None:
        self.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})

    def node(self, name: str = "n1", **more: Any) -> Any:
        self.made("/api/v1/nodes", a_node(name, **more))
        self.run.settle()
        return self.get_node(name)

    def pod(self, name: str = "p", **more: Any) -> Any:
        self.account()
        self.made(PODS, a_pod(name, **more))
        self.run.settle()
        return self.get_pod(name)

    def get_node(self, name: str = "n1") -> Any:
        return self.ask("GET", f"/api/v1/nodes/{name}").body

    def get_pod(self, name: str = "p") -> Any:
        reply = self.ask("GET", f"{PODS}/{name}")
        return reply.body if reply.status == 200 else None

    def lease(self, name: str = "n1") -> Any:
        reply = self.ask("GET", f"{LEASES}/{name}")
        return reply.body if reply.status == 200 else None

    def annotate_node(self, name: str = "n1", **annotations: str | None) -> None:
        given = {f"plimsoll.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        reply = self.ask("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"annotations": given}}, content=MERGE)
        assert reply.status == 200, reply
        self.run.settle()

    def delete_pod(self, name: str = "p", **options: Any) -> None:
        reply = self.ask("DELETE", f"{PODS}/{name}", options or None)
        assert reply.status == 200, reply
        self.run.settle()


def a_node(name: str = "n1", *, labels: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    annotations = {f"plimsoll.io/{key.replace('_', '-')}": str(value) for key, value in more.items()}
    shown = {"plimsoll.io/virtual": "true", "kubernetes.io/arch": "arm64"} if labels is None else labels
    return {
        "metadata": {"name": name, "labels": shown, "annotations": annotations},
        "status": {"capacity": SIZE, "allocatable": SIZE},
    }


def a_pod(
    name: str = "p", *, node: str = "n1", pace: dict[str, Any] | None = None, finalizers: Any = (), **spec: Any
) -> dict[str, Any]:
    annotations = {f"plimsoll.io/{key}": str(value) for key, value in (pace or {}).items()}
    metadata = {"name": name, "annotations": annotations, "finalizers": list(finalizers)}
    containers = [{"name": "c", "image": "nginx:1.27"}]
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": containers, **spec}}


def conditions(thing: Any) -> dict[str, tuple[str, str]]:
    return {
        condition["type"]: (condition["status"], condition.get("reason", ""))
        for condition in thing["status"].get("conditions", ())
    }
