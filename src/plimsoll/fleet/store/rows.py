"""Rows of tables as `Cluster` and `KafkaRequest`, and back. Secrets are encrypted here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import structlog
from msgspec import structs
from sqlalchemy import select, update

from plimsoll.fleet.errors import UnreadableRow
from plimsoll.fleet.model.clusters import Cluster, DynamicCapacity, StrimziVersion
from plimsoll.fleet.model.kafkas import KafkaRequest, Route
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, KafkaStatus, ProviderType
from plimsoll.fleet.store.columns import UtcTime, check_text
from plimsoll.fleet.store.schema import CLUSTER_SECRETS, CLUSTERS, KAFKA_SECRETS, KAFKAS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sqlalchemy import Connection, Row, Table

    from plimsoll.fleet.store.secrets import SecretKeys

R = TypeVar("R", Cluster, KafkaRequest)
_SECRET_COLUMNS: Final = (
    *((CLUSTERS, name) for name in CLUSTER_SECRETS),
    *((KAFKAS, name) for name in KAFKA_SECRETS),
)
_LOG: Final = structlog.get_logger(__name__)
_INTERNAL: Final = "creation_slot"
_OBJECT: Final[Any] = dict[str, Any]
_DECODERS: Final[dict[str, Callable[[str], Any]]] = {
    "provider_spec": msgspec.json.Decoder(_OBJECT).decode,
    "cluster_spec": msgspec.json.Decoder(_OBJECT).decode,
    "available_strimzi_versions": msgspec.json.Decoder(tuple[StrimziVersion, ...]).decode,
    "dynamic_capacity_info": msgspec.json.Decoder(dict[str, DynamicCapacity]).decode,
    "routes": msgspec.json.Decoder(tuple[Route, ...]).decode,
    "cluster_type": ClusterType,
    "provider_type": ProviderType,
}
_CLUSTER_DECODERS: Final = {
    name: decoder for name, decoder in {**_DECODERS, "status": ClusterStatus}.items() if name in CLUSTERS.c
}
_KAFKA_DECODERS: Final = {
    name: decoder for name, decoder in {**_DECODERS, "status": KafkaStatus}.items() if name in KAFKAS.c
}


class RowCodec:
    """Encodes and decodes rows with the keys of one process."""

    def __init__(self, keys: SecretKeys, *, reads_secrets: bool = True) -> None:
        self.keys = keys
        self._reads_secrets = reads_secrets

    def without_secrets(self) -> RowCodec:
        """One that leaves secrets of rows empty."""
        return RowCodec(self.keys, reads_secrets=False)

    def encode_cluster(self, cluster: Cluster) -> dict[str, Any]:
        return self.encode_changes(CLUSTERS, cluster.id, structs.asdict(cluster))

    def encode_kafka(self, kafka: KafkaRequest) -> dict[str, Any]:
        return self.encode_changes(KAFKAS, kafka.id, structs.asdict(kafka))

    def encode_changes(self, table: Table, row_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The values of columns, with secrets encrypted for this row."""
        values = dict(changes)
        for name in _list_secrets(table):
            if name in values:
                secret = check_text(values[name], name)
                values[name] = self.keys.encrypt(secret, build_context(table, row_id, name))
        return values

    def decode_cluster(self, row: Row[Any]) -> Cluster:
        return self._decode(row, CLUSTERS, Cluster, _CLUSTER_DECODERS)

    def decode_kafka(self, row: Row[Any]) -> KafkaRequest:
        return self._decode(row, KAFKAS, KafkaRequest, _KAFKA_DECODERS)

    def decode_clusters(self, rows: Iterable[Row[Any]]) -> tuple[Cluster, ...]:
        return tuple(_iterate_readable(rows, self.decode_cluster))

    def decode_kafkas(self, rows: Iterable[Row[Any]]) -> tuple[KafkaRequest, ...]:
        return tuple(_iterate_readable(rows, self.decode_kafka))

    def check_keys(self, connection: Connection) -> None:
        """Refuses keys that do not decrypt what is stored, before a worker meets such a row."""
        for table, name in _SECRET_COLUMNS:
            column = table.c[name]
            statement = select(table.c.id, column)
            is_newest = column.startswith(f"{self.keys.newest}:", autoescape=True)
            older = connection.execute(statement.where(column != "", ~is_newest)).all()
            # Another key of the same id decrypts none of the rest, so that one of them is enough.
            newest = connection.execute(statement.where(column != "", is_newest).limit(1)).all()
            for row_id, stored in (*older, *newest):
                self.keys.decrypt(stored, build_context(table, row_id, name))

    def rotate_secrets(self, connection: Connection) -> int:
        """Encrypts what older keys encrypted with the newest one. Returns the number of secrets."""
        changed = 0
        for table, name in _SECRET_COLUMNS:
            column = table.c[name]
            statement = select(table.c.id, column).where(
                column != "", ~column.startswith(f"{self.keys.newest}:", autoescape=True)
            )
            for row_id, stored in connection.execute(statement).all():
                context = build_context(table, row_id, name)
                value = self.keys.encrypt(self.keys.decrypt(stored, context), context)
                is_same = (table.c.id == row_id) & (column == stored)
                changed += connection.execute(update(table).where(is_same).values({name: value})).rowcount
        return changed

    def _decode(self, row: Row[Any], table: Table, kind: type[R], decoders: Mapping[str, Callable[[str], Any]]) -> R:
        values = dict(row._mapping)  # noqa: SLF001 - the documented name of this attribute
        values.pop(_INTERNAL, None)
        row_id = str(values["id"])
        for name, decoder in decoders.items():
            try:
                values[name] = decoder(values[name])
            except (ValueError, msgspec.DecodeError, RecursionError) as error:
                raise UnreadableRow(f"{table.name}/{row_id}: {name} is unreadable: {error}") from error
        for name in _TIMES[table.name]:
            if isinstance(values[name], str):
                raise UnreadableRow(f"{table.name}/{row_id}: {name} is not a time: {values[name][:50]!r}")
        for name in _list_secrets(table):
            context = build_context(table, row_id, name)
            values[name] = self.keys.decrypt(values[name], context) if self._reads_secrets else ""
        return kind(**values)


_TIMES: Final = {
    table.name: tuple(column.name for column in table.c if isinstance(column.type, UtcTime))
    for table in (CLUSTERS, KAFKAS)
}


def _list_secrets(table: Table) -> tuple[str, ...]:
    return CLUSTER_SECRETS if table is CLUSTERS else KAFKA_SECRETS


def build_context(table: Table, row_id: str, column: str) -> str:
    """What a secret is bound to."""
    return f"{table.name}/{row_id}: {column}"


def _iterate_readable(rows: Iterable[Row[Any]], decode: Callable[[Row[Any]], R]) -> Iterable[R]:
    """All rows but those that are unreadable, which are logged: one odd row must not stop the others."""
    for row in rows:
        try:
            yield decode(row)
        except UnreadableRow as error:
            _LOG.warning("unreadable row", problem=str(error))
