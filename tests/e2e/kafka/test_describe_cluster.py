"""Descriptions of real brokers: complete, with brokers that are dead or hang, as dumps, and as models."""

from __future__ import annotations

import asyncio
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.brokers.dump import read_dump, write_dump
from plimsoll.kafka.brokers.ports import KafkaUnavailable
from plimsoll.kafka.brokers.rates import OffsetSampler
from plimsoll.kafka.brokers.source import describe_cluster
from plimsoll.kafka.model.cluster import build_model
from plimsoll.kafka.model.description import TopicPartition
from tests.e2e.kafka.admins import connect_admin, hold_back, read_until
from tests.e2e.kafka.real_kafka import CONTROLLER, FIRST_BROKERS

if TYPE_CHECKING:
    from plimsoll.kafka.model.description import ClusterDescription, PartitionDescription
    from tests.e2e.kafka.real_kafka import RealKafka

pytestmark = pytest.mark.asyncio
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


async def test_a_description_has_all_and_its_dump_gives_the_same_model(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1], 1: [1, 2]}, {"min.insync.replicas": "2"})
    kafka.produce("a", total_bytes=2_000_000)
    async with connect_admin(kafka) as admin:
        await hold_back(admin, "a", *FIRST_BROKERS)
        await admin.alter_reassignments({TopicPartition("a", 0): (2, 1)})
        described = await describe_cluster(admin, now=NOW)
        while 2 not in {log.broker for log in _find(described, "a", 0).logs}:  # Broker 2 has not begun its log yet.
            described = await describe_cluster(admin, now=NOW)
    assert (described.cluster_id, described.controller) == (kafka.cluster_id, CONTROLLER)
    assert [(broker.id, broker.problem) for broker in described.brokers] == [(0, ""), (1, ""), (2, "")]
    assert [len(broker.log_dirs or ()) for broker in described.brokers] == [2, 2, 2]
    moving = _find(described, "a", 0)
    assert (moving.adding, moving.removing) == ((2,), (0,))
    sizes = {log.broker: log.size_bytes for log in moving.logs}
    assert sizes[0] == sizes[1] >= 2_000_000 > sizes[2]
    model = build_model(read_dump(write_dump(described)))
    assert model.problems == ()
    assert model.reassigning[model.topic_of == model.topics.index("a")].tolist() == [True, False]
    assert model.size_bytes.sum() >= 2_000_000
    assert write_dump(read_dump(write_dump(described))) == write_dump(described)


async def test_a_dead_broker_costs_its_own_data_only(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1], 1: [1, 2], 2: [2, 0]})
    kafka.produce("a", partition=1, total_bytes=1_000_000)
    async with connect_admin(kafka) as admin:
        await admin.describe_nodes()
        kafka.kill_broker(2)
        at_once = await describe_cluster(admin)
        with pytest.raises(KafkaUnavailable, match="broker 2"):
            await admin.describe_log_dirs(2)
        kafka.wait_until(lambda: _is_fenced(kafka, 2), "the controller has fenced broker 2")
        later = await describe_cluster(admin)
    for described in (at_once, later):
        assert [broker.log_dirs is None for broker in described.brokers] == [False, False, True]
        assert described.brokers[2].problem
        assert {log.broker for log in _find(described, "a", 1).logs} == {1}
        model = build_model(described)
        assert [problem for problem in model.problems if "broker 2 did not answer" in problem]
        assert model.size_bytes[model.topic_of == model.topics.index("a")].tolist()[1] >= 1_000_000
    assert later.brokers[2].is_fenced
    assert _find(later, "a", 2).offline == (2,)
    assert _find(later, "a", 2).leader == 0


async def test_a_broker_that_hangs_costs_its_own_data_and_its_time(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1], 1: [1, 2]})
    async with connect_admin(kafka, request_timeout_s=6.0) as admin:
        await describe_cluster(admin)
        kafka.pause_broker(1)
        try:
            described = await describe_cluster(admin, broker_timeout_s=1.0)
        finally:
            kafka.continue_broker(1)
    assert [broker.log_dirs is None for broker in described.brokers] == [False, True, False]
    assert described.brokers[1].problem


async def test_a_broker_that_comes_back_is_read_again(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [2, 0]})
    async with connect_admin(kafka) as admin:
        await describe_cluster(admin)
        kafka.stop_broker(2)
        assert (await describe_cluster(admin)).brokers[2].log_dirs is None
        kafka.start_broker(2)
        kafka.start_broker(3)
        described = await describe_cluster(admin)
    assert [broker.id for broker in described.brokers if broker.log_dirs is None] == []
    assert [broker.id for broker in described.brokers] == [0, 1, 2, 3]


async def test_rates_come_from_two_looks_at_end_offsets(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1], 1: [1, 2]})
    kafka.produce("a", total_bytes=1_000_000)
    sampler = OffsetSampler()
    async with connect_admin(kafka) as admin:
        first = await sampler.add_rates(await describe_cluster(admin), admin, at_s=0.0)
        kafka.produce("a", total_bytes=2_000_000)
        second = await sampler.add_rates(await describe_cluster(admin), admin, at_s=10.0)
    assert first.rate_source == ""
    assert second.rate_source == "offsets"
    rate = _find(second, "a", 0).bytes_in_per_s
    assert rate is not None
    assert 200_000 <= rate <= 220_000
    assert _find(second, "a", 1).bytes_in_per_s == 0


async def test_many_requests_at_once_share_the_connections(kafka: RealKafka) -> None:
    kafka.create_topic("a", {0: [0, 1]})
    async with connect_admin(kafka) as admin:
        answers = await asyncio.gather(*(admin.describe_log_dirs(number % 3) for number in range(60)))
    assert len(answers) == 60


async def test_a_log_directory_that_fails_is_offline_and_its_replicas_with_it(kafka: RealKafka) -> None:
    kafka.start_broker(3)
    kafka.create_topic("a", {number: [3, 0] for number in range(4)})
    staying, failing = kafka.find_log_dirs(3)  # The first holds the metadata log, and a broker ends without it.
    async with connect_admin(kafka) as admin:

        async def count_logs() -> int:
            return sum(key.topic == "a" for key, _ in (await admin.describe_log_dirs(3)).replicas)

        await read_until(count_logs, 4)
        logs = (await admin.describe_log_dirs(3)).replicas
        lost = sorted(key.partition for key, log in logs if log.log_dir == failing)
        shutil.rmtree(failing)

        async def find_dirs() -> list[tuple[str, bool]]:
            return [(log_dir.path, log_dir.is_online) for log_dir in (await admin.describe_log_dirs(3)).log_dirs]

        await read_until(find_dirs, [(staying, True), (failing, False)])

        async def find_offline() -> list[int]:
            [topic] = await admin.describe_topics(["a"])
            return [entry.partition for entry in topic.partitions if entry.offline == (3,)]

        await read_until(find_offline, lost)
        model = build_model(await describe_cluster(admin))
    assert lost
    assert int(model.offline.sum()) == len(lost)


def _find(described: ClusterDescription, topic: str, number: int) -> PartitionDescription:
    [found] = [entry for entry in described.topics if entry.name == topic]
    return found.partitions[number]


def _is_fenced(kafka: RealKafka, broker: int) -> bool:
    nodes = {node["broker_id"]: node for node in kafka.client.describe_cluster()["brokers"]}
    return bool(nodes[broker]["is_fenced"])
