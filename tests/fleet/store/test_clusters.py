"""Cluster rows, on every database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from plimsoll.fleet.model.clusters import DynamicCapacity, StrimziVersion, VersionItem
from plimsoll.fleet.model.statuses import TERRAFORMING, ClusterStatus, ClusterType, KafkaStatus, ProviderType
from plimsoll.fleet.ports import ClusterReport, UnitReport
from tests.fleet.store.databases import CHECK, NOON, at, build_cluster, build_kafka, build_ready

if TYPE_CHECKING:
    from plimsoll.fleet.ports import FleetStore
    from tests.fleet.store.databases import DatabaseUnderTest

VERSION = StrimziVersion(
    version="strimzi-cluster-operator.v0.23.0-0",
    ready=True,
    kafkaVersions=(VersionItem(version="2.7.0"),),
    kafkaIBPVersions=(VersionItem(version="2.7"),),
)


def test_a_cluster_comes_back_as_it_was_written(database: DatabaseUnderTest):
    written = build_ready(
        external_id="ä €",
        provider_type=ProviderType.CLUSTER_API,
        provider_spec={"b": [1, None, {"x": "\0"}], "a": 1.5},
        client_id="agent",
        client_secret="s3cret",
        available_strimzi_versions=(VERSION,),
        cluster_type=ClusterType.ENTERPRISE,
        schedulable=False,
        delete_requested_at=at(0.000001),
        retire_requested_at=at(1),
        empty_since=at(2),
        last_report_at=at(3),
        status_details="quota",
    )

    async def story(store: FleetStore) -> None:
        assert await store.insert_cluster(written)
        assert await store.get_cluster("a") == written
        assert await store.find_cluster("cid-a") == written
        assert await store.find_client("agent") == written
        assert await store.list_clusters() == (written,)

    database.play_store(story)


def test_times_have_their_zone(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready())
        found = await store.get_cluster("a")
        assert found is not None
        assert found.created_at.tzinfo is not None
        assert found.created_at.utcoffset() == NOON.utcoffset()
        assert found.created_at == NOON

    database.play_store(story)


def test_an_empty_id_finds_nothing(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_cluster())
        assert await store.find_cluster("") is None
        assert await store.find_client("") is None
        assert await store.store_report("", ClusterReport(is_ready=True, at=NOON)) is None

    database.play_store(story)


def test_clusters_come_by_creation_time_then_id_by_code_point(database: DatabaseUnderTest):
    ids = ["b", "a", "B", "ä", "_", "\U0001f600", "\uffff"]

    async def story(store: FleetStore) -> list[str]:
        await store.insert_cluster(build_ready("late", created_at=at(1)))
        for row_id in ids:
            await store.insert_cluster(build_ready(row_id))
        return [cluster.id for cluster in await store.list_clusters()]

    assert database.play_store(story) == [*sorted(ids), "late"]


def test_clusters_are_listed_by_status(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready("a"))
        await store.insert_cluster(build_ready("b", status=ClusterStatus.FAILED, created_at=at(10)))
        assert [cluster.id for cluster in await store.list_clusters([ClusterStatus.FAILED])] == ["b"]
        assert await store.list_clusters([]) == ()
        assert [cluster.id for cluster in await store.list_failed_since(at(10))] == ["b"]
        assert await store.list_failed_since(at(11)) == ()

    database.play_store(story)


def test_one_cluster_per_locator_is_created_at_a_time(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        assert await store.insert_cluster(build_cluster("a"))
        assert not await store.insert_cluster(build_cluster("b"))
        assert await store.insert_cluster(build_cluster("c", supported_instance_type="developer"))
        assert await store.insert_cluster(build_cluster("d", region="eu-west-1"))
        assert await store.insert_cluster(build_cluster("e", cluster_type=ClusterType.ENTERPRISE))
        for status in sorted(TERRAFORMING):
            changed = await store.change_cluster("a", {"status": status}, statuses=list(ClusterStatus))
            assert changed is not None
            assert not await store.insert_cluster(build_cluster("b"))
        await store.change_cluster("a", {"status": ClusterStatus.FAILED}, statuses=list(ClusterStatus))
        assert await store.insert_cluster(build_cluster("b"))

    database.play_store(story)


def test_parallel_creations_are_counted(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        for row_id in ("a", "b", "c"):
            assert await store.insert_cluster(build_cluster(row_id), max_parallel=3)
        assert not await store.insert_cluster(build_cluster("d"), max_parallel=3)
        await store.change_cluster("b", {"status": ClusterStatus.READY}, statuses=list(ClusterStatus))
        assert await store.insert_cluster(build_cluster("d"), max_parallel=3)

    database.play_store(story)


def test_ready_clusters_whose_agents_report_problems_are_no_creations(database: DatabaseUnderTest):
    """Both are terraforming again; a unique index over the status alone would refuse the second report."""

    async def story(store: FleetStore) -> None:
        for row_id in ("a", "b"):
            waiting = build_cluster(row_id, status=ClusterStatus.WAITING, cluster_id=f"cid-{row_id}")
            assert await store.insert_cluster(waiting)
            await store.store_report(f"cid-{row_id}", ClusterReport(is_ready=True, at=NOON))
        for row_id in ("a", "b"):
            reported = await store.store_report(f"cid-{row_id}", ClusterReport(is_ready=False, at=at(60)))
            assert reported is not None
            assert reported.status is ClusterStatus.WAITING
        assert not await store.insert_cluster(build_cluster("c"))

    database.play_store(story)


def test_existing_clusters_are_registered_whatever_else_is_terraforming(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        for row_id in ("a", "b"):
            listed = build_cluster(row_id, status=ClusterStatus.PROVISIONING, cluster_id=f"cid-{row_id}")
            assert await store.insert_cluster(listed)
        assert await store.insert_cluster(build_cluster("c", supported_instance_type="standard,developer"))
        assert await store.insert_cluster(build_cluster("d", supported_instance_type="standard,developer"))

    database.play_store(story)


def test_ids_are_unique_among_live_clusters(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        assert await store.insert_cluster(build_ready("a", status=ClusterStatus.CLEANUP))
        assert not await store.insert_cluster(build_ready("a"))
        assert not await store.insert_cluster(build_ready("b", cluster_id="cid-a"))
        assert await store.remove_cluster("a", statuses=[ClusterStatus.CLEANUP])
        assert await store.insert_cluster(build_ready("b", cluster_id="cid-a"))

    database.play_store(story)


def test_a_change_names_the_statuses_it_may_come_from(database: DatabaseUnderTest):
    database.clock.time = at(5)

    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready())
        refused = await store.change_cluster("a", {"cluster_dns": "x"}, statuses=[ClusterStatus.WAITING])
        assert refused is None
        changes = await store.change_cluster("a", {"cluster_dns": "x"}, statuses=[ClusterStatus.READY])
        assert changes == structs.replace(build_ready(), cluster_dns="x", updated_at=at(5))
        assert await store.change_cluster("nothing", {"cluster_dns": "x"}, statuses=list(ClusterStatus)) is None

    database.play_store(story)


def test_a_report_updates_known_types_and_never_max_nodes(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        capacity = {"standard": DynamicCapacity(max_nodes=18), "developer": DynamicCapacity(max_nodes=3, max_units=7)}
        await store.insert_cluster(
            build_ready(status=ClusterStatus.WAITING, dynamic_capacity_info=capacity, ready_at=None)
        )
        units = {
            "standard": UnitReport(max_units=10, remaining_units=4),
            "other": UnitReport(max_units=5, remaining_units=5),
        }
        found = await store.store_report(
            "cid-a", ClusterReport(is_ready=True, at=at(1), units=units, versions=(VERSION,))
        )
        assert found is not None
        assert found.status is ClusterStatus.READY
        assert found.dynamic_capacity_info == {
            "standard": DynamicCapacity(max_nodes=18, max_units=10, remaining_units=4),
            "developer": DynamicCapacity(max_nodes=3, max_units=7),
        }
        assert found.available_strimzi_versions == (VERSION,)
        assert (found.ready_at, found.last_report_at, found.empty_since) == (at(1), at(1), at(1))
        again = await store.store_report("cid-a", ClusterReport(is_ready=True, at=at(2)))
        assert again is not None
        assert (again.available_strimzi_versions, again.ready_at, again.last_report_at) == ((VERSION,), at(1), at(2))

    database.play_store(story)


def test_a_report_that_is_not_ready_stores_no_capacity(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready())
        report = ClusterReport(
            is_ready=False,
            at=at(1),
            units={"standard": UnitReport(max_units=1, remaining_units=1)},
            versions=(VERSION,),
        )
        found = await store.store_report("cid-a", report)
        assert found is not None
        assert found.status is ClusterStatus.WAITING
        assert found.dynamic_capacity_info == build_ready().dynamic_capacity_info
        assert found.available_strimzi_versions == ()
        assert found.last_report_at == at(1)

    database.play_store(story)


@pytest.mark.parametrize("status", sorted(set(ClusterStatus) - {ClusterStatus.READY, ClusterStatus.WAITING}))
def test_a_report_changes_nothing_in_other_statuses(database: DatabaseUnderTest, status: ClusterStatus):
    async def story(store: FleetStore) -> None:
        written = build_ready(status=status)
        await store.insert_cluster(written)
        assert await store.store_report("cid-a", ClusterReport(is_ready=True, at=at(1))) is None
        assert await store.get_cluster("a") == written

    database.play_store(story)


def test_a_mark_is_undone_only_before_the_delete_call(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready(status=ClusterStatus.DEPROVISIONING))
        restored = await store.restore_cluster("a")
        assert restored is not None
        assert restored.status is ClusterStatus.READY
        assert await store.restore_cluster("a") is None
        assert await store.request_deletion("a") is None
        await store.change_cluster("a", {"status": ClusterStatus.DEPROVISIONING}, statuses=[ClusterStatus.READY])
        first = await store.request_deletion("a")
        database.clock.time = at(60)
        second = await store.request_deletion("a")
        assert first is not None
        assert second is not None
        assert first.delete_requested_at == second.delete_requested_at == NOON
        assert await store.restore_cluster("a") is None

    database.play_store(story)


def test_no_cluster_is_deleted_under_a_kafka(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready())
        await store.insert_kafka(build_kafka(cluster_id="cid-a"), CHECK)
        await store.change_cluster("a", {"status": ClusterStatus.DEPROVISIONING}, statuses=[ClusterStatus.READY])
        assert await store.request_deletion("a") is None
        assert not await store.remove_cluster("a", statuses=list(ClusterStatus))
        await store.change_kafka("k", {"status": KafkaStatus.DELETING}, statuses=list(KafkaStatus))
        assert await store.request_deletion("a") is not None
        assert await store.remove_cluster("a", statuses=list(ClusterStatus))

    database.play_store(story)


def test_removed_clusters_are_hidden(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready("a", status=ClusterStatus.CLEANUP))
        await store.insert_cluster(
            build_ready("b", status=ClusterStatus.CLEANUP, cluster_type=ClusterType.ENTERPRISE, client_id="x")
        )
        assert not await store.remove_cluster("a", statuses=[ClusterStatus.READY])
        assert await store.remove_cluster("a", statuses=[ClusterStatus.CLEANUP])
        assert not await store.remove_cluster("a", statuses=[ClusterStatus.CLEANUP])
        assert await store.remove_cluster("b", statuses=[ClusterStatus.CLEANUP])
        assert await store.list_clusters() == ()
        assert (await store.get_cluster("a"), await store.find_cluster("cid-b")) == (None, None)
        assert await store.find_client("x") is None
        assert await store.change_cluster("a", {"cluster_dns": "x"}, statuses=list(ClusterStatus)) is None
        assert not await store.insert_cluster(build_ready("a", cluster_id="other"))
        assert await store.insert_cluster(build_ready("b"))

    database.play_store(story)


def test_more_nodes_keep_the_units_that_were_reported_since_the_row_was_read(database: DatabaseUnderTest):
    async def story(store: FleetStore) -> None:
        await store.insert_cluster(build_ready(dynamic_capacity_info={"standard": DynamicCapacity(max_nodes=18)}))
        units = {"standard": UnitReport(max_units=6, remaining_units=4)}
        assert await store.store_report("cid-a", ClusterReport(is_ready=True, at=at(1), units=units)) is not None
        changed = await store.change_cluster("a", {}, statuses={ClusterStatus.READY}, max_nodes={"standard": 30})
        assert changed is not None
        expected = DynamicCapacity(max_nodes=30, max_units=6, remaining_units=4)
        assert changed.dynamic_capacity_info == {"standard": expected}

    database.play_store(story)
