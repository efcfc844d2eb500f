"""The lives of clusters: what happens on the clock, and what the data plane is asked for, one task per cluster.

A task does the next thing that is due for its cluster, keeps the state, and waits for a time or a change. A request
only changes the state and wakes the task, so a request never waits for the data plane.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

import structlog
from msgspec import structs

from plimsoll.local.ocm.ports import DataPlaneFailed
from plimsoll.local.ocm.state import ClusterState

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.local.ocm.ports import DataPlane
    from plimsoll.local.ocm.settings import OcmDelays
    from plimsoll.local.ocm.state import AddonInstallation, OcmCluster

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_RETRY_S: Final = 30.0
_LONGEST_DETAILS: Final = 500


class ClusterTable(Protocol):
    """The clusters of the service."""

    def find(self, cluster_id: str) -> OcmCluster | None: ...

    def keep(self, cluster: OcmCluster) -> None:
        """Replaces a cluster that is there."""
        ...

    def remove(self, cluster_id: str) -> None: ...


class Lifecycle:
    """Runs one task per cluster for as long as `run` runs."""

    def __init__(self, table: ClusterTable, data_plane: DataPlane, *, delays: OcmDelays, clock: Clock) -> None:
        self._table = table
        self._data_plane = data_plane
        self._delays = delays
        self._clock = clock
        self._events: dict[str, asyncio.Event] = {}
        self._new: list[str] = []
        self._resumed: set[str] = set()
        self._has_new = asyncio.Event()

    def begin(self, cluster_id: str, *, is_known: bool = False) -> None:
        """A cluster is new. `is_known`: it was read after a restart, and the data plane is asked for it again."""
        self._events[cluster_id] = asyncio.Event()
        if is_known:
            self._resumed.add(cluster_id)
        self._new.append(cluster_id)
        self._has_new.set()

    def wake(self, cluster_id: str) -> None:
        """Something about the cluster was changed."""
        if (event := self._events.get(cluster_id)) is not None:
            event.set()

    async def run(self) -> None:
        """Until cancelled. What was under way is repeated by the next run."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._has_new.clear()
                    for cluster_id in self._new:
                        group.create_task(
                            self._run_cluster(cluster_id), name=f"cluster {cluster_id} of the simulated OCM"
                        )
                    self._new.clear()
                    await self._has_new.wait()
        finally:
            self._new[:] = [cluster_id for cluster_id in self._events if cluster_id not in self._new] + self._new
            self._has_new.set()

    async def _run_cluster(self, cluster_id: str) -> None:
        event = self._events[cluster_id]
        while (cluster := self._table.find(cluster_id)) is not None:
            event.clear()
            wait_s = await self._advance(cluster)
            if wait_s is None or wait_s > 0:
                await _wait_for(event, wait_s)
        del self._events[cluster_id]

    async def _advance(self, cluster: OcmCluster) -> float | None:
        """Does what is due. Returns after how long there is more to do; None: after a change."""
        if cluster.id in self._resumed:
            return await self._resume(cluster)
        match cluster.state:
            case ClusterState.PENDING:
                return self._leave_pending(cluster)
            case ClusterState.INSTALLING:
                return await self._install(cluster)
            case ClusterState.READY:
                return await self._keep_ready(cluster)
            case ClusterState.UNINSTALLING:
                return await self._uninstall(cluster)
            case ClusterState.ERROR:
                return None

    async def _resume(self, cluster: OcmCluster) -> float:
        """Asks again for all that the data plane had before the restart."""
        try:
            if cluster.is_made and cluster.state is not ClusterState.UNINSTALLING:
                await self._data_plane.make(cluster.spec)
                await self._data_plane.set_pools(cluster.id, cluster.all_pools)
                for addon in cluster.addons.values():
                    if addon.is_applied:
                        await self._data_plane.install(cluster.id, addon.id, addon.parameters)
        except DataPlaneFailed as error:
            log.warning("simulated_ocm.resume_failed", cluster=cluster.id, problem=str(error))
            return _RETRY_S
        self._resumed.discard(cluster.id)
        return 0.0

    def _leave_pending(self, cluster: OcmCluster) -> float:
        left_s = self._compute_left_s(cluster.since, self._delays.pending_s)
        if left_s <= 0:
            self._table.keep(cluster.enter(ClusterState.INSTALLING, self._clock.now()))
        return left_s

    async def _install(self, cluster: OcmCluster) -> float:
        if not cluster.fails and not cluster.is_made:
            try:
                await self._data_plane.make(cluster.spec)
                await self._data_plane.set_pools(cluster.id, cluster.all_pools)
            except DataPlaneFailed as error:
                self._replace(cluster.id, fails=str(error)[:_LONGEST_DETAILS])
            else:
                self._replace(cluster.id, is_made=True, pools_applied=True)
            return 0.0
        left_s = self._compute_left_s(cluster.since, self._delays.installing_s)
        if left_s <= 0:
            state = ClusterState.ERROR if cluster.fails else ClusterState.READY
            self._table.keep(cluster.enter(state, self._clock.now(), details=cluster.fails))
        return left_s

    async def _keep_ready(self, cluster: OcmCluster) -> float | None:
        """Applies what was changed, one thing per call."""
        if not cluster.pools_applied:
            return await self._apply_pools(cluster)
        waits: list[float] = []
        for addon in cluster.addons.values():
            if not addon.is_applied:
                return await self._apply_addon(cluster, addon)
            if addon.state == "installing":
                left_s = self._compute_left_s(addon.installed_at, self._delays.addon_s)
                if left_s <= 0:
                    self._replace_addon(cluster.id, addon, state="ready")
                    return 0.0
                waits.append(left_s)
        return min(waits, default=None)

    async def _apply_pools(self, cluster: OcmCluster) -> float:
        try:
            await self._data_plane.set_pools(cluster.id, cluster.all_pools)
        except DataPlaneFailed as error:
            log.warning("simulated_ocm.pools_failed", cluster=cluster.id, problem=str(error))
            return _RETRY_S
        current = self._table.find(cluster.id)
        if current is not None and current.all_pools == cluster.all_pools:
            self._table.keep(structs.replace(current, pools_applied=True))
        return 0.0

    async def _apply_addon(self, cluster: OcmCluster, addon: AddonInstallation) -> float:
        try:
            await self._data_plane.install(cluster.id, addon.id, addon.parameters)
        except DataPlaneFailed as error:
            self._replace_addon(
                cluster.id, addon, state="failed", details=str(error)[:_LONGEST_DETAILS], is_applied=True
            )
        else:
            self._replace_addon(cluster.id, addon, is_applied=True)
        return 0.0

    async def _uninstall(self, cluster: OcmCluster) -> float:
        try:
            await self._data_plane.delete(cluster.id)
        except DataPlaneFailed as error:
            log.warning("simulated_ocm.delete_failed", cluster=cluster.id, problem=str(error))
            return _RETRY_S
        left_s = self._compute_left_s(cluster.since, self._delays.uninstalling_s)
        if left_s <= 0:
            self._table.remove(cluster.id)
        return left_s

    def _replace(self, cluster_id: str, **changes: object) -> None:
        """Changes the cluster as it is now: a request may have changed it since."""
        current = self._table.find(cluster_id)
        if current is not None:
            self._table.keep(structs.replace(current, **changes))

    def _replace_addon(self, cluster_id: str, addon: AddonInstallation, **changes: object) -> None:
        """Unless a request changed the add-on since."""
        current = self._table.find(cluster_id)
        if current is not None and current.addons.get(addon.id) == addon:
            addons = {**current.addons, addon.id: structs.replace(addon, **changes)}
            self._table.keep(structs.replace(current, addons=addons))

    def _compute_left_s(self, since: datetime, delay_s: float) -> float:
        return delay_s - (self._clock.now() - since).total_seconds()


async def _wait_for(event: asyncio.Event, wait_s: float | None) -> None:
    try:
        async with asyncio.timeout(wait_s):
            await event.wait()
    except TimeoutError:
        """The next thing is due."""
