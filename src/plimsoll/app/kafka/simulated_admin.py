"""The simulated brokers behind the port of sources and executor: `SimulatedAdmin` is a `KafkaAdmin`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from plimsoll.kafka.brokers.ports import (
    BrokerLogs,
    ClusterNodes,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    KafkaError,
    KafkaRefused,
    KafkaUnavailable,
    Reassignment,
    ReplicaLogDir,
)
from plimsoll.kafka.model.description import (
    BrokerDescription,
    LogDir,
    PartitionDescription,
    ReplicaDescription,
    TopicDescription,
    TopicPartition,
)
from plimsoll.local.kafka.answers import ItemError, NoAnswer, RequestRefused
from plimsoll.local.kafka.settings import MIN_ISR, TOPIC, SettingChange

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from plimsoll.local.kafka.cluster import SimulatedKafka
    from plimsoll.local.kafka.partitions import SimulatedPartition
    from plimsoll.local.kafka.state import KafkaState


class SimulatedAdmin:
    """An admin client of a simulated cluster. Nothing leaves the loop."""

    def __init__(self, kafka: SimulatedKafka) -> None:
        self._kafka = kafka

    async def describe_nodes(self) -> ClusterNodes:
        with _translate_errors():
            state = self._kafka.receive("describe_nodes")
        return ClusterNodes(
            cluster_id=self._kafka.cluster_id,
            controller=-1,
            brokers=tuple(
                BrokerDescription(
                    id=broker.id, host=f"broker-{broker.id}", port=9092, rack=broker.rack, is_fenced=broker.is_fenced
                )
                for broker in sorted(state.brokers.values(), key=lambda broker: broker.id)
                if broker.is_registered
            ),
            voters=state.voters if self._kafka.shows_quorum else None,
        )

    async def describe_topics(
        self, names: Collection[str] | None = None, *, with_min_isr: bool = False
    ) -> tuple[TopicDescription, ...]:
        with _translate_errors():
            state = self._kafka.receive("describe_topics")
        hidden = self._kafka.hidden_topics
        wanted = sorted(state.topics.keys() - hidden) if names is None else names
        return tuple(
            TopicDescription(name=name, partitions=(), problem="TOPIC_AUTHORIZATION_FAILED")
            if name in hidden
            else _describe_topic(state, name, with_min_isr=with_min_isr)
            for name in wanted
        )

    async def describe_log_dirs(self, broker: int) -> BrokerLogs:
        with _translate_errors():
            state = self._kafka.receive("describe_log_dirs", broker=broker)
        known = state.brokers[broker]
        cordoned = state.list_cordoned(known)
        dirs = tuple(
            LogDir(
                path=log_dir.path,
                total_bytes=log_dir.total_bytes,
                usable_bytes=log_dir.usable_bytes,
                is_online=log_dir.is_online,
                is_cordoned=log_dir.path in cordoned,
            )
            for log_dir in known.log_dirs.values()
        )
        return BrokerLogs(log_dirs=dirs, replicas=tuple(_list_logs(state, broker)))

    async def list_reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        with _translate_errors():
            listed = self._kafka.list_reassignments()
        return {
            TopicPartition(*key): Reassignment(replicas=entry.replicas, adding=entry.adding, removing=entry.removing)
            for key, entry in listed.items()
        }

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> Mapping[TopicPartition, KafkaError | None]:
        with _translate_errors():
            answer = self._kafka.alter_reassignments(dict(targets.items()))
        return {TopicPartition(*key): _translate(error) for key, error in answer.items()}

    async def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, KafkaError | None]:
        with _translate_errors():
            answer = self._kafka.elect_preferred_leaders(partitions)
        return {TopicPartition(*key): _translate(error) for key, error in answer.items()}

    async def describe_configs(
        self, resources: Collection[ConfigResource], keys: Collection[str]
    ) -> Mapping[ConfigResource, Mapping[str, ConfigEntry] | KafkaError]:
        with _translate_errors():
            answer = self._kafka.describe_settings(resources, keys)
        return {
            ConfigResource(*resource): KafkaError(code=found.code, message=found.message)
            if isinstance(found, ItemError)
            else {key: ConfigEntry(value=entry.value, is_dynamic=entry.is_dynamic) for key, entry in found.items()}
            for resource, found in answer.items()
        }

    async def alter_configs(self, changes: Sequence[ConfigChange]) -> Mapping[ConfigResource, KafkaError | None]:
        grouped: dict[tuple[str, str], list[SettingChange]] = {}
        for change in changes:
            setting = SettingChange(change.key, change.operation.value, change.value)
            grouped.setdefault(change.resource, []).append(setting)
        with _translate_errors():
            answer = self._kafka.alter_settings(grouped)
        return {ConfigResource(*resource): _translate(error) for resource, error in answer.items()}

    async def alter_replica_log_dirs(
        self, moves: Collection[ReplicaLogDir]
    ) -> Mapping[ReplicaLogDir, KafkaError | None]:
        with _translate_errors():
            answer = self._kafka.alter_replica_log_dirs(moves)
        return {
            ReplicaLogDir(TopicPartition(*key), broker, path): _translate(error)
            for (key, broker, path), error in answer.items()
        }

    async def read_end_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        with _translate_errors():
            answer = self._kafka.read_end_offsets(partitions)
        return {TopicPartition(*key): offset for key, offset in answer.items()}

    async def unregister_broker(self, broker: int) -> KafkaError | None:
        with _translate_errors():
            return _translate(self._kafka.unregister_broker(broker))


def _describe_topic(state: KafkaState, name: str, *, with_min_isr: bool) -> TopicDescription:
    topic = state.topics.get(name)
    if topic is None:
        return TopicDescription(name=name, partitions=(), problem="UNKNOWN_TOPIC_OR_PARTITION")
    return TopicDescription(
        name=name,
        partitions=tuple(_describe_partition(state, topic.partitions[number]) for number in sorted(topic.partitions)),
        is_internal=topic.is_internal,
        min_isr=int(state.settings.get(TOPIC, name, MIN_ISR) or 1) if with_min_isr else 1,
    )


def _describe_partition(state: KafkaState, partition: SimulatedPartition) -> PartitionDescription:
    offline = tuple(broker for broker in partition.replicas if not state.can_host(partition, broker))
    return PartitionDescription(
        partition=partition.partition,
        replicas=tuple(partition.replicas),
        leader=partition.leader,
        isr=tuple(partition.isr),
        offline=offline,
    )


def _list_logs(state: KafkaState, broker: int) -> Iterator[tuple[TopicPartition, ReplicaDescription]]:
    for partition in state.iterate_partitions():
        log = partition.logs.get(broker)
        if log is None:
            continue
        key = TopicPartition(*partition.key)
        yield key, ReplicaDescription(broker=broker, log_dir=log.path, size_bytes=int(log.size))
        if log.future_path:
            yield (
                key,
                ReplicaDescription(
                    broker=broker, log_dir=log.future_path, size_bytes=int(log.future_size), is_future=True
                ),
            )


def _translate(error: ItemError | None) -> KafkaError | None:
    return None if error is None else KafkaError(code=error.code, message=error.message)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except NoAnswer as error:
        raise KafkaUnavailable(str(error)) from error
    except RequestRefused as error:
        raise KafkaRefused(str(error), code=error.code) from error
