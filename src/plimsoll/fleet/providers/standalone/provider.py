"""`StandaloneProvider`: clusters by contexts of a kubeconfig, from the manual file or from a registration.

It makes and deletes nothing: a cluster counts as ready from the start and as gone as soon as its deletion is asked for.
Machine pools are the owner's; the most nodes of a registration or a change are kept as they were given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.model.pools import PoolBounds
from plimsoll.fleet.model.provided import (
    Absent,
    CallFailed,
    ClusterSetup,
    DeletionState,
    FailureKind,
    ProvidedCluster,
    ProviderState,
    build_failure,
)
from plimsoll.fleet.model.statuses import ProviderType
from plimsoll.fleet.providers.data_planes.failures import attempt, limit_failures_to_cluster
from plimsoll.fleet.providers.data_planes.setup import DataPlaneSetup

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.provided import AddonOrder, ClusterOrder, SetupOrder
    from plimsoll.fleet.providers.data_planes.clients import DataPlaneClients
    from plimsoll.fleet.providers.data_planes.manifests import AddonManifests
    from plimsoll.kube.access import Access

T = TypeVar("T")


class Contexts(Protocol):
    """The kubeconfig of the service."""

    def find(self, context: str) -> Access:
        """Raises `InvalidInput` for a context that is missing or cannot be used."""
        ...


class StandaloneProvider:
    """`contexts` is read for each call: a kubeconfig may be replaced under a running process."""

    type = ProviderType.STANDALONE

    def __init__(self, contexts: Contexts, clients: DataPlaneClients, addons: AddonManifests) -> None:
        self._contexts = contexts
        self._clients = clients
        self._addons = addons

    async def find_cluster(self, name: str, *, region: str) -> ProvidedCluster | Absent | CallFailed:
        """None is made here, so none is found by a name of ours."""
        del name, region
        return Absent()

    async def read_cluster(self, cluster: Cluster) -> ProvidedCluster | Absent | CallFailed:
        """Ready, whether it answers or not: an outage of a cluster is no reason to give it up."""
        return ProvidedCluster(
            cluster_id=cluster.cluster_id,
            name=_find_context(cluster),
            state=ProviderState.READY,
            cloud_provider=cluster.cloud_provider,
            region=cluster.region,
        )

    async def read_setup(self, cluster: Cluster, order: SetupOrder) -> ClusterSetup | CallFailed:
        async def read(data_plane: DataPlaneSetup) -> ClusterSetup:
            states = [await data_plane.read_addon(addon) for addon in order.addons]
            return ClusterSetup(
                pools=_hold_pools(cluster, order.pools),
                dns=cluster.cluster_dns,
                has_resources=await data_plane.has_resources(order.resources),
                addons=tuple(state for state in states if state is not None),
            )

        return await self._attempt(cluster, read)

    async def list_clusters(self) -> tuple[ProvidedCluster, ...] | CallFailed:
        return ()

    async def create_cluster(self, order: ClusterOrder) -> ProvidedCluster | CallFailed:
        return build_failure(
            FailureKind.REFUSED, f"a standalone cluster ({order.name}) cannot be made: register one that exists"
        )

    async def ensure_pools(
        self, cluster: Cluster, pools: tuple[PoolBounds, ...]
    ) -> tuple[PoolBounds, ...] | CallFailed:
        return _hold_pools(cluster, pools)

    async def ensure_resources(self, cluster: Cluster, order: SetupOrder) -> CallFailed | None:
        return await self._attempt(cluster, lambda data_plane: data_plane.apply_resources(order.resources))

    async def ensure_addons(self, cluster: Cluster, addons: tuple[AddonOrder, ...]) -> CallFailed | None:
        async def install_all(data_plane: DataPlaneSetup) -> None:
            for addon in addons:
                await data_plane.install(addon)

        return await self._attempt(cluster, install_all)

    async def delete_cluster(self, cluster: Cluster) -> DeletionState | CallFailed:
        """The row goes; the cluster and what runs in it are the owner's."""
        del cluster
        return DeletionState.GONE

    async def _attempt(self, cluster: Cluster, work: Callable[[DataPlaneSetup], Awaitable[T]]) -> T | CallFailed:
        async def call() -> T:
            context = _find_context(cluster)
            if not context:
                raise InvalidInput("it has no context: register it with the name of one")
            places = {"cluster-name": context, "cluster-namespace": "", "cluster-id": cluster.cluster_id}
            with limit_failures_to_cluster():
                async with self._clients.open(self._contexts.find(context)) as client:
                    return await work(DataPlaneSetup(client, self._addons, places))

        return await attempt(call(), about=f"standalone cluster {_find_context(cluster) or cluster.cluster_id}")


def _find_context(cluster: Cluster) -> str:
    context = cluster.provider_spec.get("name", "")
    return context if isinstance(context, str) else ""


def _hold_pools(cluster: Cluster, pools: tuple[PoolBounds, ...]) -> tuple[PoolBounds, ...]:
    """Without autoscaling of ours a pool has as many nodes as the row says, and none if it says nothing."""
    known = cluster.dynamic_capacity_info
    nodes = {pool.id: known[pool.instance_type].max_nodes if pool.instance_type in known else 0 for pool in pools}
    return tuple(
        PoolBounds(id=pool.id, machine_type="", min_replicas=nodes[pool.id], max_replicas=nodes[pool.id])
        for pool in pools
    )
