"""The rows as a worker sees them: it reads at any time, and writes only while it may act."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.fleet.workers.listening_time import present_reports

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.model.provided import Orphan
    from plimsoll.fleet.model.search import Search
    from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus
    from plimsoll.fleet.model.units import KafkaCount
    from plimsoll.fleet.ports import ClusterChanges, ClusterRoom, FleetStore, KafkaChanges, KafkaFilter, Page
    from plimsoll.fleet.workers.leases import WorkerLease


class LeasedStore:
    """Rows under the lease of one worker. Every write raises `LeaseLost` once the time of its holder is over.

    The deadline is checked here by the clock of this process, and once more by the database in the transaction.
    """

    def __init__(self, store: FleetStore, lease: WorkerLease, *, listening_since: datetime) -> None:
        self._store = store
        self._lease = lease
        self._listening_since = listening_since

    def check_lease(self) -> None:
        """Raises `LeaseLost` unless the worker may act now: called before every change outside of the database."""
        self._lease.check()

    def compute_lease_left_s(self) -> float:
        """How long no other process can act as this worker."""
        return self._lease.compute_left_s()

    # ---- reads

    async def list_clusters(self, statuses: Collection[ClusterStatus] | None = None) -> tuple[Cluster, ...]:
        return await self._store.list_clusters(statuses)

    async def list_heard_clusters(self) -> tuple[Cluster, ...]:
        """For decisions about silent agents: as if each had reported when this process began to listen."""
        return tuple(present_reports(row, self._listening_since) for row in await self._store.list_clusters())

    async def list_failed_since(self, since: datetime) -> tuple[Cluster, ...]:
        return await self._store.list_failed_since(since)

    async def count_deletions(self, since: datetime) -> int:
        return await self._store.count_deletions(since)

    async def list_orphans(self) -> tuple[Orphan, ...]:
        return await self._store.list_orphans()

    async def list_kafkas(
        self, statuses: Collection[KafkaStatus], *, cluster_id: str | None = None
    ) -> tuple[KafkaRequest, ...]:
        return await self._store.list_kafkas(statuses, cluster_id=cluster_id)

    async def search_kafkas(
        self, visible: KafkaFilter, search: Search | None, page: Page
    ) -> tuple[int, tuple[KafkaRequest, ...]]:
        return await self._store.search_kafkas(visible, search, page)

    async def list_expired(self, at: datetime) -> tuple[KafkaRequest, ...]:
        return await self._store.list_expired(at)

    async def count_statuses(self) -> dict[KafkaStatus, int]:
        return await self._store.count_statuses()

    async def count_kafkas(self, policy: FleetPolicy) -> tuple[KafkaCount, ...]:
        return await self._store.count_kafkas(policy)

    # ---- writes

    async def insert_cluster(self, cluster: Cluster, *, max_parallel: int) -> bool:
        self._lease.check()
        return await self._store.insert_cluster(cluster, max_parallel=max_parallel)

    async def change_cluster(
        self,
        row_id: str,
        changes: ClusterChanges,
        *,
        statuses: Collection[ClusterStatus],
        max_nodes: Mapping[str, int] | None = None,
    ) -> Cluster | None:
        self._lease.check()
        return await self._store.change_cluster(row_id, changes, statuses=statuses, max_nodes=max_nodes)

    async def restore_cluster(self, row_id: str) -> Cluster | None:
        self._lease.check()
        return await self._store.restore_cluster(row_id)

    async def request_deletion(self, row_id: str) -> Cluster | None:
        self._lease.check()
        return await self._store.request_deletion(row_id)

    async def remove_cluster(self, row_id: str, *, statuses: Collection[ClusterStatus]) -> bool:
        self._lease.check()
        return await self._store.remove_cluster(row_id, statuses=statuses)

    async def keep_orphans(self, orphans: Collection[Orphan]) -> None:
        self._lease.check()
        await self._store.keep_orphans(orphans)

    async def change_kafka(
        self, row_id: str, changes: KafkaChanges, *, statuses: Collection[KafkaStatus], placement_id: str | None = None
    ) -> KafkaRequest | None:
        self._lease.check()
        return await self._store.change_kafka(row_id, changes, statuses=statuses, placement_id=placement_id)

    async def place_kafka(
        self,
        row_id: str,
        cluster: Cluster,
        changes: KafkaChanges,
        *,
        statuses: Collection[KafkaStatus],
        room: ClusterRoom | None,
    ) -> KafkaRequest | None:
        self._lease.check()
        return await self._store.place_kafka(row_id, cluster, changes, statuses=statuses, room=room)

    async def remove_kafka(self, row_id: str, *, statuses: Collection[KafkaStatus]) -> bool:
        self._lease.check()
        return await self._store.remove_kafka(row_id, statuses=statuses)
