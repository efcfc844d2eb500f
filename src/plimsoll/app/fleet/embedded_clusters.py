"""Clusters of a fleet in this process: what a cluster of the simulated OCM is (`local.ocm.ports.DataPlane`).

Each is an embedded cluster with its own API server, cloud, scheduler, kubelets and node autoscaler. The node autoscaler
makes no groups of its own: it would give them the label of a pool, and the bounds of the pool would bound nothing.
Clusters begin and end while the others go on. What a cluster is, is in its store; after a restart the simulated OCM
repeats its calls, and they find it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import structlog
from structlog.contextvars import bind_contextvars

from plimsoll.app.embedded_cluster import EmbeddedCluster, EmbeddedSettings
from plimsoll.app.embedded_dependencies import EmbeddedDependencies
from plimsoll.app.fleet.addons import AddonHost
from plimsoll.app.fleet.pool_groups import POOL_LABEL, build_groups, compute_target
from plimsoll.core.errors import PlimsollError
from plimsoll.local.cloud.catalogue import load_shipped_catalogue
from plimsoll.local.cluster import ClusterSettings
from plimsoll.local.initial_cluster import InitialCloud, InitialCluster, prepare_cluster
from plimsoll.local.ocm.ports import DataPlaneFailed
from plimsoll.nodes.plan_runner import run_in_thread
from plimsoll.objects.api.simulated_cloud import NodeGroup
from plimsoll.runtime.supervisor import Service, Supervisor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.app.fleet.addons import Addon
    from plimsoll.app.fleet.cluster_stores import ClusterStores
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.client import Client
    from plimsoll.local.apiserver.in_process_server import InProcessServer
    from plimsoll.local.ocm.ports import ClusterSpec, PoolSpec
    from plimsoll.nodes.plan_runner import PlanRunner

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_MANAGER: Final = "plimsoll-fleet"
LOGGED_CLUSTER: Final = "fleet_cluster"
"""The field of log events that names the cluster of a fleet."""
_CATALOGUES: Final = {"aws": ("aws-m5-r5", "aws-m6i-c6i-r6i"), "gcp": ("gce-custom", "gce-n1")}
_OTHER_CATALOGUES: Final = ("aws-m5-r5", "aws-m6i-c6i-r6i", "gce-n1")
AUTOSCALER_OPTIONS: Final = {
    "node-autoprovisioning": "false",
    "enable-provisioning-requests": "true",
    "balance-similar-node-groups": "true",
}
"""The pools bound what the node autoscaler of a cluster may add."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedClustersSettings:
    """`machine_boot_s`: how long a machine boots."""

    machine_boot_s: float = 10.0
    cluster: ClusterSettings = field(
        # Nothing but kubectl looks at heartbeats, and their writes are most of what an idle cluster costs.
        default_factory=lambda: ClusterSettings(plays_tidb=False, writes_heartbeats=False)
    )
    autoscaler_options: Mapping[str, str] = field(default_factory=lambda: AUTOSCALER_OPTIONS)


@dataclass(slots=True, kw_only=True)
class _Orders:
    """What the service ordered for a cluster."""

    spec: ClusterSpec
    pools: tuple[PoolSpec, ...] = ()
    addons: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class RunningCluster:
    """A cluster with its tasks."""

    host: AddonHost
    server: InProcessServer
    task: asyncio.Task[None]
    addons: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    @property
    def cluster(self) -> EmbeddedCluster:
        return self.host.cluster


