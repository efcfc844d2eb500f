"""Reads the answers of brokers: kafka-python's messages become our values, errors of single items among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.kafka.brokers.connection import get_error_name, raise_refusal
from plimsoll.kafka.brokers.ports import (
    BrokerLogs,
    ConfigEntry,
    ConfigResource,
    KafkaError,
    KafkaRefused,
    MetadataQuorum,
    Reassignment,
)
from plimsoll.kafka.model.description import (
    LARGEST_BYTES,
    BrokerDescription,
    LogDir,
    PartitionDescription,
    ReplicaDescription,
    TopicDescription,
    TopicPartition,
    bound_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NOT_ANSWERED: Final = KafkaError(code="UNKNOWN_SERVER_ERROR", message="the answer does not contain it")
_RESOURCE_TYPES: Final = {2: "topic", 4: "broker"}
_DYNAMIC_SOURCES: Final = {"topic": 1, "broker": 2}
"""Where a setting of a resource itself comes from: DYNAMIC_TOPIC_CONFIG and DYNAMIC_BROKER_CONFIG."""


def read_nodes(answer: Any) -> tuple[str, tuple[BrokerDescription, ...]]:
    """The id of the cluster, and the registered brokers by id."""
    raise_refusal(answer.error_code, answer.error_message)
    brokers = [
        BrokerDescription(
            id=node.broker_id,
            host=node.host,
            port=node.port,
            rack=node.rack or "",
            is_fenced=bool(getattr(node, "is_fenced", False)),
        )
        for node in answer.brokers
    ]
    return answer.cluster_id, tuple(sorted(brokers, key=lambda broker: broker.id))


def read_quorum(answer: Any) -> MetadataQuorum:
    """The leader and the voters of the metadata quorum. A quorum has voters: an answer without them is none."""
    raise_refusal(answer.error_code, getattr(answer, "error_message", None))
    for topic in answer.topics:
        for partition in topic.partitions:
            raise_refusal(partition.error_code, getattr(partition, "error_message", None))
            voters = frozenset(int(voter.replica_id) for voter in partition.current_voters)
            if voters:
                return MetadataQuorum(leader=int(partition.leader_id), voters=voters)
    raise KafkaRefused("the answer names no voters of the metadata quorum")


def read_topics(answer: Any) -> tuple[TopicDescription, ...]:
    """Topics by name, their partitions by number."""
    raise_refusal(getattr(answer, "error_code", 0), None)
    topics = [
        TopicDescription(
            name=topic.name,
            partitions=tuple(
                sorted(
                    (
                        PartitionDescription(
                            partition=partition.partition_index,
                            replicas=tuple(partition.replica_nodes),
                            leader=partition.leader_id,
                            isr=tuple(partition.isr_nodes),
                            offline=tuple(partition.offline_replicas),
                            problem=_name_problem(partition.error_code),
                        )
                        for partition in topic.partitions
                    ),
                    key=_get_number,
                )
            ),
            is_internal=topic.is_internal,
            problem=_name_problem(topic.error_code),
        )
        for topic in answer.topics
    ]
    return tuple(sorted(topics, key=lambda topic: topic.name))


def add_min_isr(topics: Iterable[TopicDescription], min_isr: Mapping[str, int]) -> tuple[TopicDescription, ...]:
    """The topics with their least number of in-sync replicas."""
    return tuple(
        msgspec.structs.replace(topic, min_isr=min_isr[topic.name])
        if min_isr.get(topic.name, topic.min_isr) != topic.min_isr
        else topic
        for topic in topics
    )


def read_log_dirs(answer: Any, broker: int) -> BrokerLogs:
    """The log directories of a broker. One with an error is offline."""
    raise_refusal(getattr(answer, "error_code", 0), None)
    dirs = [
        LogDir(
            path=found.log_dir,
            total_bytes=bound_bytes(found.total_bytes) or -1,
            usable_bytes=bound_bytes(found.usable_bytes) if found.usable_bytes >= 0 else -1,
            is_online=found.error_code == 0,
            is_cordoned=bool(found.is_cordoned),
        )
        for found in answer.results
    ]
    replicas: list[tuple[TopicPartition, ReplicaDescription]] = []
    for found in answer.results:
        path = found.log_dir
        for topic in found.topics:
            name = topic.name
            replicas += [
                (
                    TopicPartition(name, partition.partition_index),
                    ReplicaDescription(
                        broker=broker,
                        log_dir=path,
                        size_bytes=size if 0 <= (size := partition.partition_size) <= LARGEST_BYTES else 0,
                        offset_lag=max(0, partition.offset_lag),
                        is_future=partition.is_future_key,
                    ),
                )
                for partition in topic.partitions
            ]
    return BrokerLogs(log_dirs=tuple(sorted(dirs, key=lambda log_dir: log_dir.path)), replicas=tuple(replicas))


def read_reassignments(answer: Any) -> dict[TopicPartition, Reassignment]:
    raise_refusal(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, partition.partition_index): Reassignment(
            replicas=tuple(partition.replicas),
            adding=tuple(partition.adding_replicas),
            removing=tuple(partition.removing_replicas),
        )
        for topic in answer.topics
        for partition in topic.partitions
    }


def read_altered_reassignments(answer: Any) -> dict[TopicPartition, KafkaError | None]:
    raise_refusal(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, partition.partition_index): read_error(partition.error_code, partition.error_message)
        for topic in answer.responses
        for partition in topic.partitions
    }


def read_elections(answer: Any) -> dict[TopicPartition, KafkaError | None]:
    raise_refusal(getattr(answer, "error_code", 0), None)
    return {
        TopicPartition(topic.topic, partition.partition_id): read_error(partition.error_code, partition.error_message)
        for topic in answer.replica_election_results
        for partition in topic.partition_result
    }


def read_configs(answer: Any) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
    found: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
    for result in answer.results:
        resource = _name_resource(result)
        error = read_error(result.error_code, result.error_message)
        found[resource] = error or {
            entry.name: ConfigEntry(
                value=entry.value or "", is_dynamic=entry.config_source == _DYNAMIC_SOURCES.get(resource.type)
            )
            for entry in result.configs
        }
    return found


def read_altered_configs(answer: Any) -> dict[ConfigResource, KafkaError | None]:
    return {_name_resource(result): read_error(result.error_code, result.error_message) for result in answer.responses}


def read_altered_log_dirs(answer: Any) -> dict[TopicPartition, KafkaError | None]:
    return {
        TopicPartition(topic.topic_name, partition.partition_index): read_error(partition.error_code, None)
        for topic in answer.results
        for partition in topic.partitions
    }


def read_offsets(answer: Any) -> dict[TopicPartition, int]:
    """The offsets of partitions without an error."""
    return {
        TopicPartition(topic.name, partition.partition_index): partition.offset
        for topic in answer.topics
        for partition in topic.partitions
        if partition.error_code == 0 and partition.offset >= 0
    }


def read_unregistered(answer: Any) -> KafkaError | None:
    return read_error(answer.error_code, answer.error_message)


def read_error(code: int, message: str | None) -> KafkaError | None:
    """The error of one item, if it has one."""
    return None if code == 0 else KafkaError(code=get_error_name(code), message=message or "")


def _name_problem(code: int) -> str:
    return "" if code == 0 else get_error_name(code)


def _name_resource(result: Any) -> ConfigResource:
    return ConfigResource(_RESOURCE_TYPES.get(result.resource_type, str(result.resource_type)), result.resource_name)


def _get_number(partition: PartitionDescription) -> int:
    return partition.partition
