"""Cluster rows. A change of a status is one conditional UPDATE that names the statuses it may come from.

Transactions lock in one order: lease, locator, owner, cluster, Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs
from sqlalchemy import delete, exists, func, select, update

from plimsoll.fleet.model.clusters import DynamicCapacity
from plimsoll.fleet.model.provided import Orphan
from plimsoll.fleet.model.statuses import REPORTING, TERRAFORMING, ClusterStatus, ClusterType, KafkaStatus
from plimsoll.fleet.store.schema import CLUSTERS, KAFKAS, LIVE_CLUSTER, LIVE_KAFKA, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.ports import ClusterChanges, ClusterReport
    from plimsoll.fleet.store.leases import LeasedTransactions
    from plimsoll.fleet.store.rows import RowCodec

MOST_PARALLEL_CREATIONS: Final = 100
_ORPHANS: Final = "orphans"
_MOST_ORPHANS: Final = 1_000
_ORPHAN_DECODER: Final = msgspec.json.Decoder(tuple[Orphan, ...])


def is_consuming(cluster_id: str) -> ColumnElement[bool]:
    """Kafkas that consume units of a cluster: all but those in status `deleting`."""
    return LIVE_KAFKA & (KAFKAS.c.cluster_id == cluster_id) & (KAFKAS.c.status != KafkaStatus.DELETING)


def has_consumers(connection: Connection, cluster_id: str) -> bool:
    return bool(cluster_id) and connection.execute(select(exists().where(is_consuming(cluster_id)))).scalar_one()


class ClusterRows:
    """Implements `fleet.ports.ClusterStore`."""

    def __init__(self, transactions: LeasedTransactions, codec: RowCodec, clock: Clock) -> None:
        self._transactions = transactions
        self._codec = codec
        self._clock = clock

    async def insert_cluster(self, cluster: Cluster, *, max_parallel: int = 1) -> bool:
        return await self._transactions.write(
            lambda connection: self.insert_row(connection, cluster, max_parallel=max_parallel)
        )

    async def get_cluster(self, row_id: str) -> Cluster | None:
        return await self._transactions.read(lambda connection: self._find(connection, CLUSTERS.c.id == row_id))

    async def find_cluster(self, cluster_id: str) -> Cluster | None:
        if not cluster_id:
            return None
        condition = CLUSTERS.c.cluster_id == cluster_id
        return await self._transactions.read(lambda connection: self._find(connection, condition))

    async def find_client(self, client_id: str) -> Cluster | None:
        if not client_id:
            return None
        condition = CLUSTERS.c.client_id == client_id
        return await self._transactions.read(lambda connection: self._find(connection, condition))

    async def list_clusters(self, statuses: Collection[ClusterStatus] | None = None) -> tuple[Cluster, ...]:
        wanted = LIVE_CLUSTER if statuses is None else LIVE_CLUSTER & CLUSTERS.c.status.in_(sorted(statuses))
        return await self._list(wanted)

    async def list_failed_since(self, since: datetime) -> tuple[Cluster, ...]:
        is_failed = CLUSTERS.c.status == ClusterStatus.FAILED
        return await self._list(LIVE_CLUSTER & is_failed & (CLUSTERS.c.created_at >= since))

    async def change_cluster(
        self,
        row_id: str,
        changes: ClusterChanges,
        *,
        statuses: Collection[ClusterStatus],
        max_nodes: Mapping[str, int] | None = None,
    ) -> Cluster | None:
        condition = (CLUSTERS.c.id == row_id) & CLUSTERS.c.status.in_(sorted(statuses))

        def change(connection: Connection) -> Cluster | None:
            merged: ClusterChanges = {**changes}
            if max_nodes:
                cluster = self.lock_cluster(connection, condition)
                if cluster is None:
                    return None
                merged["dynamic_capacity_info"] = _merge_nodes(cluster, max_nodes)
            return self._update(connection, row_id, condition, merged)

        return await self._transactions.write(change)

    async def store_report(self, cluster_id: str, report: ClusterReport) -> Cluster | None:
        if not cluster_id:
            return None
        return await self._transactions.write(lambda connection: self._merge_report(connection, cluster_id, report))

    async def restore_cluster(self, row_id: str) -> Cluster | None:
        condition = (
            (CLUSTERS.c.id == row_id)
            & (CLUSTERS.c.status == ClusterStatus.DEPROVISIONING)
            & CLUSTERS.c.delete_requested_at.is_(None)
        )
        changes = {"status": ClusterStatus.READY}
        return await self._transactions.write(lambda connection: self._update(connection, row_id, condition, changes))

    async def request_deletion(self, row_id: str) -> Cluster | None:
        return await self._transactions.write(lambda connection: self._request_deletion(connection, row_id))

    async def remove_cluster(self, row_id: str, *, statuses: Collection[ClusterStatus]) -> bool:
        return await self._transactions.write(lambda connection: self._remove(connection, row_id, statuses))

    async def count_deletions(self, since: datetime) -> int:
        statement = select(func.count()).select_from(CLUSTERS).where(CLUSTERS.c.delete_requested_at >= since)
        return await self._transactions.read(lambda connection: connection.execute(statement).scalar_one())

    async def list_orphans(self) -> tuple[Orphan, ...]:
        statement = select(SETTINGS.c.value).where(SETTINGS.c.name == _ORPHANS)
        stored = await self._transactions.read(lambda connection: connection.execute(statement).scalar_one_or_none())
        return _ORPHAN_DECODER.decode(stored) if stored else ()

    async def keep_orphans(self, orphans: Collection[Orphan]) -> None:
        value = msgspec.json.encode(list(orphans)[:_MOST_ORPHANS]).decode()
        statement = self._transactions.build_insert(SETTINGS).values(name=_ORPHANS, value=value)
        changed = {"value": statement.excluded.value}
        replacing = statement.on_conflict_do_update(index_elements=[SETTINGS.c.name], set_=changed)
        await self._transactions.write(lambda connection: connection.execute(replacing))

    def lock_cluster(self, connection: Connection, condition: ColumnElement[bool]) -> Cluster | None:
        """The live row, locked until the end of the transaction."""
        row = connection.execute(select(CLUSTERS).where(LIVE_CLUSTER, condition).with_for_update()).first()
        return None if row is None else self._codec.decode_cluster(row)

    def _find(self, connection: Connection, condition: ColumnElement[bool]) -> Cluster | None:
        row = connection.execute(select(CLUSTERS).where(LIVE_CLUSTER, condition)).first()
        return None if row is None else self._codec.decode_cluster(row)

    async def _list(self, condition: ColumnElement[bool]) -> tuple[Cluster, ...]:
        statement = select(CLUSTERS).where(condition).order_by(CLUSTERS.c.created_at, CLUSTERS.c.id)
        return await self._transactions.read(
            lambda connection: self._codec.decode_clusters(connection.execute(statement).all())
        )

    def insert_row(self, connection: Connection, cluster: Cluster, *, max_parallel: int) -> bool:
        values = self._codec.encode_cluster(cluster)
        values["creation_slot"] = None
        if _is_creation(cluster):
            (locator,) = cluster.locators
            self._transactions.lock_text(connection, f"creation {locator}")
            slot = _find_slot(connection, cluster, min(max_parallel, MOST_PARALLEL_CREATIONS))
            if slot is None:
                return False
            values["creation_slot"] = slot
        statement = self._transactions.build_insert(CLUSTERS).values(values).on_conflict_do_nothing()
        return connection.execute(statement.returning(CLUSTERS.c.id)).first() is not None

    def _update(
        self, connection: Connection, row_id: str, condition: ColumnElement[bool], changes: Mapping[str, Any]
    ) -> Cluster | None:
        values = self._codec.encode_changes(CLUSTERS, row_id, changes)
        values["updated_at"] = self._clock.now()
        if "status" in values and values["status"] not in TERRAFORMING:
            values["creation_slot"] = None
        statement = update(CLUSTERS).where(LIVE_CLUSTER, condition).values(values).returning(CLUSTERS)
        row = connection.execute(statement).first()
        return None if row is None else self._codec.decode_cluster(row)

    def _merge_report(self, connection: Connection, cluster_id: str, report: ClusterReport) -> Cluster | None:
        condition = (CLUSTERS.c.cluster_id == cluster_id) & CLUSTERS.c.status.in_(sorted(REPORTING))
        cluster = self.lock_cluster(connection, condition)
        if cluster is None:
            return None
        changes: ClusterChanges = {"last_report_at": report.at, "status": ClusterStatus.WAITING}
        if report.is_ready:
            changes["status"] = ClusterStatus.READY
            changes["dynamic_capacity_info"] = _merge_units(cluster, report)
            if report.versions:
                changes["available_strimzi_versions"] = report.versions
            if cluster.ready_at is None:
                changes["ready_at"] = report.at
            if cluster.empty_since is None and not has_consumers(connection, cluster_id):
                changes["empty_since"] = report.at
        return self._update(connection, cluster.id, (CLUSTERS.c.id == cluster.id) & condition, changes)

    def _request_deletion(self, connection: Connection, row_id: str) -> Cluster | None:
        condition = (CLUSTERS.c.id == row_id) & (CLUSTERS.c.status == ClusterStatus.DEPROVISIONING)
        cluster = self.lock_cluster(connection, condition)
        if cluster is None or cluster.delete_requested_at is not None:
            return cluster
        if has_consumers(connection, cluster.cluster_id):
            return None
        return self._update(connection, row_id, condition, {"delete_requested_at": self._clock.now()})

    def _remove(self, connection: Connection, row_id: str, statuses: Collection[ClusterStatus]) -> bool:
        condition = (CLUSTERS.c.id == row_id) & CLUSTERS.c.status.in_(sorted(statuses))
        cluster = self.lock_cluster(connection, condition)
        if cluster is None or has_consumers(connection, cluster.cluster_id):
            return False
        if cluster.cluster_type is ClusterType.ENTERPRISE:
            return bool(connection.execute(delete(CLUSTERS).where(LIVE_CLUSTER, condition)).rowcount)
        return self._update(connection, row_id, condition, {"deleted_at": self._clock.now(), **_NO_ACCOUNT}) is not None


_NO_ACCOUNT: Final = {"client_id": "", "client_secret": ""}


def _is_creation(cluster: Cluster) -> bool:
    """A cluster that a worker decided to create for one locator, and not one that was registered."""
    return (
        cluster.cluster_type is ClusterType.MANAGED
        and cluster.status is ClusterStatus.ACCEPTED
        and not cluster.cluster_id
        and len(cluster.instance_types) == 1
    )


def _find_slot(connection: Connection, cluster: Cluster, max_parallel: int) -> int | None:
    """A free slot. None: as many clusters of the locator as allowed are terraforming, whatever they came from."""
    same_region = (CLUSTERS.c.cloud_provider == cluster.cloud_provider) & (CLUSTERS.c.region == cluster.region)
    is_terraforming = (CLUSTERS.c.cluster_type == ClusterType.MANAGED) & CLUSTERS.c.status.in_(sorted(TERRAFORMING))
    statement = select(CLUSTERS.c.supported_instance_type, CLUSTERS.c.creation_slot)
    rows = connection.execute(statement.where(LIVE_CLUSTER, same_region, is_terraforming)).all()
    (wanted,) = cluster.instance_types
    slots = [slot for types, slot in rows if wanted in map(str.strip, types.split(","))]
    if len(slots) >= max_parallel:
        return None
    return next(slot for slot in range(max_parallel) if slot not in slots)


def _merge_units(cluster: Cluster, report: ClusterReport) -> dict[str, DynamicCapacity]:
    return {
        name: structs.replace(capacity, max_units=units.max_units, remaining_units=units.remaining_units)
        if (units := report.units.get(name)) is not None
        else capacity
        for name, capacity in cluster.dynamic_capacity_info.items()
    }


def _merge_nodes(cluster: Cluster, max_nodes: Mapping[str, int]) -> dict[str, DynamicCapacity]:
    known = cluster.dynamic_capacity_info
    changed = {name: structs.replace(known.get(name, _NOTHING), max_nodes=nodes) for name, nodes in max_nodes.items()}
    return {**known, **changed}


_NOTHING: Final = DynamicCapacity()
