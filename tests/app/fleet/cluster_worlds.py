"""A simulated OCM whose clusters run in this process, in virtual time."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from plimsoll.app.fleet.cluster_stores import MemoryStores
from plimsoll.app.fleet.embedded_clusters import EmbeddedClusters, RunningCluster
from plimsoll.local.apiserver.transport.in_process import InProcessTransport
from plimsoll.local.ocm.documents import BASE
from plimsoll.local.ocm.service import SimulatedOcm
from plimsoll.local.ocm.settings import NO_DELAYS, OcmSettings
from plimsoll.nodes.plan_runner import run_inline
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.virtual_run import VirtualRun
from plimsoll.web.asgi_client import AsgiClient
from plimsoll.web.client import Request, Response
from tests.local.ocm.ocm_world import STANDARD, build_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plimsoll.app.fleet.addons import Addon
    from plimsoll.local.ocm.ports import DataPlane

GROUPS: Final = "/apis/cloud.plimsoll.io/v1alpha1/nodegroups"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"


class ClusterWorld:
    """Clusters are made by calls to OCM, without delays of OCM."""

    def __init__(self, *, addons: Mapping[str, Addon] | None = None, settings: OcmSettings | None = None) -> None:
        self.run = VirtualRun()
        self.clock = clock = self.run.clock
        self.stores = MemoryStores(clock=clock, entropy=SeededEntropy("stores"))
        self.clusters = EmbeddedClusters(
            self.stores, clock=clock, entropy=SeededEntropy("clusters"), addons=addons, run_planner=run_inline
        )
        self.ocm = self._build_ocm(self.clusters, settings or OcmSettings(delays=NO_DELAYS))
        self._client = AsgiClient(self.ocm.application)
        self._running = self.run.spawn(self.clusters.run(), name="clusters")
        self.run.spawn(self.ocm.run(), name="simulated OCM")
        self.run.settle()

    def _build_ocm(self, data_plane: DataPlane, settings: OcmSettings) -> SimulatedOcm:
        return SimulatedOcm(
            clock=self.clock, entropy=SeededEntropy("simulated OCM"), data_plane=data_plane, settings=settings
        )

    def close(self) -> None:
        self.run.close()

    def restart_clusters(self) -> None:
        """The service that runs them ends, and another one begins."""
        self._running.cancel()
        self.run.settle()
        assert self._running.done()
        self._running = self.run.spawn(self.clusters.run(), name="clusters")
        self.run.settle()

    # ---- OCM

    def call(self, method: Any, path: str, body: Any = None) -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        request = Request(method=method, url=f"http://ocm.test{BASE}{path}", body=content)
        answer = self.run.run_until(self._client.send(request))
        assert isinstance(answer, Response), answer
        return answer.status, json.loads(answer.body) if answer.body else None

    def order(self, name: str = "mk-1", **changes: Any) -> str:
        """A cluster, and time until it is there."""
        status, document = self.call("POST", "/clusters", build_cluster(name, **changes))
        assert status == 201, document
        self.run.advance_by(60)
        return str(document["id"])

    def order_with_pool(self, name: str = "mk-1", *, least: int = 3, most: int = 6) -> str:
        """With `kafka-standard`."""
        cluster_id = self.order(name)
        pool = STANDARD | {"autoscaling": {"min_replicas": least, "max_replicas": most}}
        status, document = self.call("POST", f"/clusters/{cluster_id}/machine_pools", pool)
        assert status == 201, document
        self.run.advance_by(60)
        return cluster_id

    def get_state(self, cluster_id: str) -> tuple[str, str]:
        """The state and its explanation; `gone` if there is no such cluster."""
        status, document = self.call("GET", f"/clusters/{cluster_id}")
        if status == 404:
            return "gone", ""
        return document["state"], document["status"].get("provision_error_message", "")

    # ---- clusters

    def get(self, cluster_id: str) -> RunningCluster:
        found = self.clusters.find(cluster_id)
        assert found is not None, f"{cluster_id} does not run"
        return found

    def ask(self, cluster_id: str, method: str, path: str, body: Any = None) -> Any:
        """The document that an administrator of the cluster gets."""
        return self.run.run_until(self._ask(cluster_id, method, path, body))

    async def _ask(self, cluster_id: str, method: str, path: str, body: Any) -> Any:
        server = self.get(cluster_id).server
        content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"authorization": f"Bearer {server.token}", "content-type": content_type}
        content = b"" if body is None else json.dumps(body).encode()
        answer = await InProcessTransport(server.application).request(method, path, headers=headers, body=content)
        assert isinstance(answer.body, bytes)
        assert answer.status < 400, answer.body
        return json.loads(answer.body)

    def list_items(self, cluster_id: str, path: str) -> list[Any]:
        return sorted(self.ask(cluster_id, "GET", path)["items"], key=lambda item: str(item["metadata"]["name"]))

    def list_groups(self, cluster_id: str) -> dict[str, tuple[int, int, int]]:
        """Minimum, target and maximum by name."""
        specs = {group["metadata"]["name"]: group["spec"] for group in self.list_items(cluster_id, GROUPS)}
        return {name: (spec["min"], spec["target"], spec["max"]) for name, spec in specs.items()}

    def list_ready_nodes(self, cluster_id: str) -> list[Any]:
        return [
            node
            for node in self.list_items(cluster_id, "/api/v1/nodes")
            if any(found["type"] == "Ready" and found["status"] == "True" for found in node["status"]["conditions"])
        ]

    def count_running(self, cluster_id: str) -> int:
        pods = self.list_items(cluster_id, "/api/v1/namespaces/default/pods")
        return sum(pod["status"].get("phase") == "Running" for pod in pods)


@contextmanager
def open_clusters(
    *, addons: Mapping[str, Addon] | None = None, settings: OcmSettings | None = None
) -> Iterator[ClusterWorld]:
    world = ClusterWorld(addons=addons, settings=settings)
    try:
        yield world
    finally:
        world.close()


def build_deployment(replicas: int, *, cpu: str = "3", in_pool: bool = True) -> dict[str, Any]:
    """Pods of which one fits on an r5.xlarge, on the nodes of `kafka-standard` or anywhere."""
    label = STANDARD["labels"]
    pool: dict[str, Any] = {"nodeSelector": label, "tolerations": [{"operator": "Exists"}]} if in_pool else {}
    container = {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], **pool}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
