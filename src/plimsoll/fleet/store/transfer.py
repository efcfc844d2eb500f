"""All rows of a fleet out of a database, and into one: each in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import exists, select

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.store.clusters import MOST_PARALLEL_CREATIONS
from plimsoll.fleet.store.schema import CLUSTERS, KAFKAS, LIVE_CLUSTER, LIVE_KAFKA

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.store.kafkas import KafkaRows
    from plimsoll.fleet.store.rows import RowCodec
    from plimsoll.fleet.store.transactions import Transactions

    Rows = tuple[tuple[Cluster, ...], tuple[KafkaRequest, ...]]


class Transfer:
    """Export and import of one database."""

    def __init__(self, transactions: Transactions, store: KafkaRows, codec: RowCodec) -> None:
        self._transactions = transactions
        self._store = store
        self._codec = codec

    async def export_rows(self, *, with_secrets: bool = False) -> Rows:
        """All live rows of one moment, by creation time, then id."""
        codec = self._codec if with_secrets else self._codec.without_secrets()

        def export(connection: Connection) -> Rows:
            clusters = select(CLUSTERS).where(LIVE_CLUSTER).order_by(CLUSTERS.c.created_at, CLUSTERS.c.id)
            kafkas = select(KAFKAS).where(LIVE_KAFKA).order_by(KAFKAS.c.created_at, KAFKAS.c.id)
            return (
                codec.decode_clusters(connection.execute(clusters).all()),
                codec.decode_kafkas(connection.execute(kafkas).all()),
            )

        return await self._transactions.read(export)

    async def import_rows(
        self, clusters: Iterable[Cluster], kafkas: Iterable[KafkaRequest], *, merge: bool = False
    ) -> None:
        """Inserts all rows, or none. Without `merge` the database must have none.

        A row whose id, name or place in the database is taken is an InvalidInput that names it.
        """

        def insert(connection: Connection) -> None:
            self._transactions.dialect.lock_text(connection, "import")
            if not merge and _has_rows(connection):
                raise InvalidInput("the database has rows already; merge the import with them by --merge")
            for cluster in clusters:
                if not self._store.insert_row(connection, cluster, max_parallel=MOST_PARALLEL_CREATIONS):
                    raise InvalidInput("its id or cluster_id is taken", path=f"clusters/{cluster.id}")
            for kafka in kafkas:
                values = self._codec.encode_kafka(kafka)
                statement = self._transactions.dialect.build_insert(KAFKAS).values(values).on_conflict_do_nothing()
                if connection.execute(statement.returning(KAFKAS.c.id)).first() is None:
                    raise InvalidInput("its id or name is taken", path=f"kafkas/{kafka.id}")

        await self._transactions.write(insert)


def _has_rows(connection: Connection) -> bool:
    return any(connection.execute(select(exists(select(table.c.id)))).scalar_one() for table in (CLUSTERS, KAFKAS))
