"""Which brokers hold replicas, by live metadata: what is asked before a broker may go.

A topic that could not be described may have replicas anywhere. It is named, and no caller may take it for absent.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plimsoll.kafka.model.description import TopicPartition

if TYPE_CHECKING:
    from plimsoll.kafka.brokers.ports import KafkaAdmin


@dataclass(slots=True)
class ReplicaPlacement:
    """The partitions of each broker, and the topics that could not be described."""

    partitions: dict[int, set[TopicPartition]] = field(default_factory=lambda: defaultdict(set))
    unseen: set[str] = field(default_factory=set)


async def read_replica_placement(admin: KafkaAdmin) -> ReplicaPlacement:
    """All replicas of all topics, internal ones too, and those that reassignments add. Raises errors of the port."""
    found = ReplicaPlacement()
    for key, reassignment in (await admin.list_reassignments()).items():
        for broker in reassignment.replicas:
            found.partitions[broker].add(key)
    for topic in await admin.describe_topics():
        if topic.problem:
            found.unseen.add(topic.name)
        for partition in topic.partitions:
            if not partition.replicas:
                found.unseen.add(topic.name)
            key = TopicPartition(topic.name, partition.partition)
            for broker in partition.replicas:
                found.partitions[broker].add(key)
    return found
