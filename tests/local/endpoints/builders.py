"""A cluster with the endpoint controllers and no others: tests play the scheduler and the kubelet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from plimsoll.local.endpoints.services import build_endpoint_services
from plimsoll.objects.api.meta import format_time
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import LocalClusterHarness

if TYPE_CHECKING:
    from collections.abc import Callable

NAMESPACE = "here"
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
ENDPOINTS = f"/api/v1/namespaces/{NAMESPACE}/endpoints"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
NODES = "/api/v1/nodes"
ZONE = "topology.kubernetes.io/zone"


class EndpointCluster(LocalClusterHarness):
    """With the namespace `here`, and the nodes n1 and n2 in zones z1 and z2."""

    def __init__(self, *, through: Callable[[Any], Any] = lambda port: port) -> None:
        super().__init__(build_endpoint_services, through=through)

    def __enter__(self) -> Self:
        super().__enter__()
        self.namespace(NAMESPACE)
        for number in (1, 2):
            labels = {ZONE: f"z{number}"}
            self.made(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}", "labels": labels}})
        return self

    # ---- asking

    @property
    def slices(self) -> list[Any]:
        return list(self.ask("GET", SLICES).body["items"])

    @property
    def endpoints(self) -> list[Any]:
        """Of all slices."""
        return [endpoint for slice_ in self.slices for endpoint in slice_.get("endpoints") or []]

    @property
    def pods_in_slices(self) -> list[str]:
        return sorted(endpoint["targetRef"]["name"] for endpoint in self.endpoints)

    def subsets(self, name: str = "svc") -> Any:
        return self.ask("GET", f"{ENDPOINTS}/{name}").body.get("subsets")

    # ---- doing

    def make(self, url: str, body: Any) -> Any:
        made = self.made(url, body)
        self.pass_on()
        return made

    def patch(self, url: str, body: Any) -> None:
        reply = self.ask("PATCH", url, body, content=MERGE)
        assert reply.status == 200, reply
        self.pass_on()

    def delete(self, url: str) -> None:
        reply = self.ask("DELETE", url, {"gracePeriodSeconds": 0} if "/pods/" in url else None)
        assert reply.status in {200, 202}, reply
        self.pass_on()

    def pod(self, name: str, address: str, *, node: str = "n1", ready: bool = True, **more: Any) -> None:
        """A pod that runs."""
        self.made(PODS, pod(name, node=node, **more))
        self.says(name, address, ready=ready)

    def says(self, name: str, address: str, *, ready: bool = True, phase: str = "Running") -> None:
        now = format_time(self.run.clock.now())
        condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": now}
        status = {"phase": phase, "podIP": address, "podIPs": [{"ip": address}], "conditions": [condition]}
        self.patch(f"{PODS}/{name}/status", {"status": status})

    def pass_on(self) -> None:
        self.run.advance_by(1)


# ---- builders


def service(name: str = "svc", **spec: Any) -> dict[str, Any]:
    whole = {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": whole}


def pod(name: str, *, node: str = "n1", app: str = "web", ports: Any = (), **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "nginx:1.27", "ports": list(ports)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"containers": [container], "nodeName": node, **spec},
    }