class EmbeddedClusters:
    """`run` runs all clusters; calls wait until it does."""

    def __init__(
        self,
        stores: ClusterStores,
        *,
        clock: Clock,
        entropy: Entropy,
        addons: Mapping[str, Addon] | None = None,
        settings: EmbeddedClustersSettings | None = None,
        run_planner: PlanRunner = run_in_thread,
    ) -> None:
        self._stores = stores
        self._clock = clock
        self._entropy = entropy
        self._addons = addons or {}
        self._settings = settings or EmbeddedClustersSettings()
        self._run_planner = run_planner
        self._orders: dict[str, _Orders] = {}
        self._running: dict[str, RunningCluster] = {}
        self._group: asyncio.TaskGroup | None = None
        self._has_begun = asyncio.Event()

    def list_services(self) -> list[Service]:
        return [Service(name="clusters of the fleet", run=self.run)]

    async def run(self) -> None:
        """Until cancelled: then all clusters stop, and are found again by the next run."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for orders in self._orders.values():
                    await self._begin(orders)
                self._has_begun.set()
                await asyncio.get_running_loop().create_future()
        finally:
            self._group = None
            self._has_begun.clear()
            for cluster_id in tuple(self._running):
                await self._end(cluster_id)

    def find(self, cluster_id: str) -> RunningCluster | None:
        return self._running.get(cluster_id)

    def list_ids(self) -> tuple[str, ...]:
        """In the order in which they were made."""
        return tuple(self._running)

    # ---- the port

    async def make(self, cluster: ClusterSpec) -> None:
        await self._has_begun.wait()
        if cluster.id in self._running:
            return
        orders = _Orders(spec=cluster, pools=(cluster.default_pool,))
        with _ExplainedFailure():
            _check_machine_type(cluster.default_pool, cluster.cloud_provider)
            await self._begin(orders)
        self._orders[cluster.id] = orders

    async def set_pools(self, cluster_id: str, pools: tuple[PoolSpec, ...]) -> None:
        await self._has_begun.wait()
        orders, running = self._orders.get(cluster_id), self._running.get(cluster_id)
        if orders is None or running is None:
            raise DataPlaneFailed(f"there is no cluster {cluster_id}")
        with _ExplainedFailure():
            for pool in pools:
                _check_machine_type(pool, orders.spec.cloud_provider)
            await _apply_pools(running.cluster.connect(_MANAGER), pools, orders.spec.region)
        orders.pools = pools

    async def install(self, cluster_id: str, addon_id: str, parameters: Mapping[str, str]) -> None:
        await self._has_begun.wait()
        orders, running = self._orders.get(cluster_id), self._running.get(cluster_id)
        if orders is None or running is None:
            raise DataPlaneFailed(f"there is no cluster {cluster_id}")
        if addon_id not in self._addons:
            return
        if addon_id in running.addons and orders.addons.get(addon_id) == dict(parameters):
            return
        with _ExplainedFailure():
            await self._begin_addon(running, addon_id, parameters)
        orders.addons[addon_id] = dict(parameters)

    async def delete(self, cluster_id: str) -> None:
        self._orders.pop(cluster_id, None)
        with _ExplainedFailure():
            await self._end(cluster_id)
            await self._stores.remove(cluster_id)

    # ---- clusters

    async def _begin(self, orders: _Orders) -> None:
        """Opens the store, makes what is missing in it, and runs everything."""
        assert self._group is not None, "run() runs"
        spec, settings = orders.spec, self._settings
        server = self._stores.open_server(spec.id)
        try:
            await server.application.start()
            dependencies = EmbeddedDependencies(
                transport=server.transport,
                clock=self._clock,
                entropy=self._entropy,
                journal=self._stores.open_journal(spec.id),
                run_planner=self._run_planner,
            )
            cluster = EmbeddedCluster(
                dependencies,
                EmbeddedSettings(
                    cluster=settings.cluster,
                    has_kafka=False,
                    scales_tidb=False,
                    autoscaler_options=settings.autoscaler_options,
                ),
            )
            cloud = InitialCloud(
                region=spec.region,
                zones=spec.zones,
                catalogues=_CATALOGUES.get(spec.cloud_provider, _OTHER_CATALOGUES),
                boot_s=settings.machine_boot_s,
            )
            await prepare_cluster(cluster.connect(_MANAGER), InitialCluster(group=None, cloud=cloud))
            await _apply_pools(cluster.connect(_MANAGER), orders.pools, spec.region)
        except BaseException:  # The error is passed on; the store must not stay open behind it.
            await server.aclose()
            raise
        services = [*server.list_services(), *cluster.list_services()]
        running = RunningCluster(
            host=AddonHost(spec=spec, cluster=cluster, dependencies=dependencies),
            server=server,
            task=self._run_services(services, "cluster", spec.id),
        )
        self._running[spec.id] = running
        for addon_id, parameters in orders.addons.items():
            await self._begin_addon(running, addon_id, parameters)
        log.info("fleet_cluster.started", cluster=spec.id, name=spec.name)

    async def _begin_addon(self, running: RunningCluster, addon_id: str, parameters: Mapping[str, str]) -> None:
        if (earlier := running.addons.pop(addon_id, None)) is not None:
            await _cancel(earlier)
        services = self._addons[addon_id].build_services(running.host, parameters)
        running.addons[addon_id] = self._run_services([*services], addon_id, running.host.spec.id)

    def _run_services(self, services: list[Service], what: str, cluster_id: str) -> asyncio.Task[None]:
        """A supervisor per cluster: what fails in it is restarted there, and no other cluster notices.

        Everything that its services log names the cluster.
        """
        assert self._group is not None, "run() runs"
        supervisor = Supervisor(services, clock=self._clock, entropy=self._entropy)

        async def run_with_name() -> None:
            # A task has its own context, which the tasks that it starts inherit.
            bind_contextvars(**{LOGGED_CLUSTER: cluster_id})
            await supervisor.run()

        return self._group.create_task(run_with_name(), name=f"{what} {cluster_id}")

    async def _end(self, cluster_id: str) -> None:
        """Add-ons first: they use the cluster. Then the store, which ends all watches of others."""
        running = self._running.pop(cluster_id, None)
        if running is None:
            return
        for addon in running.addons.values():
            await _cancel(addon)
        await _cancel(running.task)
        await running.server.aclose()
        await running.host.dependencies.journal.close()
        log.info("fleet_cluster.stopped", cluster=cluster_id)


class _ExplainedFailure:
    """Errors that users can understand become `DataPlaneFailed`; others are mistakes of ours, and pass."""

    def __enter__(self) -> None:
        """Nothing to begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, PlimsollError | OSError) and not isinstance(error, DataPlaneFailed):
            raise DataPlaneFailed(str(error)) from error


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))


