"""Export and import of all rows, on every database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.errors import UnusableDatabase
from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus
from plimsoll.fleet.store.database import open_database
from plimsoll.runtime.clocks import RealClock
from tests.fleet.store.databases import CHECK, at, build_cluster, build_kafka, build_ready

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.fleet.store.database import FleetDatabase
    from tests.fleet.store.databases import DatabaseUnderTest

CLUSTERS = (
    build_ready("a", client_id="agent", client_secret="s3cret"),
    build_ready("b", status=ClusterStatus.DEPROVISIONING, delete_requested_at=at(1)),
    build_cluster("c"),
    build_cluster("d"),
)
KAFKAS = (
    build_kafka("1", cluster_id="cid-b", canary_service_account_client_secret="s3cret"),
    build_kafka("2", cluster_id="cid-a", status=KafkaStatus.DELETING, expires_at=at(5)),
    build_kafka("3"),
)


def test_what_is_imported_is_exported_without_secrets(database: DatabaseUnderTest):
    async def story(opened: FleetDatabase) -> None:
        await opened.transfer.import_rows(CLUSTERS, KAFKAS)
        clusters, kafkas = await opened.transfer.export_rows()
        assert clusters == (structs.replace(CLUSTERS[0], client_secret=""), *CLUSTERS[1:])
        assert kafkas == (structs.replace(KAFKAS[0], canary_service_account_client_secret=""), *KAFKAS[1:])
        assert await opened.store.list_clusters() == CLUSTERS

    database.play(story)


def test_creations_that_were_imported_count(database: DatabaseUnderTest):
    async def story(opened: FleetDatabase) -> None:
        await opened.transfer.import_rows(CLUSTERS, ())
        assert not await opened.store.insert_cluster(build_cluster("e"), max_parallel=2)
        assert await opened.store.insert_cluster(build_cluster("e"), max_parallel=3)

    database.play(story)


def test_removed_rows_are_not_exported(database: DatabaseUnderTest):
    async def story(opened: FleetDatabase) -> None:
        removed = build_ready("a", status=ClusterStatus.CLEANUP, deleted_at=at(1))
        await opened.transfer.import_rows([removed], [build_kafka(deleted_at=at(1))])
        assert await opened.transfer.export_rows() == ((), ())
        with pytest.raises(InvalidInput, match="--merge"):
            await opened.transfer.import_rows([build_ready("b")], ())

    database.play(story)


def test_a_database_with_rows_is_merged_with_only_on_request(database: DatabaseUnderTest):
    async def story(opened: FleetDatabase) -> None:
        await opened.store.insert_kafka(build_kafka("0"), CHECK)
        with pytest.raises(InvalidInput, match="--merge"):
            await opened.transfer.import_rows(CLUSTERS, KAFKAS)
        assert await opened.store.list_clusters() == ()
        await opened.transfer.import_rows(CLUSTERS, KAFKAS, merge=True)
        clusters, kafkas = await opened.transfer.export_rows()
        assert (len(clusters), len(kafkas)) == (4, 4)

    database.play(story)


@pytest.mark.parametrize(
    ("taken", "path"),
    [
        (build_ready("a", cluster_id="other"), "clusters/a"),
        (build_ready("x", cluster_id="cid-b"), "clusters/b"),
        (build_kafka("3", name="other"), "kafkas/3"),
        (build_kafka("x", name="name-2"), "kafkas/2"),
    ],
)
def test_what_is_taken_stops_the_whole_import(database: DatabaseUnderTest, taken: Any, path: str):
    is_cluster = path.startswith("clusters")

    async def story(opened: FleetDatabase) -> None:
        await opened.transfer.import_rows([taken] if is_cluster else [], [] if is_cluster else [taken])
        before = await opened.transfer.export_rows()
        with pytest.raises(InvalidInput) as raised:
            await opened.transfer.import_rows(CLUSTERS, KAFKAS, merge=True)
        assert raised.value.path == path
        assert await opened.transfer.export_rows() == before

    database.play(story)


def test_a_reader_needs_no_key_and_changes_no_schema(lasting: DatabaseUnderTest):
    with lasting.open() as opened:
        lasting.run(opened.transfer.import_rows(CLUSTERS, KAFKAS))
    reader = open_database(lasting.url, clock=RealClock(), reads_only=True)
    clusters, _ = lasting.run(reader.transfer.export_rows())
    assert clusters[0].client_secret == ""
    reader.close()


def test_a_reader_refuses_an_older_schema(lasting: DatabaseUnderTest):
    opened = open_database(lasting.url, clock=RealClock())
    opened.transactions.run_writing(lambda connection: connection.exec_driver_sql("DROP TABLE journal"))
    opened.transactions.run_writing(
        lambda connection: connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    )
    opened.close()
    with pytest.raises(UnusableDatabase, match=r"0001.*migrate"):
        open_database(lasting.url, clock=RealClock(), reads_only=True)


def test_a_reader_makes_no_file(tmp_path: Path):
    with pytest.raises(UnusableDatabase, match="no such file"):
        open_database(f"sqlite:///{tmp_path}/none.sqlite3", clock=RealClock(), reads_only=True)
    assert list(tmp_path.iterdir()) == []
