"""Kafka request rows, on every database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.model.clusters import Locator
from plimsoll.fleet.model.kafkas import Route
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, KafkaStatus
from plimsoll.fleet.model.units import KafkaCount
from plimsoll.fleet.ports import InsertResult
from tests.fleet.fleet_rows import make_policy
from tests.fleet.store.databases import CHECK, NOON, at, build_kafka, build_ready, build_room

if TYPE_CHECKING:
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.ports import FleetStore
    from tests.fleet.store.databases import DatabaseUnderTest

ANY = tuple(KafkaStatus)


async def get_cluster(store: FleetStore, row_id: str = "a") -> Cluster:
    found = await store.get_cluster(row_id)
    assert found is not None
    return found


def test_a_kafka_comes_back_as_it_was_written(database: DatabaseUnderTest):
    written = build_kafka(
        routes=(Route(domain="a.b", router="c"),),
        bytes_stored=2**63 - 1,
        expires_at=at(10),
        canary_service_account_client_secret="s3cret",
        failed_reason="Ä\n'\"; DROP TABLE kafka_requests; --",
        multi_az=True,
        reauthentication_enabled=False,
    )

    async def story(store: FleetStore) -> None:
        assert await store.insert_kafka(written, CHECK) is InsertResult.DONE
        assert await store.get_kafka("k") == written
        assert await store.list_kafkas([KafkaStatus.ACCEPTED]) == (written,)
        assert await store.get_kafka("other") is None

    database.play_store(story)


def test_a_name_is_taken_once_per_organisation(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        assert await store.insert_kafka(build_kafka("1", name="x"), CHECK) is InsertResult.DONE
        assert await store.insert_kafka(build_kafka("2", name="x", owner="bob"), CHECK) is InsertResult.NAME_TAKEN
        assert await store.insert_kafka(build_kafka("3", name="X"), CHECK) is InsertResult.DONE
        other = build_kafka("4", name="x", organisation_id="other")
        assert await store.insert_kafka(other, CHECK) is InsertResult.DONE
        assert await store.remove_kafka("1", statuses=ANY)
        assert await store.insert_kafka(build_kafka("2", name="x"), CHECK) is InsertResult.DONE

    database.play_store(story)


def test_without_an_organisation_a_name_is_taken_once_per_owner(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        first = build_kafka("1", name="x", organisation_id="")
        assert await store.insert_kafka(first, CHECK) is InsertResult.DONE
        again = build_kafka("2", name="x", organisation_id="")
        assert await store.insert_kafka(again, CHECK) is InsertResult.NAME_TAKEN
        assert await store.insert_kafka(structs.replace(again, owner="bob"), CHECK) is InsertResult.DONE
        assert await store.insert_kafka(build_kafka("3", name="x"), CHECK) is InsertResult.DONE

    database.play_store(story)


def test_an_id_is_used_once(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_kafka(build_kafka(), CHECK)
        await store.remove_kafka("k", statuses=ANY)
        with pytest.raises(InvalidInput, match="id"):
            await store.insert_kafka(build_kafka(name="other"), CHECK)

    database.play_store(story)


def test_the_limit_of_a_region_counts_every_live_kafka_but_enterprise_ones(database: DatabaseUnderTest):
    check = structs.replace(CHECK, limit=5)

    async def story(store: FleetStore) -> None:
        enterprise = build_ready("e", cluster_type=ClusterType.ENTERPRISE)
        await store.insert_cluster(build_ready("a"))
        await store.insert_cluster(enterprise)
        assert await store.insert_kafka(build_kafka("1", size_id="x2"), check) is InsertResult.DONE
        assert await store.insert_kafka(build_kafka("2", cluster_id="cid-a"), check) is InsertResult.DONE
        assert await store.insert_kafka(build_kafka("3", cluster_id="cid-e"), None) is InsertResult.DONE
        assert await store.insert_kafka(build_kafka("4", region="eu"), check) is InsertResult.DONE
        assert await store.insert_kafka(build_kafka("5", instance_type="developer"), check) is InsertResult.DONE
        await store.change_kafka("2", {"status": KafkaStatus.DELETING}, statuses=ANY)
        assert await store.insert_kafka(build_kafka("6", size_id="x2"), check) is InsertResult.DONE
        assert await store.insert_kafka(build_kafka("7"), check) is InsertResult.LIMIT_REACHED
        await store.remove_kafka("2", statuses=ANY)
        assert await store.insert_kafka(build_kafka("7", size_id="x2"), check) is InsertResult.LIMIT_REACHED
        assert await store.insert_kafka(build_kafka("7"), check) is InsertResult.DONE

    database.play_store(story)


def test_unknown_sizes_count_as_the_check_says(database: DatabaseUnderTest):
    check = structs.replace(CHECK, limit=3, unknown_size_units=3)

    async def story(store: FleetStore) -> None:
        assert await store.insert_kafka(build_kafka("1", size_id="x9"), check) is InsertResult.DONE
        assert await store.insert_kafka(build_kafka("2"), check) is InsertResult.LIMIT_REACHED

    database.play_store(story)


def test_a_closed_region_takes_nothing(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        check = structs.replace(CHECK, limit=0)
        assert await store.insert_kafka(build_kafka(), check) is InsertResult.LIMIT_REACHED

    database.play_store(story)


def test_an_owner_has_so_many_kafkas_of_a_type(database: DatabaseUnderTest):
    check = structs.replace(CHECK, owner_limit=1)

    async def story(store: FleetStore) -> None:
        assert await store.insert_kafka(build_kafka("1", region="eu"), check) is InsertResult.DONE
        assert await store.insert_kafka(build_kafka("2"), check) is InsertResult.OWNER_LIMIT_REACHED
        assert await store.insert_kafka(build_kafka("3", owner="bob"), check) is InsertResult.DONE
        assert await store.insert_kafka(build_kafka("4", instance_type="developer"), check) is InsertResult.DONE

    database.play_store(story)


def test_an_organisation_consumes_so_many_units_of_a_type(database: DatabaseUnderTest):
    check = structs.replace(CHECK, organisation_limit=3)

    async def story(store: FleetStore) -> None:
        assert await store.insert_kafka(build_kafka("1", size_id="x2"), check) is InsertResult.DONE
        refused = await store.insert_kafka(build_kafka("2", size_id="x2", region="eu"), check)
        assert refused is InsertResult.ORGANISATION_LIMIT_REACHED
        assert await store.insert_kafka(build_kafka("3", owner="bob"), check) is InsertResult.DONE
        other = build_kafka("4", organisation_id="other", size_id="x2")
        assert await store.insert_kafka(other, check) is InsertResult.DONE

    database.play_store(story)


def test_a_kafka_is_inserted_only_on_a_ready_cluster(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready(status=ClusterStatus.DEPROVISIONING))
        assert await store.insert_kafka(build_kafka(cluster_id="cid-a"), CHECK) is InsertResult.OVERTAKEN
        assert await store.insert_kafka(build_kafka(cluster_id="cid-none"), CHECK) is InsertResult.OVERTAKEN
        assert await store.get_kafka("k") is None

    database.play_store(story)


def test_a_kafka_is_placed_once_and_ends_the_emptiness(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready("a", empty_since=NOON))
        await store.insert_cluster(build_ready("b", empty_since=NOON))
        await store.insert_kafka(build_kafka(), CHECK)
        first, second = await get_cluster(store), await get_cluster(store, "b")
        placed = await store.place_kafka("k", first, {"status": KafkaStatus.PREPARING}, statuses=[KafkaStatus.ACCEPTED])
        assert placed is not None
        assert (placed.cluster_id, placed.status) == ("cid-a", KafkaStatus.PREPARING)
        assert await store.place_kafka("k", second, {}, statuses=ANY) is None
        assert (await get_cluster(store)).empty_since is None
        assert (await get_cluster(store, "b")).empty_since == NOON

    database.play_store(story)


def test_a_kafka_is_not_placed_on_a_cluster_that_was_marked_meanwhile(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready())
        await store.insert_kafka(build_kafka(), CHECK)
        read = await get_cluster(store)
        await store.change_cluster("a", {"status": ClusterStatus.DEPROVISIONING}, statuses=[ClusterStatus.READY])
        assert await store.place_kafka("k", read, {}, statuses=ANY) is None
        found = await store.get_kafka("k")
        assert found is not None
        assert found.cluster_id == ""

    database.play_store(story)


def test_the_last_kafka_that_leaves_begins_the_emptiness(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready())
        for name in ("1", "2", "3"):
            await store.insert_kafka(build_kafka(name, cluster_id="cid-a"), CHECK)
        database.clock.time = at(1)
        await store.change_kafka("1", {"status": KafkaStatus.DELETING}, statuses=ANY)
        await store.change_kafka("2", {"cluster_id": ""}, statuses=ANY)
        await store.change_kafka("3", {"status": KafkaStatus.FAILED}, statuses=ANY)
        assert (await get_cluster(store)).empty_since is None
        database.clock.time = at(2)
        await store.remove_kafka("3", statuses=ANY)
        assert (await get_cluster(store)).empty_since == at(2)
        database.clock.time = at(3)
        await store.remove_kafka("1", statuses=ANY)
        assert (await get_cluster(store)).empty_since == at(2)

    database.play_store(story)


def test_a_place_is_given_by_placing_only(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_kafka(build_kafka(), CHECK)
        with pytest.raises(InvalidInput, match="cluster_id"):
            await store.change_kafka("k", {"cluster_id": "cid-a"}, statuses=ANY)

    database.play_store(story)


def test_a_change_names_statuses_and_placement(database: DatabaseUnderTest):
    database.clock.time = at(5)

    async def story(store: FleetStore) -> None:
        await store.insert_kafka(build_kafka(placement_id="p1"), CHECK)
        assert await store.change_kafka("k", {"owner": "bob"}, statuses=[KafkaStatus.READY]) is None
        assert await store.change_kafka("k", {"owner": "bob"}, statuses=ANY, placement_id="p0") is None
        changed = await store.change_kafka("k", {"owner": "bob"}, statuses=ANY, placement_id="p1")
        assert changed == build_kafka(placement_id="p1", owner="bob", updated_at=at(5))

    database.play_store(story)


def test_a_cluster_takes_no_more_than_it_can_hold(database: DatabaseUnderTest):
    """Kafkas of other types, of other locators and those in `deleting` count as the room says."""
    placing = frozenset({KafkaStatus.ACCEPTED})

    async def story(store: FleetStore) -> None:
        cluster = build_ready()
        await store.insert_cluster(cluster)
        await store.insert_kafka(build_kafka("1", cluster_id="cid-a", size_id="x2"), CHECK, room=build_room(2))
        await store.insert_kafka(build_kafka("2", cluster_id="cid-a", status=KafkaStatus.DELETING), CHECK)
        await store.insert_kafka(build_kafka("3", cluster_id="cid-a", instance_type="developer"), CHECK)
        for number in (4, 5):
            await store.insert_kafka(build_kafka(str(number)), CHECK)
        full = build_kafka("6", cluster_id="cid-a")
        assert await store.insert_kafka(full, CHECK, room=build_room(3)) is InsertResult.CLUSTER_FULL
        assert await store.place_kafka("4", cluster, {}, statuses=placing, room=build_room(3)) is None
        assert await store.place_kafka("4", cluster, {}, statuses=placing, room=build_room(4)) is not None
        own = build_room(3, locator=Locator("aws", "us-east-1", "standard"))
        assert await store.place_kafka("5", cluster, {}, statuses=placing, room=own) is None
        own = build_room(4, locator=Locator("aws", "us-east-1", "standard"))
        assert await store.place_kafka("5", cluster, {}, statuses=placing, room=own) is not None

    database.play_store(story)


def test_a_size_changes_within_region_and_cluster(database: DatabaseUnderTest):
    limited = structs.replace(CHECK, limit=4)

    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready())
        kafka = build_kafka("1", cluster_id="cid-a", status=KafkaStatus.READY)
        await store.insert_kafka(kafka, CHECK)
        await store.insert_kafka(build_kafka("2", cluster_id="cid-a", size_id="x2"), CHECK)
        assert await store.change_size(kafka, "x2", limited, room=build_room(3)) is InsertResult.CLUSTER_FULL
        assert await store.change_size(kafka, "x2", limited, room=build_room(4)) is InsertResult.DONE
        assert await store.change_size(kafka, "x2", limited, room=None) is InsertResult.OVERTAKEN
        grown = structs.replace(kafka, size_id="x2")
        tight = structs.replace(CHECK, limit=1)
        assert await store.change_size(grown, "x1", tight, room=build_room(0)) is InsertResult.DONE
        assert await store.change_size(kafka, "x2", tight, room=None) is InsertResult.LIMIT_REACHED
        await store.change_kafka("1", {"status": KafkaStatus.FAILED}, statuses=ANY)
        assert await store.change_size(kafka, "x2", CHECK, room=None) is InsertResult.OVERTAKEN

    database.play_store(story)


def test_kafkas_are_listed_by_status_and_cluster_oldest_first(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready())
        await store.insert_kafka(build_kafka("1", created_at=at(2)), CHECK)
        await store.insert_kafka(build_kafka("2", created_at=at(1), cluster_id="cid-a"), CHECK)
        await store.insert_kafka(build_kafka("3", created_at=at(1)), CHECK)
        await store.insert_kafka(build_kafka("4", status=KafkaStatus.READY), CHECK)
        accepted = [KafkaStatus.ACCEPTED]
        assert [kafka.id for kafka in await store.list_kafkas(accepted)] == ["2", "3", "1"]
        assert [kafka.id for kafka in await store.list_kafkas(accepted, cluster_id="")] == ["3", "1"]
        assert [kafka.id for kafka in await store.list_kafkas(accepted, cluster_id="cid-a")] == ["2"]

    database.play_store(story)


def test_expired_kafkas_are_those_that_are_not_ending(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_kafka(build_kafka("1", expires_at=at(1)), CHECK)
        await store.insert_kafka(build_kafka("2", expires_at=at(3)), CHECK)
        await store.insert_kafka(build_kafka("3"), CHECK)
        await store.insert_kafka(build_kafka("4", expires_at=at(1), status=KafkaStatus.DEPROVISION), CHECK)
        database.clock.time = at(1)
        assert [kafka.id for kafka in await store.list_expired(at(1))] == ["1"]
        assert await store.list_expired(NOON) == ()

    database.play_store(story)


def test_a_process_whose_clock_is_ahead_expires_no_kafka_before_its_time(database: DatabaseUnderTest):
    far = datetime(2100, 1, 1, tzinfo=UTC)

    async def story(store: FleetStore) -> None:
        await store.insert_kafka(build_kafka("1", expires_at=far), CHECK)
        assert await store.list_expired(far + timedelta(days=1)) == ()

    database.play_store(story)


def test_kafkas_are_counted_by_place_and_size(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> tuple[KafkaCount, ...]:
        await store.insert_cluster(build_ready())
        for number, (place, size, status) in enumerate(
            [
                ("", "x1", KafkaStatus.ACCEPTED),
                ("", "x1", KafkaStatus.PROVISIONING),
                ("cid-a", "x1", KafkaStatus.READY),
                ("cid-a", "x1", KafkaStatus.DEPROVISION),
                ("cid-a", "x1", KafkaStatus.DELETING),
                ("cid-a", "x2", KafkaStatus.SUSPENDED),
                ("cid-a", "x2", KafkaStatus.READY),
                ("cid-a", "x9", KafkaStatus.READY),
                ("cid-a", "x9", KafkaStatus.READY),
            ]
        ):
            await store.insert_kafka(build_kafka(str(number), cluster_id=place, size_id=size, status=status), CHECK)
        await store.remove_kafka("6", statuses=ANY)
        return await store.count_kafkas(make_policy())

    locator = Locator("aws", "us-east-1", "standard")
    assert database.play_store(story) == (
        KafkaCount(locator=locator, cluster_id="", size_id="x1", consuming=2, accepted=1),
        KafkaCount(locator=locator, cluster_id="cid-a", size_id="x1", consuming=2, deleting=1),
        KafkaCount(locator=locator, cluster_id="cid-a", size_id="x2", consuming=1),
        KafkaCount(locator=locator, cluster_id="cid-a", size_id="x9", consuming=2, example_id="7"),
    )


def test_removed_kafkas_are_hidden(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_kafka(build_kafka(status=KafkaStatus.DELETING), CHECK)
        assert not await store.remove_kafka("k", statuses=[KafkaStatus.READY])
        assert await store.remove_kafka("k", statuses=[KafkaStatus.DELETING])
        assert not await store.remove_kafka("k", statuses=[KafkaStatus.DELETING])
        assert await store.get_kafka("k") is None
        assert await store.list_kafkas(ANY) == ()
        assert await store.change_kafka("k", {"owner": "x"}, statuses=ANY) is None

    database.play_store(story)
