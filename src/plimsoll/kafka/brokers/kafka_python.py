"""The port to a Kafka cluster over real brokers, with kafka-python's messages and connections.

Any broker passes requests on to the controller (KRaft). Requests about one broker go to that broker: its log
directories, its settings, the end offsets of partitions that it leads. A broker that does not answer costs its own
items; the others keep their results.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, TypeVar

from plimsoll.core.value_parsing import read_whole_number
from plimsoll.kafka.brokers import answers
from plimsoll.kafka.brokers.connection import Connection
from plimsoll.kafka.brokers.ports import (
    BrokerLogs,
    ClusterNodes,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    KafkaError,
    KafkaRefused,
    KafkaUnavailable,
    MetadataQuorum,
    Reassignment,
    ReplicaLogDir,
)
from plimsoll.kafka.model.description import TopicDescription, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from plimsoll.kafka.brokers.connection_settings import ConnectionSettings

K = TypeVar("K")
V = TypeVar("V")

MIN_ISR: Final = "min.insync.replicas"
_BATCH: Final = 1000
"""Items per request that changes something: the controller refuses requests that need 10,000 records."""
_RESOURCES: Final = {"topic": 2, "broker": 4}
_OPERATIONS: Final = {
    ConfigOperation.SET: 0,
    ConfigOperation.DELETE: 1,
    ConfigOperation.APPEND: 2,
    ConfigOperation.SUBTRACT: 3,
}
_LATEST: Final = -1
_PREFERRED: Final = 0
_BROKER_DOWN: Final = "BROKER_NOT_AVAILABLE"


class KafkaPythonAdmin:
    """A Kafka cluster by its bootstrap servers. It connects with the first request; `close` ends its thread."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._connection = Connection(settings)
        self._timeout_ms = int(settings.request_timeout_s * 1000)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._connection.close()

    async def change_settings(self, settings: ConnectionSettings) -> None:
        """Connect anew with the next request. Requests under way fail, and their callers send them again."""
        former, self._connection = self._connection, Connection(settings)
        self._timeout_ms = int(settings.request_timeout_s * 1000)
        await former.close()

    async def describe_nodes(self) -> ClusterNodes:
        from kafka.protocol.admin import DescribeClusterRequest  # noqa: PLC0415 - heavy

        nodes, quorum = await asyncio.gather(
            self._connection.send(lambda: DescribeClusterRequest(include_fenced_brokers=True), answers.read_nodes),
            self._describe_quorum(),
        )
        cluster_id, brokers = nodes
        if quorum is None:
            return ClusterNodes(cluster_id=cluster_id, controller=-1, brokers=brokers)
        return ClusterNodes(cluster_id=cluster_id, controller=quorum.leader, brokers=brokers, voters=quorum.voters)

    async def describe_topics(
        self, names: Collection[str] | None = None, *, with_min_isr: bool = False
    ) -> tuple[TopicDescription, ...]:
        """All topics, or those named. The metadata of all topics fit one answer, which is faster than pages."""
        from kafka.protocol.metadata import MetadataRequest  # noqa: PLC0415 - heavy

        def build() -> Any:
            form = MetadataRequest.MetadataRequestTopic
            wanted = None if names is None else [form(name=name) for name in sorted(set(names))]
            return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)

        if names is not None and not names:
            return ()
        topics = await self._connection.send(build, answers.read_topics)
        return answers.add_min_isr(topics, await self._read_min_isr(topics)) if with_min_isr else topics

    async def describe_log_dirs(self, broker: int) -> BrokerLogs:
        from kafka.protocol.admin import DescribeLogDirsRequest  # noqa: PLC0415 - heavy

        return await self._connection.send(
            lambda: DescribeLogDirsRequest(topics=None),
            lambda answer: answers.read_log_dirs(answer, broker),
            broker=broker,
        )

    async def list_reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        from kafka.protocol.admin import ListPartitionReassignmentsRequest  # noqa: PLC0415 - heavy

        return await self._connection.send(
            lambda: ListPartitionReassignmentsRequest(timeout_ms=self._timeout_ms, topics=None),
            answers.read_reassignments,
        )

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> Mapping[TopicPartition, KafkaError | None]:
        from kafka.protocol.admin import AlterPartitionReassignmentsRequest  # noqa: PLC0415 - heavy

        topic_form = AlterPartitionReassignmentsRequest.ReassignableTopic
        partition_form = topic_form.ReassignablePartition
        results: dict[TopicPartition, KafkaError | None] = {}
        for batch in _split(targets):

            def build(batch: Sequence[TopicPartition] = batch) -> Any:
                topics = [
                    topic_form(
                        name=topic,
                        partitions=[
                            partition_form(
                                partition_index=partition.partition, replicas=_list_or_none(targets[partition])
                            )
                            for partition in partitions
                        ],
                    )
                    for topic, partitions in _group_by_topic(batch)
                ]
                return AlterPartitionReassignmentsRequest(timeout_ms=self._timeout_ms, topics=topics)

            results |= _complete(batch, await self._connection.send(build, answers.read_altered_reassignments))
        return results

    async def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, KafkaError | None]:
        from kafka.protocol.admin import ElectLeadersRequest  # noqa: PLC0415 - heavy

        results: dict[TopicPartition, KafkaError | None] = {}
        for batch in _split(partitions):

            def build(batch: Sequence[TopicPartition] = batch) -> Any:
                topics = [
                    ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[entry.partition for entry in entries])
                    for topic, entries in _group_by_topic(batch)
                ]
                return ElectLeadersRequest(
                    election_type=_PREFERRED, topic_partitions=topics, timeout_ms=self._timeout_ms, min_version=1
                )

            results |= _complete(batch, await self._connection.send(build, answers.read_elections))
        return results

    async def describe_configs(
        self, resources: Collection[ConfigResource], keys: Collection[str]
    ) -> Mapping[ConfigResource, Mapping[str, ConfigEntry] | KafkaError]:
        from kafka.protocol.admin import DescribeConfigsRequest  # noqa: PLC0415 - heavy

        form = DescribeConfigsRequest.DescribeConfigsResource

        async def describe(
            batch: Sequence[ConfigResource], broker: int | None
        ) -> Mapping[ConfigResource, Mapping[str, ConfigEntry] | KafkaError]:
            def build() -> Any:
                wanted = [
                    form(
                        resource_type=_RESOURCES[resource.type],
                        resource_name=resource.name,
                        configuration_keys=sorted(set(keys)),
                    )
                    for resource in batch
                ]
                return DescribeConfigsRequest(resources=wanted)

            return await self._connection.send(build, answers.read_configs, broker=broker)

        return await _send_by_resource(resources, describe)

    async def alter_configs(self, changes: Sequence[ConfigChange]) -> Mapping[ConfigResource, KafkaError | None]:
        from kafka.protocol.admin import IncrementalAlterConfigsRequest  # noqa: PLC0415 - heavy

        resource_form = IncrementalAlterConfigsRequest.AlterConfigsResource
        entry_form = resource_form.AlterableConfig
        merged = _merge_changes(changes)

        async def alter(
            batch: Sequence[ConfigResource], broker: int | None
        ) -> Mapping[ConfigResource, KafkaError | None]:
            def build() -> Any:
                wanted = [
                    resource_form(
                        resource_type=_RESOURCES[resource.type],
                        resource_name=resource.name,
                        configs=[
                            entry_form(
                                name=change.key,
                                config_operation=_OPERATIONS[change.operation],
                                value=None if change.operation is ConfigOperation.DELETE else change.value,
                            )
                            for change in merged[resource]
                        ],
                    )
                    for resource in batch
                ]
                return IncrementalAlterConfigsRequest(resources=wanted, validate_only=False)

            return await self._connection.send(build, answers.read_altered_configs, broker=broker)

        return await _send_by_resource(merged, alter)

    async def alter_replica_log_dirs(
        self, moves: Collection[ReplicaLogDir]
    ) -> Mapping[ReplicaLogDir, KafkaError | None]:
        from kafka.protocol.admin import AlterReplicaLogDirsRequest  # noqa: PLC0415 - heavy

        dir_form = AlterReplicaLogDirsRequest.AlterReplicaLogDir
        topic_form = dir_form.AlterReplicaLogDirTopic
        of_broker: dict[int, list[ReplicaLogDir]] = defaultdict(list)
        for move in moves:
            of_broker[move.broker].append(move)

        async def move_on(broker: int) -> dict[ReplicaLogDir, KafkaError | None]:
            of_path: dict[str, list[TopicPartition]] = defaultdict(list)
            for move in of_broker[broker]:
                of_path[move.path].append(move.partition)

            def build() -> Any:
                return AlterReplicaLogDirsRequest(
                    dirs=[
                        dir_form(
                            path=path,
                            topics=[
                                topic_form(name=topic, partitions=[entry.partition for entry in entries])
                                for topic, entries in _group_by_topic(partitions)
                            ],
                        )
                        for path, partitions in of_path.items()
                    ]
                )

            try:
                found = await self._connection.send(build, answers.read_altered_log_dirs, broker=broker)
            except (KafkaUnavailable, KafkaRefused) as error:
                return dict.fromkeys(of_broker[broker], _as_item_error(error))
            return {move: found.get(move.partition, answers.NOT_ANSWERED) for move in of_broker[broker]}

        results = await asyncio.gather(*(move_on(broker) for broker in sorted(of_broker)))
        return {move: error for found in results for move, error in found.items()}

    async def read_end_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        from kafka.protocol.consumer import ListOffsetsRequest  # noqa: PLC0415 - heavy

        topic_form = ListOffsetsRequest.ListOffsetsTopic
        partition_form = topic_form.ListOffsetsPartition
        led_by = await self._group_by_leader(partitions)

        async def read(leader: int) -> Mapping[TopicPartition, int]:
            def build() -> Any:
                topics = [
                    topic_form(
                        name=topic,
                        partitions=[
                            partition_form(partition_index=entry.partition, timestamp=_LATEST) for entry in entries
                        ],
                    )
                    for topic, entries in _group_by_topic(led_by[leader])
                ]
                return ListOffsetsRequest(isolation_level=0, topics=topics, min_version=1)

            try:
                return await self._connection.send(build, answers.read_offsets, broker=leader)
            except KafkaUnavailable:
                return {}

        results = await asyncio.gather(*(read(leader) for leader in sorted(led_by)))
        return {partition: offset for found in results for partition, offset in found.items()}

    async def unregister_broker(self, broker: int) -> KafkaError | None:
        from plimsoll.kafka.brokers.messages import UnregisterBrokerRequest  # noqa: PLC0415 - heavy

        return await self._connection.send(lambda: UnregisterBrokerRequest(broker_id=broker), answers.read_unregistered)

    async def _describe_quorum(self) -> MetadataQuorum | None:
        """The metadata quorum; None: not permitted, or too old a broker. DescribeCluster names a random controller."""
        from kafka.protocol.admin import DescribeQuorumRequest  # noqa: PLC0415 - heavy

        form = DescribeQuorumRequest.TopicData

        def build() -> Any:
            partition = form.PartitionData(partition_index=0)
            return DescribeQuorumRequest(topics=[form(topic_name="__cluster_metadata", partitions=[partition])])

        try:
            return await self._connection.send(build, answers.read_quorum)
        except KafkaRefused:
            return None

    async def _read_min_isr(self, topics: Collection[TopicDescription]) -> dict[str, int]:
        resources = [ConfigResource("topic", topic.name) for topic in topics if topic.partitions]
        if not resources:
            return {}
        found = await self.describe_configs(resources, (MIN_ISR,))
        return {
            resource.name: least
            for resource, entries in found.items()
            if not isinstance(entries, KafkaError)
            and (entry := entries.get(MIN_ISR))
            and (least := read_whole_number(entry.value)) is not None
        }

    async def _group_by_leader(self, partitions: Collection[TopicPartition]) -> dict[int, list[TopicPartition]]:
        from kafka.protocol.metadata import MetadataRequest  # noqa: PLC0415 - heavy

        names = sorted({partition.topic for partition in partitions})
        if not names:
            return {}
        topics = await self._connection.send(
            lambda: MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names],
                allow_auto_topic_creation=False,
            ),
            answers.read_topics,
        )
        leaders = {
            TopicPartition(topic.name, entry.partition): entry.leader for topic in topics for entry in topic.partitions
        }
        led_by: dict[int, list[TopicPartition]] = defaultdict(list)
        for partition in partitions:
            if (leader := leaders.get(partition, -1)) >= 0:
                led_by[leader].append(partition)
        return led_by


