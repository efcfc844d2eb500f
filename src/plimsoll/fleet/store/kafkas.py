"""Kafka request rows. Limits are checked, and the row inserted, in one transaction under the lock of its locator.

A Kafka is placed under a lock of the row of its cluster, so that no cluster is removed under it, and none holds more
than it can: Kafkas come by placement and grow by requests of users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import func, select, tuple_, update

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.model.clusters import Locator
from plimsoll.fleet.model.statuses import ENDING, ClusterStatus, ClusterType, KafkaStatus
from plimsoll.fleet.model.units import KafkaCount
from plimsoll.fleet.ports import InsertResult
from plimsoll.fleet.store.clusters import ClusterRows, has_consumers, is_consuming
from plimsoll.fleet.store.schema import CLUSTERS, KAFKAS, LIVE_CLUSTER, LIVE_KAFKA
from plimsoll.fleet.store.search import apply_page, compile_search

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.model.search import Search
    from plimsoll.fleet.ports import ClusterRoom, KafkaChanges, KafkaFilter, Page, RegionCheck


class KafkaRows(ClusterRows):
    """Implements `fleet.ports.FleetStore`."""

    def with_lease(self, worker: str, holder: str) -> KafkaRows:
        return KafkaRows(self._transactions.with_lease(worker, holder), self._codec, self._clock)

    async def insert_kafka(
        self, kafka: KafkaRequest, check: RegionCheck | None, *, room: ClusterRoom | None = None
    ) -> InsertResult:
        return await self._transactions.write(lambda connection: self._insert_kafka(connection, kafka, check, room))

    async def change_size(
        self,
        kafka: KafkaRequest,
        size_id: str,
        check: RegionCheck,
        *,
        room: ClusterRoom | None,
        retention: str = "",
    ) -> InsertResult:
        changes: KafkaChanges = {"size_id": size_id, "resizing_to_units": _get_units(check, size_id)}
        if retention:
            changes["max_data_retention_size"] = retention
        return await self._transactions.write(
            lambda connection: self._change_size(connection, kafka, changes, check, room)
        )

    async def get_kafka(self, row_id: str) -> KafkaRequest | None:
        def find(connection: Connection) -> KafkaRequest | None:
            row = connection.execute(select(KAFKAS).where(LIVE_KAFKA, KAFKAS.c.id == row_id)).first()
            return None if row is None else self._codec.decode_kafka(row)

        return await self._transactions.read(find)

    async def search_kafkas(
        self, visible: KafkaFilter, search: Search | None, page: Page
    ) -> tuple[int, tuple[KafkaRequest, ...]]:
        condition: ColumnElement[bool] = LIVE_KAFKA
        if visible.organisation_id:
            condition &= KAFKAS.c.organisation_id == visible.organisation_id
        elif visible.owner:
            condition &= KAFKAS.c.owner == visible.owner
        if search is not None:
            condition &= compile_search(search)
        wanted = apply_page(select(KAFKAS).where(condition), page)

        def find(connection: Connection) -> tuple[int, tuple[KafkaRequest, ...]]:
            total = connection.execute(select(func.count()).select_from(KAFKAS).where(condition)).scalar_one()
            rows = [] if wanted is None else connection.execute(wanted).all()
            return total, self._codec.decode_kafkas(rows)

        return await self._transactions.read(find)

    async def list_kafkas(
        self, statuses: Collection[KafkaStatus], *, cluster_id: str | None = None
    ) -> tuple[KafkaRequest, ...]:
        condition = LIVE_KAFKA & KAFKAS.c.status.in_(sorted(statuses))
        return await self._list_kafkas(
            condition if cluster_id is None else condition & (KAFKAS.c.cluster_id == cluster_id)
        )

    async def list_expired(self, at: datetime) -> tuple[KafkaRequest, ...]:
        is_over = (KAFKAS.c.expires_at <= at) & (KAFKAS.c.expires_at <= self._transactions.build_now())
        return await self._list_kafkas(LIVE_KAFKA & is_over & KAFKAS.c.status.not_in(sorted(ENDING)))

    async def change_kafka(
        self, row_id: str, changes: KafkaChanges, *, statuses: Collection[KafkaStatus], placement_id: str | None = None
    ) -> KafkaRequest | None:
        if changes.get("cluster_id"):
            raise InvalidInput("is set by place_kafka only", path="cluster_id")
        condition = (KAFKAS.c.id == row_id) & KAFKAS.c.status.in_(sorted(statuses))
        if placement_id is not None:
            condition &= KAFKAS.c.placement_id == placement_id

        def change(connection: Connection) -> KafkaRequest | None:
            leaves = "cluster_id" in changes or changes.get("status") is KafkaStatus.DELETING
            left = self._lock_place(connection, row_id) if leaves else None
            changed = self._update_kafka(connection, row_id, condition, changes)
            self._record_emptiness(connection, left)
            return changed

        return await self._transactions.write(change)

    async def place_kafka(
        self,
        row_id: str,
        cluster: Cluster,
        changes: KafkaChanges,
        *,
        statuses: Collection[KafkaStatus],
        room: ClusterRoom | None = None,
    ) -> KafkaRequest | None:
        def place(connection: Connection) -> KafkaRequest | None:
            if not self._lock_ready_cluster(connection, cluster.cluster_id):
                return None
            if room is not None and not self._fits(connection, row_id, cluster.cluster_id, room):
                return None
            condition = (KAFKAS.c.id == row_id) & (KAFKAS.c.cluster_id == "") & KAFKAS.c.status.in_(sorted(statuses))
            values = {**changes, "cluster_id": cluster.cluster_id}
            placed = self._update_kafka(connection, row_id, condition, values)
            if placed is not None:
                _end_emptiness(connection, cluster.cluster_id)
            return placed

        return await self._transactions.write(place)

    async def remove_kafka(self, row_id: str, *, statuses: Collection[KafkaStatus]) -> bool:
        condition = (KAFKAS.c.id == row_id) & KAFKAS.c.status.in_(sorted(statuses))

        def remove(connection: Connection) -> bool:
            left = self._lock_place(connection, row_id)
            changes = {"deleted_at": self._clock.now()}
            is_removed = self._update_kafka(connection, row_id, condition, changes) is not None
            self._record_emptiness(connection, left)
            return is_removed

        return await self._transactions.write(remove)

    async def count_statuses(self) -> dict[KafkaStatus, int]:
        def count(connection: Connection) -> dict[KafkaStatus, int]:
            statement = select(KAFKAS.c.status, func.count()).where(LIVE_KAFKA).group_by(KAFKAS.c.status)
            return {KafkaStatus(status): number for status, number in connection.execute(statement)}

        return await self._transactions.read(count)

    async def count_kafkas(self, policy: FleetPolicy) -> tuple[KafkaCount, ...]:
        return await self._transactions.read(lambda connection: count_kafkas(connection, policy))

    async def _list_kafkas(self, condition: ColumnElement[bool]) -> tuple[KafkaRequest, ...]:
        statement = select(KAFKAS).where(condition).order_by(KAFKAS.c.created_at, KAFKAS.c.id)
        return await self._transactions.read(
            lambda connection: self._codec.decode_kafkas(connection.execute(statement).all())
        )

    def _insert_kafka(
        self, connection: Connection, kafka: KafkaRequest, check: RegionCheck | None, room: ClusterRoom | None
    ) -> InsertResult:
        if check is not None:
            self._transactions.lock_text(connection, f"region {kafka.locator}")
            if check.owner_limit is not None:
                self._transactions.lock_text(connection, f"owner {kafka.owner}")
            if check.organisation_limit is not None:
                self._transactions.lock_text(connection, f"organisation {kafka.organisation_id or kafka.owner}")
        refused = _find_refusal(connection, kafka, check)
        if refused is not None:
            return refused
        if kafka.cluster_id and not self._lock_ready_cluster(connection, kafka.cluster_id):
            return InsertResult.OVERTAKEN
        if room is not None and not _has_room(
            connection, kafka.cluster_id, room, _get_room_units(room, kafka.instance_type, kafka.size_id)
        ):
            return InsertResult.CLUSTER_FULL
        values = self._codec.encode_kafka(kafka)
        statement = self._transactions.build_insert(KAFKAS).values(values).on_conflict_do_nothing()
        if connection.execute(statement.returning(KAFKAS.c.id)).first() is None:
            if connection.execute(select(KAFKAS.c.id).where(KAFKAS.c.id == kafka.id)).first():
                raise InvalidInput("is taken", path="id")
            return InsertResult.NAME_TAKEN
        if kafka.cluster_id:
            _end_emptiness(connection, kafka.cluster_id)
        return InsertResult.DONE

    def _change_size(
        self,
        connection: Connection,
        kafka: KafkaRequest,
        changes: KafkaChanges,
        check: RegionCheck,
        room: ClusterRoom | None,
    ) -> InsertResult:
        self._transactions.lock_text(connection, f"region {kafka.locator}")
        self._lock_place(connection, kafka.id)
        is_unchanged = (
            (KAFKAS.c.id == kafka.id)
            & (KAFKAS.c.status == KafkaStatus.READY)
            & (KAFKAS.c.size_id == kafka.size_id)
            & (KAFKAS.c.cluster_id == kafka.cluster_id)
        )
        if connection.execute(select(KAFKAS.c.id).where(LIVE_KAFKA, is_unchanged)).first() is None:
            return InsertResult.OVERTAKEN
        more = _get_units(check, changes["size_id"]) - _get_units(check, kafka.size_id)
        if more > 0:
            if check.limit is not None and _sum_region(connection, kafka, check) + more > check.limit:
                return InsertResult.LIMIT_REACHED
            if room is not None and not _has_room(connection, kafka.cluster_id, room, more):
                return InsertResult.CLUSTER_FULL
        changed = self._update_kafka(connection, kafka.id, is_unchanged, changes)
        return InsertResult.OVERTAKEN if changed is None else InsertResult.DONE

    def _update_kafka(
        self, connection: Connection, row_id: str, condition: ColumnElement[bool], changes: Mapping[str, Any]
    ) -> KafkaRequest | None:
        values = self._codec.encode_changes(KAFKAS, row_id, changes)
        values["updated_at"] = self._clock.now()
        statement = update(KAFKAS).where(LIVE_KAFKA, condition).values(values).returning(KAFKAS)
        row = connection.execute(statement).first()
        return None if row is None else self._codec.decode_kafka(row)

    def _lock_ready_cluster(self, connection: Connection, cluster_id: str) -> bool:
        """Locks a cluster that a Kafka comes to. False: it is not `ready`."""
        is_ready = (CLUSTERS.c.cluster_id == cluster_id) & (CLUSTERS.c.status == ClusterStatus.READY)
        return bool(cluster_id) and self.lock_cluster(connection, is_ready) is not None

    def _fits(self, connection: Connection, row_id: str, cluster_id: str, room: ClusterRoom) -> bool:
        """Whether a cluster, whose row is locked, has room for a Kafka that waits for a place."""
        statement = select(KAFKAS.c.instance_type, KAFKAS.c.size_id).where(LIVE_KAFKA, KAFKAS.c.id == row_id)
        row = connection.execute(statement).first()
        return row is not None and _has_room(connection, cluster_id, room, _get_room_units(room, *row))

    def _lock_place(self, connection: Connection, row_id: str) -> str | None:
        """Locks the cluster that a Kafka is on. None: it is on none."""
        statement = select(KAFKAS.c.cluster_id).where(LIVE_KAFKA, KAFKAS.c.id == row_id)
        cluster_id: str | None = connection.execute(statement).scalar_one_or_none()
        if not cluster_id or self.lock_cluster(connection, CLUSTERS.c.cluster_id == cluster_id) is None:
            return None
        return cluster_id

    def _record_emptiness(self, connection: Connection, cluster_id: str | None) -> None:
        """The cluster that a Kafka left: empty since now, if that was the last one."""
        if cluster_id and not has_consumers(connection, cluster_id):
            is_new = (CLUSTERS.c.cluster_id == cluster_id) & CLUSTERS.c.empty_since.is_(None)
            connection.execute(update(CLUSTERS).where(LIVE_CLUSTER, is_new).values(empty_since=self._clock.now()))


def _end_emptiness(connection: Connection, cluster_id: str) -> None:
    connection.execute(
        update(CLUSTERS).where(LIVE_CLUSTER, CLUSTERS.c.cluster_id == cluster_id).values(empty_since=None)
    )


def _find_refusal(connection: Connection, kafka: KafkaRequest, check: RegionCheck | None) -> InsertResult | None:
    """The first rule that the new Kafka breaks."""
    same_name = select(KAFKAS.c.id).where(_is_in_same_organisation(kafka), KAFKAS.c.name == kafka.name)
    if connection.execute(same_name).first() is not None:
        return InsertResult.NAME_TAKEN
    if check is None:
        return None
    if check.limit is not None:
        units = _sum_region(connection, kafka, check) + _get_units(check, kafka.size_id)
        if units > check.limit:
            return InsertResult.LIMIT_REACHED
    if check.owner_limit is not None:
        owned = (KAFKAS.c.owner == kafka.owner) & (KAFKAS.c.instance_type == kafka.instance_type)
        count = connection.execute(select(func.count()).select_from(KAFKAS).where(LIVE_KAFKA, owned)).scalar_one()
        if count >= check.owner_limit:
            return InsertResult.OWNER_LIMIT_REACHED
    if check.organisation_limit is not None:
        same_type = KAFKAS.c.instance_type == kafka.instance_type
        units = _sum_units(connection, _is_in_same_organisation(kafka) & same_type, check) + _get_units(
            check, kafka.size_id
        )
        if units > check.organisation_limit:
            return InsertResult.ORGANISATION_LIMIT_REACHED
    return None


def _is_in_same_organisation(kafka: KafkaRequest) -> ColumnElement[bool]:
    """Live Kafkas of the same organisation, or of the same owner without one."""
    if kafka.organisation_id:
        return LIVE_KAFKA & (KAFKAS.c.organisation_id == kafka.organisation_id)
    return LIVE_KAFKA & (KAFKAS.c.organisation_id == "") & (KAFKAS.c.owner == kafka.owner)


def _get_units(check: RegionCheck, size_id: str) -> int:
    return check.sizes.get(size_id, check.unknown_size_units)


def _sum_region(connection: Connection, kafka: KafkaRequest, check: RegionCheck) -> int:
    """The units of all live Kafkas of the locator, those on enterprise clusters left out (docs/design/fleet.md 3.2)."""
    enterprise = select(CLUSTERS.c.cluster_id).where(
        LIVE_CLUSTER, CLUSTERS.c.cluster_type == ClusterType.ENTERPRISE, CLUSTERS.c.cluster_id != ""
    )
    counted = LIVE_KAFKA & _is_of_locator(kafka.locator) & KAFKAS.c.cluster_id.not_in(enterprise)
    return _sum_units(connection, counted, check)


def _is_of_locator(locator: Locator) -> ColumnElement[bool]:
    return (
        (KAFKAS.c.cloud_provider == locator.cloud_provider)
        & (KAFKAS.c.region == locator.region)
        & (KAFKAS.c.instance_type == locator.instance_type)
    )


def _has_room(connection: Connection, cluster_id: str, room: ClusterRoom, more: int) -> bool:
    """Whether a cluster, whose row is locked, can hold so many more units."""
    shares = is_consuming(cluster_id)
    if room.locator is not None:
        shares &= _is_of_locator(room.locator)
    statement = select(KAFKAS.c.instance_type, KAFKAS.c.size_id, func.count()).where(shares)
    rows = connection.execute(statement.group_by(KAFKAS.c.instance_type, KAFKAS.c.size_id))
    used = sum(_get_room_units(room, name, size_id) * int(count) for name, size_id, count in rows)
    return bool(used + more <= room.most_units)


def _get_room_units(room: ClusterRoom, instance_type: str, size_id: str) -> int:
    unknown = room.unknown_size_units.get(instance_type, 1)
    return room.units.get(instance_type, {}).get(size_id, unknown)


def _sum_units(connection: Connection, condition: ColumnElement[bool], check: RegionCheck) -> int:
    statement = select(KAFKAS.c.size_id, func.count()).where(condition).group_by(KAFKAS.c.size_id)
    return sum(_get_units(check, size_id) * count for size_id, count in connection.execute(statement))


def count_kafkas(connection: Connection, policy: FleetPolicy) -> tuple[KafkaCount, ...]:
    """Counted by the database from one index. Only where the size of a Kafka is not configured its row is read."""
    columns = [*_GROUP, KAFKAS.c.status]
    statement = select(*columns, func.count()).where(LIVE_KAFKA).group_by(*columns).order_by(*columns)
    groups: dict[_GroupKey, dict[KafkaStatus, int]] = {}
    for *key, status, number in connection.execute(statement):
        groups.setdefault(_GroupKey(*key), {})[KafkaStatus(status)] = int(number)
    examples = _find_examples(connection, [key for key in groups if policy.find_size(key.type, key.size) is None])
    return tuple(
        KafkaCount(
            locator=Locator(key.provider, key.region, key.type),
            cluster_id=key.cluster,
            size_id=key.size,
            consuming=sum(number for status, number in numbers.items() if status is not KafkaStatus.DELETING),
            deleting=numbers.get(KafkaStatus.DELETING, 0),
            accepted=numbers.get(KafkaStatus.ACCEPTED, 0),
            example_id=examples.get(key, ""),
        )
        for key, numbers in groups.items()
    )


class _GroupKey(NamedTuple):
    """Kafkas that are counted together."""

    provider: str
    region: str
    type: str
    cluster: str
    size: str


_GROUP: Final = [KAFKAS.c[name] for name in ("cloud_provider", "region", "instance_type", "cluster_id", "size_id")]


def _find_examples(connection: Connection, groups: Collection[_GroupKey]) -> dict[_GroupKey, str]:
    """The first id of each group."""
    if not groups:
        return {}
    sizes = sorted({(key.type, key.size) for key in groups})
    has_unknown_size = tuple_(KAFKAS.c.instance_type, KAFKAS.c.size_id).in_(sizes)
    statement = select(*_GROUP, func.min(KAFKAS.c.id)).where(LIVE_KAFKA, has_unknown_size).group_by(*_GROUP)
    return {_GroupKey(*key): row_id for *key, row_id in connection.execute(statement)}
