"""Pods become brokers when they are ready and leave when they go, through the API and in virtual time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.local.kafka.topic_seeds import TopicSeed, parse_topic_seeds
from tests.local.kafka.kafka_cluster import KAFKAS, KEY, NODES, PODS, LocalKafkaCluster
from tests.objects.crds.kafka_definitions import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPICS = json.dumps(
    [
        {"name": "orders", "partitions": 6, "replicationFactor": 3, "partitionSize": "1Mi"},
        {"name": "rates", "partitions": 1, "bytesInPerSecond": 1000, "internal": True},
    ]
)


@pytest.fixture
def world() -> Iterator[LocalKafkaCluster]:
    with LocalKafkaCluster() as world:
        yield world


# ---- brokers


def test_a_ready_pod_is_a_broker_in_the_rack_of_its_node(world: LocalKafkaCluster):
    world.make_kafka()
    world.make_pods(0, 1, 2)
    assert world.alive == {0: "a", 1: "b", 2: "c"}


def test_a_pod_that_does_not_run_yet_is_none(world: LocalKafkaCluster):
    world.make_kafka()
    world.make_pods(0)
    world.make_pods(1, node="n-nowhere")
    assert world.alive == {0: "a"}
    world.add_node("n-nowhere", zone="d")
    world.run.advance_by(600)
    assert world.alive == {0: "a", 1: "d"}


def test_a_pod_that_goes_is_fenced_and_its_replicas_are_offline(world: LocalKafkaCluster):
    world.make_kafka(topics=TOPICS)
    world.make_pods(0, 1, 2)
    world.delete(f"{PODS}/c-p-1")
    assert not world.kafka.catch_up().brokers[1].is_running
    world.run.advance_by(30)
    state = world.kafka.catch_up()
    assert state.brokers[1].is_fenced
    assert state.brokers[1].is_registered, "a registration is removed by request only"
    partition = state.topics["orders"].partitions[0]
    assert not state.can_host(partition, 1)
    assert 1 not in partition.isr


def test_a_pod_that_comes_back_has_its_logs_and_catches_up(world: LocalKafkaCluster):
    world.make_kafka(topics=TOPICS)
    world.make_pods(0, 1, 2)
    world.delete(f"{PODS}/c-p-1")
    world.run.advance_by(60)
    world.make_pods(1)
    world.run.advance_by(60)
    assert world.alive == {0: "a", 1: "b", 2: "c"}
    assert all(
        set(partition.isr) == {0, 1, 2} for partition in world.kafka.catch_up().topics["orders"].partitions.values()
    )


def test_an_id_that_is_used_again_after_its_removal_is_a_new_empty_broker(world: LocalKafkaCluster):
    world.make_kafka(topics=TOPICS)
    world.make_pods(0, 1, 2)
    world.make_pods(3)
    world.delete(f"{PODS}/c-p-3")
    world.run.advance_by(60)
    assert world.kafka.unregister_broker(3) is None
    assert 3 not in world.alive
    world.make_pods(3, node="n-c")
    assert world.alive[3] == "c"


def test_a_node_that_fails_takes_its_broker_along(world: LocalKafkaCluster):
    """The node lifecycle controller reports the pods of a silent node as not ready."""
    world.make_kafka()
    world.make_pods(0, 1)
    world.patch(f"{NODES}/n-a", {"metadata": {"annotations": {"plimsoll.io/silent": "true"}}})
    status = {"conditions": [{"type": "Ready", "status": "False"}]}
    world.patch(f"{PODS}/c-p-0/status", {"status": status})
    world.run.advance_by(15)
    assert world.alive == {1: "b"}


@pytest.mark.parametrize(
    "labels",
    [
        {"strimzi.io/broker-role": "false"},
        {"strimzi.io/cluster": "another"},
        {"strimzi.io/cluster": ""},
    ],
)
def test_other_pods_are_no_brokers(world: LocalKafkaCluster, labels: dict[str, str]):
    world.make_kafka()
    world.make_pods(0)
    world.make_pods(1, **labels)
    assert world.alive == {0: "a"}


def test_each_kafka_has_its_own_brokers_and_a_new_one_of_the_name_begins_anew(world: LocalKafkaCluster):
    world.make_kafka(topics=TOPICS)
    world.make_kafka(name="another")
    world.make_pods(0, 1, 2)
    first, another = world.kafka, world.clusters.find(NAMESPACE, "another")
    assert another is not None
    assert not another.catch_up().brokers
    assert first.cluster_id != another.cluster_id
    assert len(first.cluster_id) == 22

    world.delete(f"{KAFKAS}/c")
    assert world.clusters.find(*KEY) is None
    world.make_kafka()
    assert world.kafka.cluster_id != first.cluster_id
    assert (world.alive, dict(world.kafka.catch_up().topics)) == ({0: "a", 1: "b", 2: "c"}, {})


def test_brokers_outlive_the_process_that_follows_their_pods(world: LocalKafkaCluster):
    world.make_kafka(topics=TOPICS)
    world.make_pods(0, 1, 2)
    world.kafka.alter_reassignments({("orders", 0): [2, 1, 0]})
    before = world.list_replicas("orders")
    world.kill()
    world.delete(f"{PODS}/c-p-2")
    world.start()
    world.run.advance_by(60)
    assert world.list_replicas("orders") == before
    assert sorted(world.alive) == [0, 1]


# ---- log directories


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ({"type": "ephemeral"}, {"data": 1 << 40}),
        ({"type": "ephemeral", "sizeLimit": "1Gi"}, {"data": 1 << 30}),
        ({"type": "persistent-claim", "size": "2Gi"}, {"data": 2 << 30}),
        (
            {
                "type": "jbod",
                "volumes": [{"id": 0, "type": "ephemeral", "sizeLimit": "1Gi"}, {"id": 7, "type": "ephemeral"}],
            },
            {"data-0": 1 << 30, "data-7": 1 << 40},
        ),
        ({"type": "persistent-claim", "size": "plenty"}, {"data": 1 << 40}),
        ({"type": "jbod", "volumes": []}, {"data": 1 << 40}),
    ],
)
def test_log_directories_are_those_of_the_pool(world: LocalKafkaCluster, storage: Any, expected: dict[str, int]):
    world.make_kafka()
    world.make_pool(1, storage=storage)
    world.make_pods(0)
    dirs = world.kafka.catch_up().brokers[0].log_dirs.values()
    assert {log_dir.path: log_dir.total_bytes for log_dir in dirs} == {
        f"/var/lib/kafka/{name}/kafka-log0": size for name, size in expected.items()
    }


# ---- topics


def test_topics_of_the_annotation_are_made_over_racks_when_all_brokers_run(world: LocalKafkaCluster):
    world.make_kafka(topics=TOPICS)
    world.make_pool(6)
    world.make_pods(0, 1, 2, 3)
    assert not world.kafka.catch_up().topics
    world.make_pods(4, 5)
    topics = world.kafka.catch_up().topics
    racks = {number: world.alive[number] for number in range(6)}
    assert all(len({racks[broker] for broker in replicas}) == 3 for replicas in world.list_replicas("orders"))
    assert {partition.leader for partition in topics["orders"].partitions.values()} == {0, 1, 2, 3, 4, 5}
    assert topics["orders"].partitions[0].end == 1 << 20
    assert topics["rates"].is_internal
    assert topics["rates"].partitions[0].bytes_in_per_s == 1000


def test_a_topic_that_was_deleted_does_not_come_back_and_new_ones_are_made(world: LocalKafkaCluster):
    world.make_kafka(topics=TOPICS)
    world.make_pods(0, 1, 2)
    world.kafka.delete_topic("orders")
    more = json.dumps([*json.loads(TOPICS), {"name": "late"}])
    world.patch(f"{KAFKAS}/c", {"metadata": {"annotations": {"simulated.plimsoll.io/topics": more}}})
    assert sorted(world.kafka.catch_up().topics) == ["late", "rates"]


def test_a_topic_with_more_replicas_than_brokers_waits_for_them(world: LocalKafkaCluster):
    world.make_kafka(topics=TOPICS)
    world.make_pods(0, 1)
    assert sorted(world.kafka.catch_up().topics) == ["rates"]
    world.make_pods(2)
    assert sorted(world.kafka.catch_up().topics) == ["orders", "rates"]


def test_topics_of_a_scenario_are_made_too():
    seeds = {KEY: (TopicSeed(name="given", partitions=2, replication_factor=2),)}
    with LocalKafkaCluster(topics=seeds) as world:
        world.make_kafka()
        world.make_pods(0, 1)
        assert world.list_replicas("given") == [(0, 1), (1, 0)]


def test_a_wrong_annotation_makes_no_topic_and_no_other_trouble(world: LocalKafkaCluster):
    world.make_kafka(topics="[{")
    world.make_pods(0, 1)
    assert (world.alive, world.kafka.catch_up().topics) == ({0: "a", 1: "b"}, {})


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{}", "here"),
        ("[", "here"),
        ("[7]", "here[0]"),
        ('[{"partitions": 3}]', "here[0].name"),
        ('[{"name": "a b"}]', "here[0].name"),
        ('[{"name": "a"}, {"name": "a"}]', "here[1].name"),
        ('[{"name": "a", "partitions": 0}]', "here[0].partitions"),
        ('[{"name": "a", "partitions": true}]', "here[0].partitions"),
        ('[{"name": "a", "partitions": 1e9}]', "here[0].partitions"),
        ('[{"name": "a", "partitions": 100000}, {"name": "b"}]', "here[1].partitions"),
        ('[{"name": "a", "replicationFactor": "3"}]', "here[0].replicationFactor"),
        ('[{"name": "a", "partitionSize": "big"}]', "here[0].partitionSize"),
        ('[{"name": "a", "partitionSize": "-1"}]', "here[0].partitionSize"),
        ('[{"name": "a", "partitionSize": "1e40"}]', "here[0].partitionSize"),
        ('[{"name": "a", "size": 1}]', "here[0].size"),
        ('[{"name": "a", "internal": 1}]', "here[0].internal"),
    ],
)
def test_a_wrong_topic_is_named_by_its_path(text: str, path: str):
    with pytest.raises(InvalidInput) as caught:
        parse_topic_seeds(text, path="here")
    assert caught.value.path == path
