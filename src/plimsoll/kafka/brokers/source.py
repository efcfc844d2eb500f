"""Describes a cluster from what its brokers answer now. There are no sampling windows: the first answer is complete.

A broker that does not answer costs its own data: it has no log directories, its replicas have no sizes, and its
`problem` says why. A cluster whose topics or reassignments cannot be read is not described at all.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.kafka.brokers.ports import BrokerLogs, KafkaRefused, KafkaUnavailable
from plimsoll.kafka.brokers.rates import add_prometheus_rates
from plimsoll.kafka.model.description import (
    ClusterDescription,
    PartitionDescription,
    ReplicaDescription,
    TopicPartition,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kafka.brokers.ports import KafkaAdmin, Reassignment
    from plimsoll.kafka.brokers.rates import OffsetSampler, RateQueries
    from plimsoll.kafka.model.description import BrokerDescription, TopicDescription
    from plimsoll.web.prometheus import Prometheus

BROKER_TIMEOUT_S: Final = 10.0
BROKERS_AT_ONCE: Final = 16
_UNKNOWN_TOPIC: Final = "UNKNOWN_TOPIC"

_Logs = dict[TopicPartition, list[ReplicaDescription]]


class LiveClusterSource:
    """Describes a cluster by its brokers, with rates where they can be had."""

    def __init__(
        self,
        admin: KafkaAdmin,
        clock: Clock,
        *,
        prometheus: Prometheus | None = None,
        queries: RateQueries | None = None,
        sampler: OffsetSampler | None = None,
        broker_timeout_s: float = BROKER_TIMEOUT_S,
    ) -> None:
        """Rates come from Prometheus, else from the end offsets that `sampler` remembers, else there are none."""
        self._admin = admin
        self._clock = clock
        self._prometheus = prometheus
        self._queries = queries
        self._sampler = sampler
        self._broker_timeout_s = broker_timeout_s

    async def describe(self) -> ClusterDescription:
        """The cluster now. Raises `KafkaUnavailable` and `KafkaRefused`."""
        now = self._clock.now()
        found = await describe_cluster(self._admin, now=now, broker_timeout_s=self._broker_timeout_s)
        if self._prometheus is not None:
            found = await add_prometheus_rates(found, self._prometheus, at=now, queries=self._queries)
        if self._sampler is not None and not found.rate_source:
            found = await self._sampler.add_rates(found, self._admin, at_s=self._clock.monotonic_s())
        return found


async def describe_cluster(
    admin: KafkaAdmin,
    *,
    now: datetime | None = None,
    broker_timeout_s: float = BROKER_TIMEOUT_S,
    brokers_at_once: int = BROKERS_AT_ONCE,
) -> ClusterDescription:
    """The cluster without rates. Raises `KafkaUnavailable` and `KafkaRefused`."""
    nodes = await admin.describe_nodes()
    turns = asyncio.Semaphore(brokers_at_once)

    async def read_logs(broker: BrokerDescription) -> BrokerLogs | str:
        if broker.is_fenced:
            return "is fenced: the controller is not in contact with it"
        async with turns:
            return await _read_logs(admin, broker.id, broker_timeout_s)

    topics, moving, answers = await asyncio.gather(
        admin.describe_topics(with_min_isr=True),
        admin.list_reassignments(),
        asyncio.gather(*(read_logs(broker) for broker in nodes.brokers)),
    )
    found = {broker.id: answer for broker, answer in zip(nodes.brokers, answers, strict=True)}
    logs = _group_logs(found.values())
    unlisted = {partition.topic for partition in logs} - {topic.name for topic in topics}
    if unlisted:
        topics = (*topics, *await _describe_unlisted(admin, unlisted, logs))
    return ClusterDescription(
        cluster_id=nodes.cluster_id,
        controller=nodes.controller,
        brokers=tuple(_complete_broker(broker, found[broker.id]) for broker in nodes.brokers),
        topics=tuple(_complete_topic(topic, logs, moving) for topic in topics),
        taken_at="" if now is None else now.isoformat(),
    )


async def _read_logs(admin: KafkaAdmin, broker: int, timeout_s: float) -> BrokerLogs | str:
    """The log directories of a broker, or why there are none."""
    try:
        async with asyncio.timeout(timeout_s):
            return await admin.describe_log_dirs(broker)
    except TimeoutError:
        return f"did not answer within {timeout_s:g} s"
    except (KafkaUnavailable, KafkaRefused) as error:
        return str(error)


def _group_logs(found: Iterable[BrokerLogs | str]) -> _Logs:
    """The replicas of each partition, over all brokers that answered."""
    logs: _Logs = defaultdict(list)
    for answer in found:
        if isinstance(answer, BrokerLogs):
            for partition, replica in answer.replicas:
                logs[partition].append(replica)
    return logs


async def _describe_unlisted(admin: KafkaAdmin, names: Collection[str], logs: _Logs) -> list[TopicDescription]:
    """Topics of which brokers have logs, and which they did not list.

    One was created or deleted in between, or the user may not describe it: Kafka leaves such topics out of the list,
    and a broker that holds only their replicas looks empty.
    """
    found = []
    for topic in await admin.describe_topics(sorted(names), with_min_isr=True):
        if not topic.problem:
            found.append(topic)
        elif not topic.problem.startswith(_UNKNOWN_TOPIC):
            partitions = tuple(
                PartitionDescription(partition=key.partition, replicas=tuple(sorted({log.broker for log in held})))
                for key, held in sorted(logs.items())
                if key.topic == topic.name
            )
            problem = f"{topic.problem}: its replicas are known from log directories only, and are not moved"
            found.append(msgspec.structs.replace(topic, partitions=partitions, problem=problem))
    return found


def _complete_broker(broker: BrokerDescription, answer: BrokerLogs | str) -> BrokerDescription:
    if isinstance(answer, str):
        return msgspec.structs.replace(broker, log_dirs=None, problem=answer)
    return msgspec.structs.replace(broker, log_dirs=answer.log_dirs)


def _complete_topic(
    topic: TopicDescription, logs: _Logs, moving: Mapping[TopicPartition, Reassignment]
) -> TopicDescription:
    partitions = tuple(
        _complete_partition(partition, logs.get(key, ()), moving.get(key))
        for partition in topic.partitions
        for key in (TopicPartition(topic.name, partition.partition),)
    )
    return msgspec.structs.replace(topic, partitions=partitions)


def _complete_partition(
    partition: PartitionDescription, logs: Sequence[ReplicaDescription], moving: Reassignment | None
) -> PartitionDescription:
    """The partition with its logs and its reassignment. Logs on other brokers are left-overs that Kafka deletes."""
    replicas = partition.replicas
    return PartitionDescription(
        partition=partition.partition,
        replicas=replicas,
        leader=partition.leader,
        isr=partition.isr,
        offline=partition.offline,
        adding=() if moving is None else moving.adding,
        removing=() if moving is None else moving.removing,
        logs=tuple([log for log in logs if log.broker in replicas]),
        problem=partition.problem,
    )
