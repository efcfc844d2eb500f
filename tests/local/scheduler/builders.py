"""A cluster with nothing but a scheduler in it, in virtual time, and builders of what it works with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from plimsoll.local.components import SCHEDULER
from plimsoll.local.scheduler import Scheduler, SchedulerSettings
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import LocalClusterHarness

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service

PODS = "/api/v1/namespaces/here/pods"
CLAIMS = "/api/v1/namespaces/here/persistentvolumeclaims"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


class SchedulerCluster(LocalClusterHarness):
    """`stepped`: the scheduler does not run by itself but when `schedule_once` is called."""

    def __init__(
        self,
        *,
        stepped: bool = False,
        settings: SchedulerSettings | None = None,
        through: Callable[[Any], Any] = lambda port: port,
    ) -> None:
        super().__init__(self._scheduler, through=through)
        self._stepped = stepped
        self._settings = settings or SchedulerSettings()

    def _scheduler(self, components: Components) -> list[Service]:
        self.scheduler = Scheduler(components.build_component("default-scheduler", manager=SCHEDULER), self._settings)
        return [] if self._stepped else [self.scheduler.build_service()]

    def __enter__(self) -> Self:
        super().__enter__()
        self.namespace("here")
        return self

    # ---- doing

    def node(self, name: str, **more: Any) -> Any:
        made = self.made("/api/v1/nodes", node(name, **more))
        self.untaint(name, more.get("taints", []))
        return made

    def untaint(self, name: str, taints: list[dict[str, str]] | None = None) -> None:
        """The server taints every new node as not ready, as admission does; no kubelet and no controller is here."""
        reply = self.ask("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": taints or None}}, content=MERGE)
        assert reply.status == 200, reply

    def pod(self, name: str, **more: Any) -> Any:
        made = self.made(PODS, pod(name, **more))
        self.run.settle()
        return made

    def change(self, url: str, patch: dict[str, Any]) -> Any:
        reply = self.ask("PATCH", url, patch, content=MERGE)
        assert reply.status == 200, reply
        self.run.settle()
        return reply.body

    def delete(self, name: str) -> None:
        self.ask("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        self.run.settle()

    def priority(self, name: str, value: int, **more: Any) -> None:
        self.made("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value, **more})

    # ---- seeing

    def get(self, name: str) -> Any:
        return self.ask("GET", f"{PODS}/{name}").body

    def node_of(self, name: str) -> str:
        return str(self.get(name)["spec"].get("nodeName", ""))

    def placements(self) -> dict[str, str]:
        items = self.ask("GET", PODS).body["items"]
        return {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in items}

    def condition(self, name: str, type_: str = "PodScheduled") -> dict[str, Any]:
        conditions = self.get(name)["status"].get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == type_), {})

    def events(self, name: str) -> list[dict[str, Any]]:
        url = f"/api/v1/namespaces/here/events?fieldSelector=involvedObject.name%3D{name}"
        return list(self.ask("GET", url).body["items"])

    def reasons(self, name: str) -> list[str]:
        return [event["reason"] for event in self.events(name)]


def node(name: str, *, zone: str = "z1", labels: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A node of 4 cpu, 8Gi and 110 pods."""
    offered = {"cpu": "4", "memory": "8Gi", "pods": "110", **more.get("allocatable", {})}
    spec = {"unschedulable": True} if more.get("unschedulable") else {}
    known = {HOSTNAME: name, ZONE: zone, **(labels or {})}
    return {
        "metadata": {"name": name, "labels": known},
        "spec": spec,
        "status": {"allocatable": offered, "capacity": offered},
    }


def pod(name: str, *, cpu: str = "", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod of one container that ends at once when the test says so."""
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}} if cpu else {}}
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"metadata": metadata, "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **spec}}
