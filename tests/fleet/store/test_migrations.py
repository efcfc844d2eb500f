"""The schema by versions, on every database."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import insert, inspect, text

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.errors import UnusableDatabase
from plimsoll.fleet.model.statuses import KafkaStatus
from plimsoll.fleet.store.database import open_database
from plimsoll.fleet.store.dialects import build_dialect
from plimsoll.fleet.store.migrations.runner import list_revisions, migrate
from plimsoll.fleet.store.rows import RowCodec
from plimsoll.fleet.store.schema import CLUSTERS, INDEXES, KAFKAS, METADATA
from plimsoll.fleet.store.transactions import InlineRunner, Transactions
from plimsoll.fleet.store.urls import parse_url
from plimsoll.runtime.clocks import RealClock
from tests.fleet.fleet_rows import make_policy
from tests.fleet.store.databases import CHECK, KEYS, build_kafka, build_ready

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Table

    from plimsoll.fleet.store.database import FleetDatabase
    from tests.fleet.store.databases import DatabaseUnderTest


@pytest.fixture
def empty(request: pytest.FixtureRequest) -> Iterator[Transactions]:
    """The database of the test, without any schema."""
    name = "lasting" if "lasting" in request.fixturenames else "database"
    address = parse_url(request.getfixturevalue(name).url)
    dialect = build_dialect(address, RealClock())
    transactions = Transactions(dialect.build_engine(), dialect, InlineRunner(), address)
    yield transactions
    transactions.close()


def execute(transactions: Transactions, statement: str) -> None:
    transactions.run_writing(lambda connection: connection.execute(text(statement)))


def read_revision(transactions: Transactions) -> str | None:
    return transactions.run_reading(lambda connection: MigrationContext.configure(connection).get_current_revision())


def test_the_migrations_make_the_tables_of_the_schema(database: DatabaseUnderTest, empty: Transactions):
    migrate(empty, parse_url(database.url))

    def compare(connection: Connection):
        differences = compare_metadata(MigrationContext.configure(connection), METADATA)
        found = {index["name"]: index for name in METADATA.tables for index in inspect(connection).get_indexes(name)}
        return differences, found

    differences, found = empty.run_reading(compare)
    # SQLite has no type for times: they are text there, which Alembic reports as a difference.
    kinds = {
        part[0] for difference in differences for part in (difference if isinstance(difference, list) else [difference])
    }
    assert kinds <= (set() if database.is_postgresql else {"modify_type"})
    assert set(found) == {index.name for index in INDEXES}
    for index in INDEXES:
        assert bool(found[index.name]["unique"]) == index.unique
        assert found[index.name]["column_names"] == [column.name for column in index.columns]


@pytest.mark.parametrize("revision", list_revisions())
def test_every_earlier_version_is_migrated_with_its_rows(
    lasting: DatabaseUnderTest, empty: Transactions, revision: str
):
    migrate(empty, parse_url(lasting.url), revision)
    assert read_revision(empty) == revision
    execute(empty, "INSERT INTO leases (worker, holder, expires_at) VALUES ('w', 'a', '2026-01-01T00:00:00+00:00')")
    cluster = build_ready("old", client_id="agent", client_secret="a secret")
    kafka = build_kafka("old", cluster_id="cid-old", status=KafkaStatus.READY, bytes_stored=2**40)
    codec = RowCodec(KEYS)
    insert_into_old_table(empty, CLUSTERS, codec.encode_cluster(cluster))
    insert_into_old_table(empty, KAFKAS, codec.encode_kafka(kafka))

    async def story(opened: FleetDatabase) -> None:
        assert read_revision(opened.transactions) == list_revisions()[-1]
        assert await opened.store.list_clusters() == (cluster,)
        assert await opened.store.get_kafka("old") == kafka
        assert await opened.store.insert_cluster(build_ready())
        await opened.store.insert_kafka(build_kafka(), CHECK)
        assert len(await opened.store.list_kafkas(tuple(KafkaStatus))) == 2
        assert [count.consuming for count in await opened.store.count_kafkas(make_policy())] == [1, 1]
        assert await opened.leases.acquire_lease("w", "b", duration_s=60) is not None

    lasting.clock.time = lasting.clock.time.replace(year=2027)
    lasting.play(story)


def insert_into_old_table(transactions: Transactions, table: Table, values: dict[str, Any]) -> None:
    """A row in the columns that the table has at its revision."""

    def insert_row(connection: Connection) -> None:
        columns = {column["name"] for column in inspect(connection).get_columns(table.name)}
        connection.execute(insert(table).values({name: value for name, value in values.items() if name in columns}))

    transactions.run_writing(insert_row)


def test_there_is_more_than_one_version():
    assert list_revisions() == ["0001", "0002", "0003", "0004"]


def test_a_migrated_database_is_opened_again(lasting: DatabaseUnderTest):
    with lasting.open() as opened:
        lasting.run(opened.store.insert_cluster(build_ready()))
    with lasting.open() as opened:
        assert lasting.run(opened.store.list_clusters()) == (build_ready(),)


def test_a_newer_schema_is_refused_with_what_to_do(lasting: DatabaseUnderTest):
    with lasting.open() as opened:
        execute(opened.transactions, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(UnusableDatabase, match=r"9999.*0004.*use the newer Plimsoll") as raised:
        open_database(lasting.url, clock=RealClock())
    assert isinstance(raised.value, InvalidInput)


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE clusters (x text)", "CREATE TABLE alembic_version (version_num varchar(32) NOT NULL)"]
)
def test_a_database_of_another_program_is_refused(database: DatabaseUnderTest, empty: Transactions, statement: str):
    execute(empty, statement)
    if "alembic" in statement:
        execute(empty, "INSERT INTO alembic_version VALUES ('0000a')")
    with pytest.raises(UnusableDatabase, match="another program"):
        migrate(empty, parse_url(database.url))


def test_a_failed_migration_leaves_nothing(database: DatabaseUnderTest, empty: Transactions):
    execute(empty, "CREATE TABLE settings (x text)")
    with pytest.raises(Exception, match="settings"):
        migrate(empty, parse_url(database.url))
    tables = empty.run_reading(lambda connection: inspect(connection).get_table_names())
    assert "clusters" not in tables


def test_many_that_open_at_once_migrate_once(lasting: DatabaseUnderTest):
    failed: list[BaseException] = []

    def open_and_close() -> None:
        try:
            open_database(lasting.url, clock=RealClock()).close()
        except BaseException as error:  # noqa: BLE001 - a thread has no other way to report
            failed.append(error)

    threads = [threading.Thread(target=open_and_close) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with lasting.open() as opened:
        assert read_revision(opened.transactions) == list_revisions()[-1]
