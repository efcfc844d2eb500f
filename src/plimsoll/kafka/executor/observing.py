"""What a check sees: brokers, partitions and reassignments, read anew for what matters now and seldom for the rest.

A topic counts as deleted only if brokers do not know it for a while: one that has just started may not know it yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.kafka.model.description import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.kafka.brokers.ports import ClusterNodes, KafkaAdmin, Reassignment
    from plimsoll.kafka.model.description import PartitionDescription, TopicDescription

WHOLE_REFRESH_S: Final = 30.0
DELETED_AFTER_S: Final = 1.0
"""Answers that do not know a topic, for this long, say that it was deleted."""
METADATA_LAG_S: Final = 10.0
"""How long a broker's copy of the metadata may be behind the controller's. What contradicts a plan must last longer."""
UNKNOWN_TOPIC: Final = "UNKNOWN_TOPIC"


@dataclass(slots=True)
class ClusterView:
    """The cluster as last read. Partitions of topics that were not asked for again may be older."""

    cluster_id: str = ""
    alive: frozenset[int] = frozenset()
    """Brokers that are registered and not fenced."""
    down_since_s: dict[int, float] = field(default_factory=dict)
    """Brokers that were seen and are not alive now, with the time of the first check that missed them."""
    reassignments: Mapping[TopicPartition, Reassignment] = field(default_factory=dict)
    partitions: dict[TopicPartition, PartitionDescription] = field(default_factory=dict)
    behind: set[TopicPartition] = field(default_factory=set)
    """Partitions with a replica that is not in sync."""
    min_isr: dict[str, int] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    """Topics that no longer exist."""
    numbers: dict[str, tuple[frozenset[int], float]] = field(default_factory=dict)
    """The partitions of each topic, also those that could not be described, and since when it has just these."""
    read_at_s: float = 0.0
    fresh: set[str] = field(default_factory=set)
    """Topics that were read since the reassignments were: no verdict is based on older ones."""

    def list_missing(self, key: TopicPartition) -> tuple[int, ...]:
        """Replicas that are not in sync, without those that a reassignment is adding."""
        partition = self.partitions.get(key)
        if partition is None:
            return ()
        listed = self.reassignments.get(key)
        adding = () if listed is None else listed.adding
        return tuple(broker for broker in partition.replicas if broker not in partition.isr and broker not in adding)

    def is_deleted(self, key: TopicPartition) -> bool:
        """Whether the topic no longer exists, or was created again without this partition."""
        if key.topic in self.deleted:
            return True
        numbers, since_s = self.numbers.get(key.topic, (frozenset({key.partition}), 0.0))
        return key.partition not in numbers and self.read_at_s - since_s >= METADATA_LAG_S


class ClusterObserver:
    """Reads a cluster for the executor. `reads_min_isr`: whether a strategy needs the least in-sync replicas."""

    def __init__(self, admin: KafkaAdmin, clock: Clock, *, reads_min_isr: Callable[[], bool] = lambda: False) -> None:
        self._admin = admin
        self._clock = clock
        self._reads_min_isr = reads_min_isr
        self._read_all_at: float | None = None
        self._unknown_since: dict[str, float] = {}
        self.view = ClusterView()

    async def observe(self, topics: Collection[str]) -> ClusterView:
        """Read brokers, reassignments and these topics; all topics if they were not read for a while."""
        # Reassignments first: one that ends in between is then missed by the list, not by the partitions.
        await self.list_reassignments()
        return await self.describe(topics)

    async def list_reassignments(self) -> ClusterView:
        """Read reassignments alone, which costs the brokers little. The topics are then no longer fresh."""
        self.view.reassignments = await self._admin.list_reassignments()
        self.view.fresh.clear()
        return self.view

    async def describe(self, topics: Collection[str]) -> ClusterView:
        """The rest of `observe`, after the reassignments were listed."""
        self._take_brokers(await self._admin.describe_nodes())
        now = self._clock.monotonic_s()
        if self._read_all_at is None or now - self._read_all_at >= WHOLE_REFRESH_S:
            found = await self._admin.describe_topics(with_min_isr=self._reads_min_isr())
            self._read_all_at = now
            self._forget_others({topic.name for topic in found})
            self._take(found)
            topics = set(topics) - {topic.name for topic in found}
        if topics:
            self._take(await self._admin.describe_topics(sorted(topics), with_min_isr=self._reads_min_isr()))
        return self.view

    async def read_topics(self, topics: Collection[str]) -> ClusterView:
        """Read those of these topics that were not read since the reassignments were."""
        stale = set(topics) - self.view.fresh
        if stale:
            self._take(await self._admin.describe_topics(sorted(stale), with_min_isr=self._reads_min_isr()))
        return self.view

    def _take_brokers(self, nodes: ClusterNodes) -> None:
        view, now = self.view, self._clock.monotonic_s()
        alive = frozenset(broker.id for broker in nodes.brokers if broker.is_registered and not broker.is_fenced)
        gone = (view.alive | {broker.id for broker in nodes.brokers} | set(view.down_since_s)) - alive
        view.down_since_s = {broker: view.down_since_s.get(broker, now) for broker in gone}
        view.alive, view.cluster_id = alive, nodes.cluster_id

    def _forget_others(self, names: set[str]) -> None:
        self.view.partitions = {key: found for key, found in self.view.partitions.items() if key.topic in names}
        self.view.behind = {key for key in self.view.behind if key.topic in names}
        self.view.numbers = {name: known for name, known in self.view.numbers.items() if name in names}

    def _take(self, topics: Collection[TopicDescription]) -> None:
        self.view.read_at_s = self._clock.monotonic_s()
        for topic in topics:
            self.view.fresh.add(topic.name)
            if topic.problem.startswith(UNKNOWN_TOPIC):
                since_s = self._unknown_since.setdefault(topic.name, self.view.read_at_s)
                if self.view.read_at_s - since_s >= DELETED_AFTER_S:
                    self.view.deleted.add(topic.name)
                continue
            if topic.problem:
                continue
            self._unknown_since.pop(topic.name, None)
            self.view.deleted.discard(topic.name)
            self.view.min_isr[topic.name] = topic.min_isr
            self._take_numbers(topic)
            for partition in topic.partitions:
                if partition.replicas:
                    key = TopicPartition(topic.name, partition.partition)
                    self.view.partitions[key] = partition
                    if len(partition.isr) < len(partition.replicas):
                        self.view.behind.add(key)
                    else:
                        self.view.behind.discard(key)

    def _take_numbers(self, topic: TopicDescription) -> None:
        """Forget partitions that the topic no longer has."""
        view = self.view
        numbers = frozenset(partition.partition for partition in topic.partitions)
        known, _ = view.numbers.get(topic.name, (frozenset(), 0.0))
        for number in known - numbers:
            key = TopicPartition(topic.name, number)
            view.partitions.pop(key, None)
            view.behind.discard(key)
        if numbers != known:
            view.numbers[topic.name] = numbers, view.read_at_s
