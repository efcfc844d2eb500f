"""The adapter against real brokers: each method of the port, with its errors per item."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest

from plimsoll.kafka.brokers.ports import ConfigEntry, ConfigOperation, ConfigResource, KafkaError, ReplicaLogDir
from plimsoll.kafka.model.description import TopicPartition
from tests.e2e.kafka.admins import (
    FOLLOWER_RATE,
    LEADER_RATE,
    LEADER_REPLICAS,
    change_broker,
    change_topic,
    connect_admin,
    hold_back,
    read_until,
)
from tests.e2e.kafka.real_kafka import CONTROLLER, FIRST_BROKERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.e2e.kafka.real_kafka import RealKafka

pytestmark = pytest.mark.asyncio
Item = TypeVar("Item")
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
LONGEST_NAME = "a.topic_with-dots." + "x" * (249 - 18)


async def test_nodes_have_racks_addresses_and_the_leader_of_the_metadata_quorum(kafka: RealKafka) -> None:
    async with connect_admin(kafka) as admin:
        nodes = await admin.describe_nodes()
    assert nodes.cluster_id == kafka.cluster_id
    assert nodes.controller == CONTROLLER
    assert [(broker.id, broker.rack, broker.is_fenced) for broker in nodes.brokers] == [
        (0, "rack-0", False),
        (1, "rack-1", False),
        (2, "rack-2", False),
    ]
    assert ",".join(f"{broker.host}:{broker.port}" for broker in nodes.brokers) == kafka.bootstrap


async def test_topics_have_replicas_leaders_isr_and_min_isr(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [2, 0], 1: [0, 1]}, {"min.insync.replicas": "2"})
    kafka.create_topic("b", {0: [1]})
    async with connect_admin(kafka) as admin:
        described = await admin.describe_topics(with_min_isr=True)
        plain = await admin.describe_topics(["a"])
        named = await admin.describe_topics(["no-such-topic", "b"])
        none = await admin.describe_topics([])
    topics = {topic.name: topic for topic in described if not topic.is_internal}
    assert sorted(topics) == ["a", "b"]
    assert [(entry.partition, entry.replicas, entry.leader) for entry in topics["a"].partitions] == [
        (0, (2, 0), 2),
        (1, (0, 1), 0),
    ]
    assert [set(entry.isr) for entry in topics["a"].partitions] == [{0, 2}, {0, 1}]
    assert (topics["a"].min_isr, topics["b"].min_isr, plain[0].min_isr) == (2, 1, 1)
    assert [(topic.name, topic.problem) for topic in named] == [
        ("b", ""),
        ("no-such-topic", "UNKNOWN_TOPIC_OR_PARTITION"),
    ]
    assert none == ()


async def test_names_with_dots_and_249_characters_can_be_described_and_moved(kafka: RealKafka) -> None:
    assert len(LONGEST_NAME) == 249
    kafka.create_topic(LONGEST_NAME, {0: [0, 1]})
    moved = TopicPartition(LONGEST_NAME, 0)
    async with connect_admin(kafka) as admin:
        assert await admin.alter_reassignments({moved: (2, 1)}) == {moved: None}
        append = change_topic(LONGEST_NAME, LEADER_REPLICAS, ConfigOperation.APPEND, "0:2")
        assert await admin.alter_configs([append]) == {append.resource: None}
    kafka.wait_until(lambda: kafka.list_replicas(LONGEST_NAME) == {0: [2, 1]}, "the partition has moved")


async def test_log_directories_have_volumes_and_replicas_with_sizes(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1], 1: [1, 2]})
    kafka.produce("a", total_bytes=1_000_000)
    async with connect_admin(kafka) as admin:
        logs = await admin.describe_log_dirs(1)
    assert [log_dir.path for log_dir in logs.log_dirs] == sorted(kafka.find_log_dirs(1))
    assert all(0 < log_dir.usable_bytes < log_dir.total_bytes for log_dir in logs.log_dirs)
    assert all(log_dir.is_online and not log_dir.is_cordoned for log_dir in logs.log_dirs)
    sizes = {key: replica.size_bytes for key, replica in logs.replicas if key.topic == "a"}
    assert sizes[A1] == 0
    assert 1_000_000 <= sizes[A0] <= 1_100_000
    assert {replica.broker for _, replica in logs.replicas} == {1}


async def test_a_move_is_listed_while_it_runs_and_ends(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1]})
    kafka.produce("a", total_bytes=2_000_000)
    async with connect_admin(kafka) as admin:
        await hold_back(admin, "a", *FIRST_BROKERS)
        assert await admin.alter_reassignments({A0: (2, 1)}) == {A0: None}
        under_way = (await admin.list_reassignments())[A0]
        assert (under_way.adding, under_way.removing, under_way.target) == ((2,), (0,), (2, 1))
        rates = [
            change_broker(broker, key, ConfigOperation.DELETE)
            for broker in FIRST_BROKERS
            for key in (LEADER_RATE, FOLLOWER_RATE)
        ]
        assert set((await admin.alter_configs(rates)).values()) == {None}
        kafka.wait_until(lambda: kafka.list_replicas("a") == {0: [2, 1]}, "the partition has moved")
        assert await admin.list_reassignments() == {}


async def test_cancelling_rolls_back_and_cancelling_again_is_an_error_of_that_partition(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1], 1: [0, 1]})
    kafka.produce("a", total_bytes=2_000_000)
    async with connect_admin(kafka) as admin:
        await hold_back(admin, "a", *FIRST_BROKERS)
        await admin.alter_reassignments({A0: (2, 1)})
        first = await admin.alter_reassignments({A0: None, A1: None})
        again = await admin.alter_reassignments({A0: None})
        assert await admin.list_reassignments() == {}
    assert first[A0] is None
    assert _get_codes(first) == {A1: "NO_REASSIGNMENT_IN_PROGRESS"}
    assert again[A0] == first[A1]
    # Kafka takes the added replicas away again; the order of the others is that of the reassignment, not the old one.
    kafka.wait_until(lambda: kafka.list_replicas("a")[0] == [1, 0], "the replicas are the old ones")


async def test_impossible_moves_fail_alone_with_kafkas_own_names(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1], 1: [0, 1]})
    unknown, absent = TopicPartition("no-such-topic", 0), TopicPartition("a", 7)
    async with connect_admin(kafka) as admin:
        answer = await admin.alter_reassignments({A0: (1, 0), A1: (1, 1), unknown: (0,), absent: (0,)})
        empty = await admin.alter_reassignments({A1: ()})
        stranger = await admin.alter_reassignments({A1: (0, 9)})
        assert await admin.alter_reassignments({}) == {}
    assert answer[A0] is None
    assert _get_codes(answer) == {
        A1: "INVALID_REPLICA_ASSIGNMENT",
        unknown: "UNKNOWN_TOPIC_OR_PARTITION",
        absent: "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert "more than once" in str(answer[A1])
    assert _get_codes(empty) == _get_codes(stranger) == {A1: "INVALID_REPLICA_ASSIGNMENT"}
    assert "broker 9" in str(stranger[A1])


async def test_preferred_leaders_are_elected(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1], 1: [1, 0]})
    absent = TopicPartition("a", 7)
    async with connect_admin(kafka) as admin:
        assert await admin.alter_reassignments({A0: (1, 0)}) == {A0: None}
        kafka.wait_until(lambda: kafka.list_replicas("a")[0] == [1, 0], "the replicas have their new order")
        answer = await admin.elect_preferred_leaders([A0, A1, absent])
        [topic] = await admin.describe_topics(["a"])
        while topic.partitions[0].leader == 0:  # The broker that answers has not heard of the election yet.
            [topic] = await admin.describe_topics(["a"])
    assert answer[A0] is None
    assert _get_codes(answer) == {A1: "ELECTION_NOT_NEEDED", absent: "UNKNOWN_TOPIC_OR_PARTITION"}
    assert [partition.leader for partition in topic.partitions] == [1, 1]


async def test_throttled_replicas_are_appended_and_subtracted(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1], 1: [0, 1]})
    topic = ConfigResource("topic", "a")

    async def read() -> tuple[str, bool]:
        found = (await admin.describe_configs([topic], [LEADER_REPLICAS]))[topic]
        assert not isinstance(found, KafkaError)
        return found[LEADER_REPLICAS].value, found[LEADER_REPLICAS].is_dynamic

    async with connect_admin(kafka) as admin:
        await read_until(read, ("", False))
        entries = [change_topic("a", LEADER_REPLICAS, ConfigOperation.APPEND, entry) for entry in ("0:0", "1:0", "0:0")]
        assert await admin.alter_configs(entries) == {topic: None}
        await read_until(read, ("0:0,1:0", True))
        await admin.alter_configs([change_topic("a", LEADER_REPLICAS, ConfigOperation.SUBTRACT, "0:0")])
        await read_until(read, ("1:0", True))
        await admin.alter_configs([change_topic("a", LEADER_REPLICAS, ConfigOperation.SUBTRACT, "1:0,5:5")])
        await read_until(read, ("", True))
        await admin.alter_configs([change_topic("a", LEADER_REPLICAS, ConfigOperation.DELETE)])
        await read_until(read, ("", False))


async def test_a_throttle_list_of_all_replicas_refuses_entries_and_stays(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1]}, {LEADER_REPLICAS: "*"})
    topic = ConfigResource("topic", "a")
    async with connect_admin(kafka) as admin:
        answer = await admin.alter_configs([change_topic("a", LEADER_REPLICAS, ConfigOperation.APPEND, "0:0")])
        await admin.alter_configs([change_topic("a", LEADER_REPLICAS, ConfigOperation.SUBTRACT, "0:0")])
        found = (await admin.describe_configs([topic], [LEADER_REPLICAS]))[topic]
    assert _get_codes(answer) == {topic: "INVALID_CONFIG"}
    assert not isinstance(found, KafkaError)
    assert found[LEADER_REPLICAS].value == "*"


async def test_rates_go_to_their_broker_and_errors_stay_with_their_resource(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1]})
    changes = [
        change_broker(0, LEADER_RATE, ConfigOperation.SET, "1000000"),
        change_broker(1, LEADER_RATE, ConfigOperation.SET, "not a number"),
        change_broker(9, LEADER_RATE, ConfigOperation.SET, "1"),
        change_topic("no-such-topic", LEADER_REPLICAS, ConfigOperation.APPEND, "0:0"),
    ]
    async with connect_admin(kafka) as admin:
        answer = await admin.alter_configs(changes)
        first, second, third, fourth = (change.resource for change in changes)

        async def read_first() -> object:
            return (await admin.describe_configs([first], [LEADER_RATE]))[first]

        expected: object = {LEADER_RATE: ConfigEntry(value="1000000", is_dynamic=True)}
        await read_until(read_first, expected)
        found = await admin.describe_configs([change.resource for change in changes], [LEADER_RATE])
        assert await admin.alter_configs([]) == {}
    assert answer[first] is None
    assert _get_codes(answer) == {
        second: "INVALID_REQUEST",
        third: "BROKER_NOT_AVAILABLE",
        fourth: "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert found[first] == {LEADER_RATE: ConfigEntry(value="1000000", is_dynamic=True)}
    assert found[second] == {}
    assert _get_codes(found) == {third: "BROKER_NOT_AVAILABLE", fourth: "UNKNOWN_TOPIC_OR_PARTITION"}


async def test_a_cordoned_broker_says_so_and_still_takes_explicit_moves(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1]})
    async with connect_admin(kafka) as admin:
        cordon = change_broker(2, "cordoned.log.dirs", ConfigOperation.SET, "*")
        assert await admin.alter_configs([cordon]) == {cordon.resource: None}

        async def read(broker: int = 2) -> list[bool]:
            return [log_dir.is_cordoned for log_dir in (await admin.describe_log_dirs(broker)).log_dirs]

        await read_until(read, [True, True])
        assert await read(0) == [False, False]
        assert await admin.alter_reassignments({A0: (0, 2)}) == {A0: None}
    kafka.wait_until(lambda: kafka.list_replicas("a") == {0: [0, 2]}, "the partition has moved")


async def test_replicas_move_between_log_directories(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1]})
    kafka.produce("a", total_bytes=1_000_000)
    async with connect_admin(kafka) as admin:

        async def find_path() -> set[str]:
            return {replica.log_dir for key, replica in (await admin.describe_log_dirs(0)).replicas if key == A0}

        [before] = await find_path()
        [other] = set(kafka.find_log_dirs(0)) - {before}
        move, elsewhere = ReplicaLogDir(A0, 0, other), ReplicaLogDir(A0, 1, "/no/such/directory")
        gone = ReplicaLogDir(A0, 9, other)
        answer = await admin.alter_replica_log_dirs([move, elsewhere, gone])
        assert answer[move] is None
        assert _get_codes(answer) == {elsewhere: "LOG_DIR_NOT_FOUND", gone: "BROKER_NOT_AVAILABLE"}
        await read_until(find_path, {other})


async def test_end_offsets_of_partitions_that_have_a_leader(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1], 1: [1, 0]})
    kafka.produce("a", partition=1, total_bytes=1_000_000, record_bytes=100_000)
    asked = [A0, A1, TopicPartition("a", 7), TopicPartition("no-such-topic", 0)]
    async with connect_admin(kafka) as admin:
        assert await admin.read_end_offsets(asked) == {A0: 0, A1: 10}
        assert await admin.read_end_offsets([]) == {}


async def test_unregistering(kafka: RealKafka) -> None:
    kafka.start_broker(3)
    kafka.stop_broker(3)
    async with connect_admin(kafka) as admin:
        assert 3 in [broker.id for broker in (await admin.describe_nodes()).brokers]
        assert await admin.unregister_broker(3) is None

        async def find_brokers() -> list[int]:
            return [broker.id for broker in (await admin.describe_nodes()).brokers]

        await read_until(find_brokers, [0, 1, 2])
        again = await admin.unregister_broker(3)
    assert again == KafkaError(code="BROKER_ID_NOT_REGISTERED", message="Broker ID 3 is not currently registered")


def _get_codes(answer: Mapping[Item, object]) -> dict[Item, str]:
    return {item: error.code for item, error in answer.items() if isinstance(error, KafkaError)}
