"""Writers that meet: limits, names and creations hold, whoever comes first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import structs

from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus
from plimsoll.fleet.ports import InsertResult
from tests.fleet.store.databases import CHECK, build_cluster, build_kafka, build_ready, build_room

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.ports import FleetStore
    from tests.fleet.store.databases import DatabaseUnderTest

WRITERS = 8
LIMIT = 20
ANY = tuple(KafkaStatus)


def count_units(kafkas: Iterable[KafkaRequest]) -> int:
    return sum(CHECK.sizes[kafka.size_id] for kafka in kafkas)


def test_eight_writers_never_exceed_the_limit_of_a_region(database: DatabaseUnderTest):
    check = structs.replace(CHECK, limit=LIMIT)

    async def write(store: FleetStore, writer: int) -> None:
        for number in range(6):
            size_id = "x2" if (writer + number) % 2 else "x1"
            result = await store.insert_kafka(build_kafka(f"{writer}-{number}", size_id=size_id), check)
            assert result in {InsertResult.DONE, InsertResult.LIMIT_REACHED}
            kafkas = await store.list_kafkas(ANY)
            assert count_units(kafkas) <= LIMIT

    async def story(store: FleetStore) -> int:
        await asyncio.gather(*(write(store, writer) for writer in range(WRITERS)))
        return count_units(await store.list_kafkas(ANY))

    assert database.play_store(story) in {LIMIT - 1, LIMIT}


def test_sizes_that_grow_at_once_stay_within_region_and_cluster(database: DatabaseUnderTest):
    check = structs.replace(CHECK, limit=WRITERS + 5)

    async def story(store: FleetStore) -> list[InsertResult]:
        await store.insert_cluster(build_ready())
        kafkas = [build_kafka(str(n), cluster_id="cid-a", status=KafkaStatus.READY) for n in range(WRITERS)]
        for kafka in kafkas:
            await store.insert_kafka(kafka, CHECK)
        results = await asyncio.gather(
            *(store.change_size(kafka, "x2", check, room=build_room(WRITERS + 3)) for kafka in kafkas)
        )
        assert count_units(await store.list_kafkas(ANY)) == WRITERS + 3
        return results

    assert sorted(database.play_store(story)) == [InsertResult.CLUSTER_FULL] * 5 + [InsertResult.DONE] * 3


def test_kafkas_that_come_and_grow_at_once_stay_within_their_cluster(database: DatabaseUnderTest):
    """The API grows Kafkas and places them in the scaling type manual; a worker places them in auto."""
    room = build_room(WRITERS + 3)

    async def story(store: FleetStore) -> int:
        cluster = build_ready()
        await store.insert_cluster(cluster)
        kafkas = [build_kafka(str(n), cluster_id="cid-a", status=KafkaStatus.READY) for n in range(WRITERS)]
        for kafka in kafkas:
            await store.insert_kafka(kafka, CHECK)
            await store.insert_kafka(build_kafka(f"waiting-{kafka.id}"), CHECK)
        await asyncio.gather(
            *(store.change_size(kafka, "x2", CHECK, room=room) for kafka in kafkas),
            *(store.place_kafka(f"waiting-{kafka.id}", cluster, {}, statuses=ANY, room=room) for kafka in kafkas),
            *(
                store.insert_kafka(build_kafka(f"new-{kafka.id}", cluster_id="cid-a"), CHECK, room=room)
                for kafka in kafkas
            ),
        )
        return count_units(kafka for kafka in await store.list_kafkas(ANY) if kafka.cluster_id)

    assert database.play_store(story) == WRITERS + 3


def test_an_owner_in_many_regions_stays_within_its_limit(database: DatabaseUnderTest):
    check = structs.replace(CHECK, owner_limit=3, organisation_limit=100)

    async def story(store: FleetStore) -> list[InsertResult]:
        return await asyncio.gather(
            *(store.insert_kafka(build_kafka(str(n), region=f"region-{n}"), check) for n in range(WRITERS))
        )

    assert database.play_store(story).count(InsertResult.DONE) == 3


def test_an_organisation_in_many_regions_stays_within_its_limit(database: DatabaseUnderTest):
    check = structs.replace(CHECK, organisation_limit=3)

    async def story(store: FleetStore) -> list[InsertResult]:
        kafkas = [build_kafka(str(n), region=f"region-{n}", owner=f"owner-{n}") for n in range(WRITERS)]
        return await asyncio.gather(*(store.insert_kafka(kafka, check) for kafka in kafkas))

    assert database.play_store(story).count(InsertResult.DONE) == 3


def test_a_name_is_given_once(database: DatabaseUnderTest):
    """In different regions, so that only the unique index keeps them apart."""

    async def story(store: FleetStore) -> list[InsertResult]:
        return await asyncio.gather(
            *(store.insert_kafka(build_kafka(str(n), name="x", region=f"region-{n}"), CHECK) for n in range(WRITERS))
        )

    results = database.play_store(story)
    assert results.count(InsertResult.DONE) == 1
    assert results.count(InsertResult.NAME_TAKEN) == WRITERS - 1


def test_a_need_makes_one_cluster(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> list[bool]:
        return await asyncio.gather(*(store.insert_cluster(build_cluster(str(n))) for n in range(WRITERS)))

    assert database.play_store(story).count(True) == 1


def test_the_index_holds_one_creation_without_the_lock(database: DatabaseUnderTest, monkeypatch: pytest.MonkeyPatch):
    """Two processes of different versions might not share the lock; the index is there for them."""

    async def story(store: FleetStore) -> list[bool]:
        monkeypatch.setattr("plimsoll.fleet.store.clusters._find_slot", lambda *_arguments: 0)
        return await asyncio.gather(*(store.insert_cluster(build_cluster(str(n))) for n in range(WRITERS)))

    assert database.play_store(story).count(True) == 1


def test_placements_and_removals_of_many_kafkas_end_consistently(database: DatabaseUnderTest):
    """Transactions lock in one order: none of them waits for ever, and emptiness is what the rows say."""

    async def live(store: FleetStore, cluster: Cluster, number: int) -> None:
        row_id = f"{cluster.id}-{number}"
        await store.insert_kafka(build_kafka(row_id), structs.replace(CHECK, limit=100))
        assert await store.place_kafka(row_id, cluster, {}, statuses=ANY) is not None
        await store.change_kafka(row_id, {"status": KafkaStatus.READY}, statuses=ANY)
        kafka = await store.get_kafka(row_id)
        assert kafka is not None
        assert await store.change_size(kafka, "x2", CHECK, room=None) is InsertResult.DONE
        await store.change_kafka(row_id, {"status": KafkaStatus.DELETING}, statuses=ANY)
        assert await store.remove_kafka(row_id, statuses=[KafkaStatus.DELETING])

    async def story(store: FleetStore) -> None:
        clusters = [build_ready("a"), build_ready("b")]
        for cluster in clusters:
            await store.insert_cluster(cluster)
        await asyncio.gather(*(live(store, cluster, number) for cluster in clusters for number in range(WRITERS)))
        assert await store.list_kafkas(ANY) == ()
        for cluster in await store.list_clusters([ClusterStatus.READY]):
            assert cluster.empty_since is not None

    database.play_store(story)
