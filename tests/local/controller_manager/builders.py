"""Worlds for the tests of upkeep: its parts on an API server in memory, and nodes and pods to put into them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.controller_manager.node_lifecycle.controller import NodeLifecycleSettings
from plimsoll.local.controller_manager.pod_gc import PodGcSettings
from plimsoll.local.controller_manager.services import build_node_lifecycle_services, build_pod_gc_services
from plimsoll.local.liveness import ReportedLiveness
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import LocalClusterHarness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
LONG_AGO = "2025-12-01T00:00:00Z"
REPORTED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class NodeLifecycleCluster(LocalClusterHarness):
    """Node lifecycle, taint eviction and pod collection; `liveness` is what a kubelet would report."""

    def __init__(self, settings: NodeLifecycleSettings | None = None, *, collection: Any = None, **more: Any) -> None:
        self._lifecycle = settings or NodeLifecycleSettings()
        self._collection = collection or PodGcSettings()
        super().__init__(self._built, **more)

    def _built(self, components: Components) -> Sequence[Service]:
        self.liveness = ReportedLiveness(clock=self.run.clock)
        return [
            *build_node_lifecycle_services(components, self.liveness, self._lifecycle),
            *build_pod_gc_services(components, self._collection),
        ]

    # ---- what there is

    def node(self, name: str, *, lives: bool = True, labels: dict[str, str] | None = None, **status: str) -> None:
        """A node that has reported; `ready="False"` and the like say what."""
        self.made(NODES, {"metadata": {"name": name, "labels": labels or {}}})
        self.run.settle()
        self.report(name, **status)
        if lives:
            self.liveness.report_alive(name)
        self.run.settle()

    def report(self, name: str, *, at: str = LONG_AGO, **status: str) -> None:
        stated = {type_: "True" if type_ == "Ready" else "False" for type_ in REPORTED} | status
        conditions = [
            {
                "type": type_,
                "status": value,
                "reason": "Kubelet",
                "message": "m",
                "lastHeartbeatTime": at,
                "lastTransitionTime": LONG_AGO,
            }
            for type_, value in stated.items()
        ]
        reply = self.ask("PATCH", f"{NODES}/{name}/status", {"status": {"conditions": conditions}}, content=MERGE)
        assert reply.status == 200, reply
        self.run.settle()

    def pod(self, name: str, node: str, *, tolerations: Sequence[dict[str, Any]] = (), base: str = PODS) -> None:
        """A pod that runs and is ready."""
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "x"}], "tolerations": list(tolerations)}
        self.made(base, {"metadata": {"name": name}, "spec": spec})
        types = ("Ready", "ContainersReady", "PodScheduled", "Initialized")
        conditions = [{"type": type_, "status": "True", "lastTransitionTime": LONG_AGO} for type_ in types]
        status = {"phase": "Running", "conditions": conditions}
        reply = self.ask("PATCH", f"{base}/{name}/status", {"status": status}, content=MERGE)
        assert reply.status == 200, reply
        self.run.settle()

    def silence(self, *names: str) -> None:
        for name in names:
            self.liveness.report_silent(name)
        self.run.settle()

    # ---- how it is

    def taints(self, name: str) -> list[str]:
        found = self.ask("GET", f"{NODES}/{name}").body["spec"].get("taints", [])
        return [f"{item['key'].removeprefix('node.kubernetes.io/')}:{item['effect']}" for item in found]

    def conditions(self, name: str) -> dict[str, str]:
        found = self.ask("GET", f"{NODES}/{name}").body["status"].get("conditions", [])
        return {item["type"]: f"{item['status']} {item['reason']}" for item in found}

    def pods(self) -> dict[str, Any]:
        return {item["metadata"]["name"]: item for item in self.ask("GET", PODS).body["items"]}

    def events(self, name: str, namespace: str = "default") -> list[str]:
        url = f"/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name%3D{name}"
        return [f"{item['reason']}: {item['message']}" for item in self.ask("GET", url).body["items"]]
