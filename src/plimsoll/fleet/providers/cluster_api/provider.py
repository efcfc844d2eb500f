"""`ClusterApiProvider`: clusters by `Cluster` objects in a management cluster (docs/design/fleet.md 13.1).

The Cluster of a row is found by its name, in the namespace of its region; its uid is the provider's id of it. So a
Cluster that was deleted and made again under the same name is noticed, and never taken for the one of the row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.model.provided import (
    Absent,
    CallFailed,
    ClusterSetup,
    DeletionState,
    FailureKind,
    ProviderState,
    build_failure,
    name_cluster,
)
from plimsoll.fleet.model.statuses import ProviderType
from plimsoll.fleet.providers.cluster_api.management import ManagementCluster
from plimsoll.fleet.providers.cluster_api.settings import VERSION, name_namespace, parse_class
from plimsoll.fleet.providers.cluster_api.states import read_provided
from plimsoll.fleet.providers.cluster_api.topology import (
    ROW_LABEL,
    build_cluster,
    build_pools_patch,
    choose_zones,
    list_deployments,
    merge_pools,
    read_pools,
)
from plimsoll.fleet.providers.data_planes.failures import attempt, limit_failures_to_cluster
from plimsoll.fleet.providers.data_planes.setup import DataPlaneSetup

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.pools import PoolBounds
    from plimsoll.fleet.model.provided import AddonOrder, ClusterOrder, ProvidedCluster, SetupOrder
    from plimsoll.fleet.providers.cluster_api.management import LiveCluster
    from plimsoll.fleet.providers.cluster_api.settings import ClusterApiProviderSettings
    from plimsoll.fleet.providers.data_planes.clients import DataPlaneClients
    from plimsoll.kube.client import Client

T = TypeVar("T")
_OTHER_ROW: Final = "belongs to another row"


class NotTheCluster(InvalidInput):
    """The Cluster with the name of a row is not the one of the row."""


class ClusterApiProvider:
    """Over one management cluster. `management` is a client of it with short timeouts."""

    type = ProviderType.CLUSTER_API

    def __init__(
        self, management: Client, clients: DataPlaneClients, settings: ClusterApiProviderSettings, *, clock: Clock
    ) -> None:
        self._management = ManagementCluster(management, clock=clock)
        self._clients = clients
        self._settings = settings
        self._clock = clock

    # ---- reads

    async def find_cluster(self, name: str, *, region: str) -> ProvidedCluster | Absent | CallFailed:
        found = await attempt(
            self._management.find(name, namespace=name_namespace(region)), about=f"cluster {name} in Cluster API"
        )
        if isinstance(found, CallFailed):
            return found
        return Absent() if found is None else self._present(found)

    async def read_cluster(self, cluster: Cluster) -> ProvidedCluster | Absent | CallFailed:
        found = await self._attempt(cluster, self._find_row(cluster))
        if isinstance(found, CallFailed):
            return found
        return Absent() if found is None else self._present(found)

    async def read_setup(self, cluster: Cluster, order: SetupOrder) -> ClusterSetup | CallFailed:
        return await self._attempt(cluster, self._read_setup(cluster, order))

    async def list_clusters(self) -> tuple[ProvidedCluster, ...] | CallFailed:
        listed = await attempt(self._management.list_ours(), about="the clusters in Cluster API")
        if isinstance(listed, CallFailed):
            return listed
        now = self._clock.now()
        return tuple(
            sorted((read_provided(cluster, now=now) for cluster in listed), key=lambda found: found.cluster_id)
        )

    # ---- changes

    async def create_cluster(self, order: ClusterOrder) -> ProvidedCluster | CallFailed:
        return await attempt(self._create(order), about=f"cluster {order.name} in Cluster API")

    async def ensure_pools(
        self, cluster: Cluster, pools: tuple[PoolBounds, ...]
    ) -> tuple[PoolBounds, ...] | CallFailed:
        return await self._attempt(cluster, self._ensure_pools(cluster, pools))

    async def ensure_resources(self, cluster: Cluster, order: SetupOrder) -> CallFailed | None:
        return await self._attempt(
            cluster, self._run_in(cluster, lambda data_plane: data_plane.apply_resources(order.resources))
        )

    async def ensure_addons(self, cluster: Cluster, addons: tuple[AddonOrder, ...]) -> CallFailed | None:
        async def install_all(data_plane: DataPlaneSetup) -> None:
            for addon in addons:
                await data_plane.install(addon)

        return await self._attempt(cluster, self._run_in(cluster, install_all))

    async def delete_cluster(self, cluster: Cluster) -> DeletionState | CallFailed:
        return await self._attempt(cluster, self._delete(cluster))

    # ---- inside; these raise

    async def _create(self, order: ClusterOrder) -> ProvidedCluster | CallFailed:
        settings = self._settings
        namespace = name_namespace(order.region)
        found = await self._management.find(order.name, namespace=namespace)
        if found is None:
            cluster_class = parse_class(order.cluster_class or settings.cluster_class)
            version = order.version if VERSION.fullmatch(order.version) else settings.kubernetes_version
            if not version:
                raise InvalidInput("no Kubernetes version for new clusters is configured", path="--cluster-version")
            await self._management.ensure_namespace(namespace)
            body = build_cluster(
                replace(order, version=version),
                version=await self._management.find_version(),
                namespace=namespace,
                cluster_class=cluster_class,
                worker_class=settings.worker_class,
            )
            found = await self._management.apply(body)
        if found.view.metadata.labels.get(ROW_LABEL, "") != order.row_id.lower():
            return build_failure(FailureKind.REFUSED, f"a Cluster {namespace}/{order.name} is there and {_OTHER_ROW}")
        return self._present(found)

    async def _ensure_pools(self, cluster: Cluster, pools: tuple[PoolBounds, ...]) -> tuple[PoolBounds, ...]:
        found = await self._get_row(cluster)
        zones = choose_zones(found.view.status.failure_domains, multi_az=cluster.multi_az)
        if zones is None:
            raise InvalidInput(
                "its infrastructure has fewer than three failure domains, and it should lie in three zones"
            )
        known = list_deployments(found.body)
        merged = merge_pools(known, pools, zones=zones, worker_class=self._settings.worker_class)
        if merged != known:
            found = await self._management.apply(build_pools_patch(found.body, merged))
        held, problems = read_pools(list_deployments(found.body))
        ids = {pool.id for pool in pools}
        if ids - {pool.id for pool in held}:
            raise InvalidInput("; ".join(problems) or "the management cluster did not keep its pools")
        return tuple(pool for pool in held if pool.id in ids)

    async def _read_setup(self, cluster: Cluster, order: SetupOrder) -> ClusterSetup:
        found = await self._get_row(cluster)
        pools, problems = read_pools(list_deployments(found.body))

        async def read(data_plane: DataPlaneSetup) -> ClusterSetup:
            states = [await data_plane.read_addon(addon) for addon in order.addons]
            return ClusterSetup(
                pools=pools,
                dns=f"{found.view.metadata.name}.{self._settings.domain}",
                has_resources=await data_plane.has_resources(order.resources),
                addons=tuple(state for state in states if state is not None),
                problems=(*problems, *await data_plane.find_unmarked_nodes()),
            )

        return await self._run_in(cluster, read)

    async def _run_in(self, cluster: Cluster, work: Callable[[DataPlaneSetup], Awaitable[T]]) -> T:
        """Work in the data plane of a row, by the kubeconfig of its Secret."""
        name, namespace = _find_name(cluster), name_namespace(cluster.region)
        access = await self._management.read_access(name, namespace=namespace)
        places = {"cluster-name": name, "cluster-namespace": namespace, "cluster-id": cluster.cluster_id}
        with limit_failures_to_cluster():
            async with self._clients.open(access) as client:
                return await work(DataPlaneSetup(client, self._settings.addons, places))

    async def _delete(self, cluster: Cluster) -> DeletionState:
        found = await self._find_row(cluster)
        if found is None:
            return DeletionState.GONE
        if self._present(found).state is not ProviderState.DELETING:
            await self._management.delete(found.view)
        return DeletionState.GOING

    async def _find_row(self, cluster: Cluster) -> LiveCluster | None:
        """The Cluster of a row. Raises `NotTheCluster` if the name is that of another one."""
        name, namespace = _find_name(cluster), name_namespace(cluster.region)
        found = await self._management.find(name, namespace=namespace)
        if found is None:
            return None
        metadata = found.view.metadata
        if cluster.cluster_id and metadata.uid != cluster.cluster_id:
            raise NotTheCluster(
                f"its id is {metadata.uid} now, and was {cluster.cluster_id}: another Cluster has its name"
            )
        if not cluster.cluster_id and metadata.labels.get(ROW_LABEL, "") != cluster.id.lower():
            raise NotTheCluster(f"the Cluster with its name {_OTHER_ROW}")
        return found

    async def _get_row(self, cluster: Cluster) -> LiveCluster:
        found = await self._find_row(cluster)
        if found is None:
            raise NotTheCluster("it is not there")
        return found

    async def _attempt(self, cluster: Cluster, calls: Awaitable[T]) -> T | CallFailed:
        return await attempt(calls, about=f"cluster {_find_name(cluster)} in Cluster API")

    def _present(self, found: LiveCluster) -> ProvidedCluster:
        return read_provided(found.view, now=self._clock.now())


def _find_name(cluster: Cluster) -> str:
    """The name of a row's Cluster: as it was registered, else as we make them."""
    registered = cluster.provider_spec.get("name", "")
    return registered if isinstance(registered, str) and registered else name_cluster(cluster.id)
