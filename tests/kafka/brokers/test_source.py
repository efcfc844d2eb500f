"""Descriptions of simulated brokers in virtual time: what a broker that does not answer costs, and rates."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from plimsoll.app.kafka.simulated_admin import SimulatedAdmin
from plimsoll.kafka.brokers.ports import KafkaUnavailable
from plimsoll.kafka.brokers.rates import OffsetSampler
from plimsoll.kafka.brokers.source import LiveClusterSource, describe_cluster
from plimsoll.kafka.model.cluster import build_model
from plimsoll.kafka.model.proposals import OptimizationResult
from plimsoll.kafka.model.requests import Mode, RebalanceRequest
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.optimizer import optimize
from plimsoll.local.kafka.cluster import SimulatedKafka
from plimsoll.testing import run_virtual

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from plimsoll.kafka.brokers.ports import BrokerLogs, Reassignment
    from plimsoll.kafka.model.description import ClusterDescription, TopicDescription, TopicPartition
    from plimsoll.runtime.clocks import VirtualClock

MB = 1_000_000


def make_kafka(clock: VirtualClock) -> SimulatedKafka:
    kafka = SimulatedKafka(clock)
    for broker in range(4):
        kafka.add_broker(broker, rack=f"r{broker % 2}", bytes_per_s=10 * MB)
    kafka.create_topic("a", [[0, 1], [1, 2], [2, 3]], size_bytes=20 * MB)
    return kafka


def test_a_broker_that_died_costs_its_own_data() -> None:
    async def run(clock: VirtualClock) -> ClusterDescription:
        kafka = make_kafka(clock)
        kafka.kill_broker(1)
        return await describe_cluster(SimulatedAdmin(kafka))

    described = run_virtual(run)
    assert [broker.id for broker in described.brokers if broker.log_dirs is None] == [1]
    model = build_model(described)
    assert model.size_known.tolist() == [True, True, True]
    assert model.size_bytes.tolist() == [20 * MB] * 3
    assert [problem for problem in model.problems if problem.startswith("broker 1 did not answer")]


class ListingAdmin(SimulatedAdmin):
    """Topic b was created after the topics were listed and before the log directories were read, or deleted since."""

    def __init__(self, kafka: SimulatedKafka, *, is_deleted: bool) -> None:
        super().__init__(kafka)
        self._is_deleted = is_deleted

    async def describe_topics(
        self, names: Collection[str] | None = None, *, with_min_isr: bool = False
    ) -> tuple[TopicDescription, ...]:
        if names is not None:
            return await super().describe_topics(["c"] if self._is_deleted else names, with_min_isr=with_min_isr)
        listed = await super().describe_topics(with_min_isr=with_min_isr)
        return tuple(topic for topic in listed if topic.name != "b")


def test_replicas_of_topics_that_may_not_be_described_are_there_and_stay() -> None:
    """Kafka leaves such a topic out of its list, and a broker that holds only its replicas looks empty."""

    async def run(clock: VirtualClock) -> ClusterDescription:
        kafka = make_kafka(clock)
        kafka.create_topic("hidden", [[0, 3], [3, 1]], size_bytes=MB)
        kafka.hidden_topics.add("hidden")
        return await describe_cluster(SimulatedAdmin(kafka))

    model = build_model(run_virtual(run))
    assert model.replica_counts.tolist() == [2, 3, 2, 3]
    assert [problem for problem in model.problems if problem.startswith("topic hidden: TOPIC_AUTHORIZATION_FAILED: ")]
    result = optimize(model, RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(3,)), AnalyzerSettings())
    assert isinstance(result, OptimizationResult), result
    assert {proposal.topic for proposal in result.proposals} == {"a"}
    assert (result.kept_on_leaving, result.emptied_brokers) == ({3: 2}, ())


@pytest.mark.parametrize("is_deleted", [False, True])
def test_topics_that_change_while_a_cluster_is_described_are_looked_up(is_deleted: bool) -> None:
    async def run(clock: VirtualClock) -> ClusterDescription:
        kafka = make_kafka(clock)
        kafka.create_topic("b", [[2, 3]], size_bytes=MB)
        return await describe_cluster(ListingAdmin(kafka, is_deleted=is_deleted))

    described = run_virtual(run)
    assert [topic.name for topic in described.topics] == (["a"] if is_deleted else ["a", "b"])
    assert all(partition.logs for topic in described.topics for partition in topic.partitions)
    assert not build_model(described).problems


class HangingAdmin(SimulatedAdmin):
    """Broker 2 takes requests and never answers."""

    async def describe_log_dirs(self, broker: int) -> BrokerLogs:
        if broker == 2:
            await asyncio.Event().wait()
        await asyncio.sleep(1.0)
        return await super().describe_log_dirs(broker)


def test_brokers_are_read_at_the_same_time_and_one_that_hangs_costs_its_timeout() -> None:
    async def run(clock: VirtualClock) -> tuple[ClusterDescription, float]:
        began_s = clock.monotonic_s()
        described = await describe_cluster(HangingAdmin(make_kafka(clock)), broker_timeout_s=5.0)
        return described, clock.monotonic_s() - began_s

    described, took_s = run_virtual(run)
    assert took_s == pytest.approx(5.0)
    assert [broker.problem for broker in described.brokers] == ["", "", "did not answer within 5 s", ""]


def test_at_most_so_many_brokers_are_read_at_once() -> None:
    async def run(clock: VirtualClock) -> float:
        began_s = clock.monotonic_s()
        kafka = make_kafka(clock)
        await describe_cluster(HangingAdmin(kafka), broker_timeout_s=1.5, brokers_at_once=1)
        return clock.monotonic_s() - began_s

    assert run_virtual(run) == pytest.approx(4.5)


def test_a_cluster_without_topics_in_its_answer_is_not_described() -> None:
    class Blind(SimulatedAdmin):
        async def list_reassignments(self) -> Mapping[TopicPartition, Reassignment]:
            raise KafkaUnavailable("no controller")

    async def run(clock: VirtualClock) -> ClusterDescription:
        return await describe_cluster(Blind(make_kafka(clock)))

    with pytest.raises(KafkaUnavailable, match="no controller"):
        run_virtual(run)


def test_rates_come_with_the_second_look_and_follow_the_producers() -> None:
    async def run(clock: VirtualClock) -> list[ClusterDescription]:
        kafka = make_kafka(clock)
        kafka.set_rates("a", 1, bytes_in_per_s=1 * MB)
        source = LiveClusterSource(SimulatedAdmin(kafka), clock, sampler=OffsetSampler())
        looks = [await source.describe()]
        for _ in range(6):
            await clock.sleep(20)
            looks.append(await source.describe())
        kafka.set_rates("a", 1, bytes_in_per_s=3 * MB)
        for _ in range(6):
            await clock.sleep(20)
            looks.append(await source.describe())
        return looks

    looks = run_virtual(run)
    assert looks[0].rate_source == ""
    assert looks[0].taken_at
    assert build_model(looks[0]).bytes_in is None
    assert {look.rate_source for look in looks[1:]} == {"offsets"}
    steady = [look.topics[0].partitions[1].bytes_in_per_s for look in (looks[6], looks[12])]
    assert steady == [pytest.approx(1 * MB, rel=0.01), pytest.approx(3 * MB, rel=0.01)]
    assert looks[6].topics[0].partitions[0].bytes_in_per_s == 0
