"""The evaluating workers: rows that they register, mark and leave."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from plimsoll.core.plans import Ref
from plimsoll.fleet.model.policy import RemovalPolicy
from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus, ScalingType
from plimsoll.fleet.model.workers import Worker
from plimsoll.journal.entries import Query
from tests.fleet.fleet_rows import NOW, make_cluster, make_kafka, make_policy, offer
from tests.fleet.workers.worlds import FleetWorld, play


def test_a_registered_cluster_is_found_by_its_id_and_by_its_capacity():
    async def story(world: FleetWorld) -> None:
        instance = world.start(Worker.DYNAMIC_SCALE_UP)
        await instance.settle()
        (cluster,) = await world.list_clusters()
        assert cluster.status is ClusterStatus.ACCEPTED
        (entry,) = await instance.journal.list_entries(Query(ref=Ref(kind="cluster", name=cluster.id)))
        (action,) = entry.plan.actions
        assert (action.verb, str(action.target)) == ("register", "capacity/aws.us-east-1.standard")
        assert entry.outcomes[0].result.value == "Done"

    play(story)


def test_other_scaling_types_read_and_register_nothing():
    async def story(world: FleetWorld) -> None:
        (result,) = await world.start(Worker.DYNAMIC_SCALE_UP).run_pass()
        assert result.plan is not None
        assert result.plan.not_done == ()
        assert await world.list_clusters() == ()

    play(story, make_policy(scaling_type=ScalingType.MANUAL))


def test_one_bad_row_is_an_error_of_its_own_locator():
    async def story(world: FleetWorld) -> None:
        bad = make_kafka("bad", size_id="x9", cluster_id="cid-a", status=KafkaStatus.READY)
        await world.insert(make_cluster("a"), bad)
        (result,) = await world.start(Worker.DYNAMIC_SCALE_UP).run_pass()
        assert len(result.errors) == 1
        assert "kafka/bad" in result.errors[0]
        assert [cluster.supported_instance_type for cluster in await world.list_clusters()] == ["standard", "developer"]

    play(story, make_policy(offer("standard"), offer("developer")))


def test_an_empty_cluster_is_marked_after_its_time():
    async def story(world: FleetWorld) -> None:
        await world.insert(
            make_cluster("a", 10), make_cluster("b", 10), make_kafka("k", cluster_id="cid-b", status=KafkaStatus.READY)
        )
        instance = world.start(Worker.DYNAMIC_SCALE_DOWN)
        await instance.run_pass()
        assert (await world.get_cluster("a")).empty_since == NOW
        assert (await world.get_cluster("b")).empty_since is None
        await world.clock.sleep(599)
        await instance.run_pass()
        assert (await world.get_cluster("a")).status is ClusterStatus.READY
        await world.clock.sleep(1)
        await instance.run_pass()
        assert (await world.get_cluster("a")).status is ClusterStatus.DEPROVISIONING

    play(story, make_policy(offer(slack=1), removal=RemovalPolicy(minimum_empty_s=600.0)))


def test_a_retired_cluster_is_marked_when_it_is_empty():
    async def story(world: FleetWorld) -> None:
        retired: dict[str, Any] = {"schedulable": False, "retire_requested_at": NOW}
        await world.insert(
            make_cluster("a", **retired),
            make_cluster("b", **retired),
            make_kafka("k", cluster_id="cid-b", status=KafkaStatus.READY),
        )
        await world.start(Worker.DYNAMIC_SCALE_DOWN).run_pass()
        assert (await world.get_cluster("a")).status is ClusterStatus.DEPROVISIONING
        assert (await world.get_cluster("b")).status is ClusterStatus.READY

    play(story, make_policy(scaling_type=ScalingType.MANUAL))


def test_gauges_of_rows():
    async def story(world: FleetWorld) -> None:
        await world.insert(
            make_cluster("a", 10, external_id="ext-a", last_report_at=NOW - timedelta(seconds=7)),
            make_kafka("k1", cluster_id="cid-a", status=KafkaStatus.READY, size_id="x2"),
            make_kafka("k2"),
        )
        instance = world.start(Worker.GENERAL_KAFKA)
        await instance.run_pass()
        page = instance.metrics.expose().decode().splitlines()
        place = 'cloud_provider="aws",cluster_id="cid-a",instance_type="standard",region="us-east-1"'
        for line in (
            'kas_fleet_manager_cluster_status_count{status="ready"} 1.0',
            'kas_fleet_manager_kafka_per_cluster_count{cluster_id="cid-a",external_id="ext-a"} 2.0',
            f"kas_fleet_manager_cluster_status_capacity_max{{{place}}} 5.0",
            f"kas_fleet_manager_cluster_status_capacity_used{{{place}}} 2.0",
            f"kas_fleet_manager_cluster_status_capacity_available{{{place}}} 3.0",
            'kas_fleet_manager_kafka_requests_status_count{status="accepted"} 1.0',
            'kas_fleet_manager_kafka_requests_current_status_info{cluster_id="",id="k2",status="accepted"} 1.0',
            'plimsoll_fleet_agent_last_report_seconds{cluster_id="cid-a"} 7.0',
        ):
            assert any(_sort_labels(found) == line for found in page), line

    play(story, make_policy(offer(limit=5)))


def _sort_labels(line: str) -> str:
    name, brace, rest = line.partition("{")
    labels, _, value = rest.partition("}")
    return f"{name}{{{','.join(sorted(labels.split(',')))}}}{value}" if brace else line