def _check_machine_type(pool: PoolSpec, cloud_provider: str) -> None:
    """Raises `DataPlaneFailed`: a group of machines that cannot be had would never grow."""
    catalogues = _CATALOGUES.get(cloud_provider, _OTHER_CATALOGUES)
    sold = {machine_type.name for name in catalogues for machine_type in load_shipped_catalogue(name).machine_types}
    if pool.machine_type not in sold:
        raise DataPlaneFailed(f"pool {pool.id}: the cloud has no machine type {pool.machine_type!r}")


async def _apply_pools(client: Client, pools: tuple[PoolSpec, ...], region: str) -> None:
    """Exactly the node groups of these pools, besides those that users made."""
    wanted = {name: (pool.id, spec) for pool in pools for name, spec in build_groups(pool, region).items()}
    existing = {group.metadata.name: group for group in (await client.list(NodeGroup)).items}
    for name, group in existing.items():
        if POOL_LABEL in group.metadata.labels and name not in wanted:
            await client.delete(NodeGroup, name)
    for name, (pool_id, spec) in wanted.items():
        found = existing.get(name)
        if found is None:
            body: dict[str, Any] = {
                "metadata": {"name": name, "labels": {POOL_LABEL: pool_id}},
                "spec": {**spec, "target": spec["min"]},
            }
            await client.create(NodeGroup, body)
        elif (found.spec.min, found.spec.max) != (spec["min"], spec["max"]):
            bounds = {"min": spec["min"], "max": spec["max"], "target": compute_target(found.spec.target, spec)}
            await client.merge_patch(NodeGroup, name, {"spec": bounds})
