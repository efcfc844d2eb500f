"""A management cluster with a simulated Cluster API in virtual time, and data planes that are API servers in memory.

Everything outlives a process but the provider: `build_provider` makes the one of the next process.
"""

from __future__ import annotations

import base64
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.fleet.model.pools import PoolBounds
from plimsoll.fleet.model.provided import AddonKind, AddonOrder, ClusterOrder, SetupOrder, name_cluster
from plimsoll.fleet.model.statuses import ProviderType
from plimsoll.fleet.providers.cluster_api.provider import ClusterApiProvider
from plimsoll.fleet.providers.cluster_api.settings import ClusterApiProviderSettings
from plimsoll.fleet.providers.data_planes.clients import CALL_SETTINGS
from plimsoll.fleet.providers.data_planes.manifests import AddonManifests
from plimsoll.kube.client import Client
from plimsoll.kube.errors import NotFound, NotSent
from plimsoll.kube.transport import Request
from plimsoll.local.apiserver.application import Application
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cluster_api.clusters import ClusterControllers, SimulatedClusterSettings
from plimsoll.local.cluster_api.definitions import CLUSTER_KINDS, KINDS, V1BETA2, build_definition
from plimsoll.objects.api.apiextensions import CustomResourceDefinition
from plimsoll.objects.api.core import Namespace, Secret
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.workloads import Deployment
from plimsoll.runtime.entropy import SeededEntropy
from tests.fleet.fleet_rows import make_cluster
from tests.kube.embedded_api import UNLIMITED
from tests.local.apiserver.builders import ADMIN, new_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.kube.access import Access
    from plimsoll.local.ocm.ports import ClusterSpec, PoolSpec
    from plimsoll.runtime.clocks import VirtualClock

Json = dict[str, Any]
ROW_ID: Final = "abcdefghijklmnopqrst"
NAME: Final = name_cluster(ROW_ID)
NAMESPACE: Final = "plimsoll-us-east-1"
DEFAULT_POOL: Final = PoolBounds(id="default", machine_type="m5.2xlarge", min_replicas=3, max_replicas=18)
POOL: Final = PoolBounds(id="kafka-standard", machine_type="r5.xlarge", min_replicas=3, max_replicas=18)
PARAMETERS: Final = {"cluster-id": "…", "sso-secret": "hush"}


def untouched(port: Any) -> Any:
    return port


def make_order(**changes: Any) -> ClusterOrder:
    fields: Json = {
        "name": NAME,
        "row_id": ROW_ID,
        "cloud_provider": "aws",
        "region": "us-east-1",
        "multi_az": True,
        "default_pool": DEFAULT_POOL,
    }
    return ClusterOrder(**{**fields, **changes})


def make_row(cluster_id: str = "", **changes: Any) -> Cluster:
    fields: Json = {
        "cluster_id": cluster_id,
        "multi_az": True,
        "provider_type": ProviderType.CLUSTER_API,
        "region": "us-east-1",
    }
    return make_cluster(ROW_ID, **{**fields, **changes})


def make_setup(*pools: PoolBounds) -> SetupOrder:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "pull-secret", "namespace": "default"},
        "stringData": {"token": "hush"},
    }
    return SetupOrder(
        pools=pools or (POOL,),
        resources=(secret,),
        addons=(
            AddonOrder(kind=AddonKind.KAFKA_OPERATOR),
            AddonOrder(kind=AddonKind.AGENT, parameters=PARAMETERS),
        ),
    )