async def _send_by_resource(
    resources: Iterable[ConfigResource],
    send: Callable[[Sequence[ConfigResource], int | None], Awaitable[Mapping[ConfigResource, V | KafkaError]]],
) -> dict[ConfigResource, V | KafkaError]:
    """Send a request about settings: those of a broker to that broker, those of topics in batches to any."""
    listed = list(dict.fromkeys(resources))
    results: dict[ConfigResource, V | KafkaError] = {}

    async def send_to_broker(resource: ConfigResource) -> None:
        try:
            results.update(_complete([resource], await send([resource], int(resource.name))))
        except (KafkaUnavailable, KafkaRefused) as error:
            results[resource] = _as_item_error(error)

    async def send_to_any() -> None:
        for batch in _split([resource for resource in listed if resource.type != "broker"]):
            results.update(_complete(batch, await send(batch, None)))

    brokers = (send_to_broker(resource) for resource in listed if resource.type == "broker")
    await asyncio.gather(send_to_any(), *brokers)
    return results


def _merge_changes(changes: Sequence[ConfigChange]) -> dict[ConfigResource, list[ConfigChange]]:
    """The changes by resource. Appended and subtracted entries of one key become one list: Kafka takes a key once."""
    merged: dict[ConfigResource, list[ConfigChange]] = defaultdict(list)
    lists: dict[tuple[ConfigResource, str, ConfigOperation], list[str]] = {}
    for change in changes:
        key = (change.resource, change.key, change.operation)
        if change.operation in {ConfigOperation.APPEND, ConfigOperation.SUBTRACT}:
            if key in lists:
                lists[key].append(change.value)
                continue
            lists[key] = [change.value]
        merged[change.resource].append(change)
    return {
        resource: [
            ConfigChange(
                resource=resource,
                key=change.key,
                operation=change.operation,
                value=",".join(lists.get((resource, change.key, change.operation), [change.value])),
            )
            for change in entries
        ]
        for resource, entries in merged.items()
    }


def _as_item_error(error: KafkaUnavailable | KafkaRefused) -> KafkaError:
    code = error.code if isinstance(error, KafkaRefused) and error.code else _BROKER_DOWN
    return KafkaError(code=code, message=str(error))


def _complete(requested: Iterable[K], found: Mapping[K, V | KafkaError]) -> dict[K, V | KafkaError]:
    """The results of all items that were asked for. One that the answer lacks has an error."""
    return {item: found.get(item, answers.NOT_ANSWERED) for item in requested}


def _split(items: Iterable[K]) -> Iterator[list[K]]:
    listed = list(items)
    for start in range(0, len(listed), _BATCH):
        yield listed[start : start + _BATCH]


def _group_by_topic(partitions: Iterable[TopicPartition]) -> Iterable[tuple[str, list[TopicPartition]]]:
    of_topic: dict[str, list[TopicPartition]] = defaultdict(list)
    for partition in partitions:
        of_topic[partition.topic].append(partition)
    return of_topic.items()


def _list_or_none(replicas: tuple[int, ...] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)