def make_deployment(name: str, namespace: str) -> Json:
    labels = {"app": name}
    container = {"name": "c", "image": "plimsoll", "args": ["--cluster=${cluster-name}"]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


ADDONS: Final = AddonManifests(
    by_kind={
        AddonKind.KAFKA_OPERATOR: (make_deployment("plimsoll-kafka", "default"),),
        AddonKind.AGENT: (
            make_deployment("plimsoll-nodes", "kube-system"),
            make_deployment("plimsoll-agent", "kube-system"),
        ),
    }
)


def build_kubeconfig(cluster_id: str, **user: Any) -> str:
    credentials = user or {"token": ADMIN}
    return f"""
apiVersion: v1
kind: Config
current-context: admin
clusters: [{{name: c, cluster: {{server: "https://{cluster_id}.example"}}}}]
users: [{{name: u, user: {credentials!r}}}]
contexts: [{{name: admin, context: {{cluster: c, user: u}}}}]
"""


class MemoryDataPlanes:
    """Behind the port of the simulated Cluster API: an API server per cluster, with nodes as its pools say."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.made: list[str] = []
        self.applications: dict[str, Application] = {}
        self.pools: dict[str, tuple[PoolSpec, ...]] = {}
        self.nodes_are_marked = True
        self.kubeconfig: Callable[[str], str] = build_kubeconfig

    async def make(self, cluster: ClusterSpec) -> None:
        if cluster.id in self.applications:
            return
        self.made.append(cluster.id)
        self.applications[cluster.id] = Application(new_server(self.clock))
        for name in ("default", "kube-system"):
            await self.open(cluster.id).apply(Namespace, name, {"metadata": {"name": name}}, force=True)

    async def set_pools(self, cluster_id: str, pools: tuple[PoolSpec, ...]) -> None:
        if self.pools.get(cluster_id) == pools:
            return
        self.pools[cluster_id] = pools
        for pool in pools:
            taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in pool.taints]
            labels = {
                key: text
                for key, text in pool.labels.items()
                if self.nodes_are_marked or key.startswith("node.cluster.x-k8s.io/")
            }
            spec = {"taints": taints} if self.nodes_are_marked else {}
            for number in range(pool.min_replicas):
                name = f"{pool.id}-{number}"
                body = {"metadata": {"name": name, "labels": labels}, "spec": spec}
                await self.open(cluster_id).apply(Node, name, body, force=True)

    async def install(self, cluster_id: str, addon_id: str, parameters: Any) -> None:
        """Cluster API installs nothing."""

    async def delete(self, cluster_id: str) -> None:
        self.applications.pop(cluster_id, None)
        self.pools.pop(cluster_id, None)

    def build_kubeconfig(self, cluster_id: str) -> str:
        return self.kubeconfig(cluster_id)

    def open(self, cluster_id: str, through: Callable[[Any], Any] = untouched) -> Client:
        transport = through(EmbeddedTransport(self.applications[cluster_id], token=ADMIN))
        return Client(transport, clock=self.clock, entropy=SeededEntropy("data plane"), settings=CALL_SETTINGS)

    async def mark_deployments_available(self) -> None:
        """What the controllers of a cluster do once the pods of an add-on run."""
        for cluster_id in self.applications:
            client = self.open(cluster_id)
            for deployment in (await client.list(Deployment)).items:
                if not deployment.status.conditions:
                    status = {"conditions": [{"type": "Available", "status": "True"}]}
                    name, namespace = deployment.metadata.name, deployment.metadata.namespace
                    await client.merge_patch(
                        Deployment, name, {"status": status}, namespace=namespace, subresource="status"
                    )


class MemoryClients:
    """`DataPlaneClients` to those API servers; a server that does not exist is not found."""

    def __init__(self, data_planes: MemoryDataPlanes, through: Callable[[Any], Any]) -> None:
        self._data_planes, self._through = data_planes, through

    @asynccontextmanager
    async def open(self, access: Access) -> AsyncIterator[Client]:
        cluster_id = access.server.removeprefix("https://").removesuffix(".example")
        if cluster_id not in self._data_planes.applications:
            raise NotSent(f"there is no route to {access.server}")
        yield self._data_planes.open(cluster_id, self._through)


class CapiWorld:
    """What outlives a process. `version` is of the API that the management cluster serves."""

    def __init__(self, clock: VirtualClock, *, version: str = V1BETA2) -> None:
        self.clock, self.version = clock, version
        self.application = Application(new_server(clock))
        self.client = self.open_management()
        self.data_planes = MemoryDataPlanes(clock)
        settings = SimulatedClusterSettings(version=version, infrastructure_s=60, provision_s=120, delete_s=60)
        self.controllers = ClusterControllers(self.client, self.data_planes, settings, clock=clock)
        self.uids: set[str] = set()
        self.row = make_row()
        self.is_made = False

    @classmethod
    async def build(cls, clock: VirtualClock, *, version: str = V1BETA2) -> CapiWorld:
        """With the definitions of Cluster API and a ClusterClass."""
        world = cls(clock, version=version)
        await world.client.create(Namespace, {"metadata": {"name": "classes"}})
        for kind in (*KINDS, *CLUSTER_KINDS):
            await world.client.create(CustomResourceDefinition, build_definition(kind, version=version))
        await clock.sleep(0.1)
        cluster_class = {"apiVersion": f"cluster.x-k8s.io/{version}", "kind": "ClusterClass"}
        await world.post("clusterclasses", {**cluster_class, "metadata": {"name": "data-plane"}}, namespace="classes")
        return world

    def open_management(self, through: Callable[[Any], Any] = untouched) -> Client:
        transport = through(EmbeddedTransport(self.application, token=ADMIN))
        settings = UNLIMITED if through is untouched else CALL_SETTINGS
        return Client(transport, clock=self.clock, entropy=SeededEntropy("management"), settings=settings)

    def build_provider(self, through: Callable[[Any], Any] = untouched, **settings: Any) -> ClusterApiProvider:
        fields: Json = {"cluster_class": "classes/data-plane", "kubernetes_version": "v1.34.0", "addons": ADDONS}
        return ClusterApiProvider(
            self.open_management(through),
            MemoryClients(self.data_planes, through),
            ClusterApiProviderSettings(**{**fields, **settings}),
            clock=self.clock,
        )

    async def advance(self, seconds: float) -> None:
        """Time passes, and everything but the fleet manager works."""
        steps = max(1, round(seconds / 30))
        for _ in range(steps):
            await self.controllers.step()
            self.uids |= {item["metadata"]["uid"] for item in await self.list_clusters()}
            await self.data_planes.mark_deployments_available()
            await self.clock.sleep(seconds / steps)
        await self.controllers.step()

    # ---- objects of the management cluster

    def get_path(self, plural: str = "clusters", name: str = "", namespace: str = NAMESPACE) -> str:
        path = f"/apis/cluster.x-k8s.io/{self.version}/namespaces/{namespace}/{plural}"
        return f"{path}/{name}" if name else path

    async def post(self, plural: str, body: Json, *, namespace: str = NAMESPACE) -> None:
        path = self.get_path(plural, namespace=namespace)
        headers = {"Content-Type": "application/json"}
        await self.client.call(Request(method="POST", path=path, body=msgspec.json.encode(body), headers=headers))

    async def patch(self, path: str, changes: Json) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        await self.client.call(Request(method="PATCH", path=path, body=msgspec.json.encode(changes), headers=headers))

    async def delete(self, path: str) -> None:
        await self.client.call(Request(method="DELETE", path=path))

    async def advance_clock(self, seconds: float) -> None:
        """Time passes, and no controller of Cluster API works."""
        await self.clock.sleep(seconds)

    async def list_clusters(self) -> list[Json]:
        return list((await self.client.get_json(f"/apis/cluster.x-k8s.io/{self.version}/clusters"))["items"])

    async def get_cluster(self) -> Json:
        return dict(await self.client.get_json(self.get_path(name=NAME)))

    async def list_deployments(self) -> Json:
        listed = await self.client.get_json(self.get_path("machinedeployments"))
        return {item["metadata"]["name"]: item for item in listed["items"]}

    async def set_kubeconfig(self, text: str, *, name: str = NAME) -> None:
        data = {"value": base64.b64encode(text.encode()).decode()}
        await self.client.merge_patch(Secret, f"{name}-kubeconfig", {"data": data}, namespace=NAMESPACE)

    async def has_kubeconfig(self) -> bool:
        try:
            await self.client.get(Secret, f"{NAME}-kubeconfig", namespace=NAMESPACE)
        except NotFound:
            return False
        return True
