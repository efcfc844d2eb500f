"""The cluster as numbers: what the analyzer works on.

Brokers, topics and partitions are indexes into sorted tuples. Replicas are rows of one table: those of partition `p`
are at `offsets[p]:offsets[p + 1]`, in the order of its assignment (the first is the preferred leader). So 300,000
replicas are a few arrays, and the same cluster gives the same numbers whatever the order of its description.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from plimsoll.core.errors import InvalidInput
from plimsoll.kafka.model.description import (
    BrokerDescription,
    ClusterDescription,
    PartitionDescription,
    TopicDescription,
    TopicPartition,
    bound_rate,
    is_size,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NONE: Final = -1
"""No broker, no log directory."""
MIB: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ClusterModel:
    """A cluster: B brokers, T topics, P partitions, N replicas."""

    brokers: tuple[BrokerDescription, ...]
    """[B], by ascending id. Brokers that only replicas name are among them."""
    topics: tuple[str, ...]
    """[T], sorted."""
    topic_of: Ints
    """[P]: the topic of each partition; partitions are sorted by topic and number."""
    numbers: Ints
    """[P]: the number of each partition within its topic."""
    offsets: Ints
    """[P + 1]: where the replicas of each partition begin."""
    broker_of: Ints
    """[N]: the broker of each replica."""
    leader: Ints
    """[P]: the broker that leads, or NONE."""
    in_sync: Flags
    """[N]."""
    offline: Flags
    """[N]: the broker is down, or the log directory is offline."""
    log_dir: Ints
    """[N]: the index of the log directory within its broker, or NONE."""
    size_bytes: Ints
    """[P]: the leader's size, or the largest reported one."""
    size_known: Flags
    """[P]: whether any broker reported a size that can be true. An unknown size counts as 0 bytes."""
    bytes_in: Floats | None
    """[P]: produced bytes per second; None: no rates are known."""
    bytes_out: Floats | None
    """[P]: consumed bytes per second; None: no rates are known."""
    min_isr: Ints
    """[T]."""
    reassigning: Flags
    """[P]: whether a reassignment is under way."""
    removing: Flags
    """[N]: the replicas that a reassignment under way removes."""
    cluster_id: str = ""
    controller: int = -1
    rate_source: str = ""
    problems: tuple[str, ...] = ()

    @property
    def partition_count(self) -> int:
        return len(self.topic_of)

    @property
    def replica_count(self) -> int:
        return len(self.broker_of)

    @cached_property
    def broker_ids(self) -> Ints:
        """[B]."""
        return np.array([broker.id for broker in self.brokers], dtype=np.int64)

    @cached_property
    def index_of_broker(self) -> dict[int, int]:
        """The index of each broker, by id."""
        return {broker.id: index for index, broker in enumerate(self.brokers)}

    @cached_property
    def rack_of(self) -> Ints:
        """[B]: racks as indexes. A broker without a rack is its own rack, by host."""
        names = [broker.rack or f"host {broker.host or broker.id}" for broker in self.brokers]
        order = {name: index for index, name in enumerate(sorted(set(names)))}
        return np.array([order[name] for name in names], dtype=np.int64)

    @cached_property
    def rack_names(self) -> tuple[str, ...]:
        """The names of racks, by index."""
        return tuple(sorted({broker.rack or f"host {broker.host or broker.id}" for broker in self.brokers}))

    @cached_property
    def partition_of(self) -> Ints:
        """[N]: the partition of each replica."""
        return np.repeat(np.arange(self.partition_count), np.diff(self.offsets))

    @cached_property
    def is_leader(self) -> Flags:
        """[N]: whether the replica leads its partition."""
        leads: Flags = self.broker_of == self.leader[self.partition_of]
        return leads

    @cached_property
    def replica_counts(self) -> Ints:
        """[B]."""
        return np.bincount(self.broker_of, minlength=len(self.brokers)).astype(np.int64)

    @cached_property
    def leader_counts(self) -> Ints:
        """[B]."""
        return np.bincount(self.leader[self.leader >= 0], minlength=len(self.brokers)).astype(np.int64)

    @cached_property
    def in_sync_counts(self) -> Ints:
        """[P]: the replicas that are in sync."""
        return np.bincount(self.partition_of[self.in_sync], minlength=self.partition_count).astype(np.int64)

    @cached_property
    def is_under_replicated(self) -> Flags:
        """[P]: whether a replica is not in sync."""
        behind: Flags = self.in_sync_counts < np.diff(self.offsets)
        return behind

    @cached_property
    def unknown_size_counts(self) -> Ints:
        """[B]: the replicas of a broker whose sizes are not known."""
        unknown = self.broker_of[~self.size_known[self.partition_of]]
        return np.bincount(unknown, minlength=len(self.brokers)).astype(np.int64)

    @cached_property
    def broker_bytes(self) -> Floats:
        """[B]: the bytes of all replicas of a broker whose sizes are known."""
        sizes = self.size_bytes[self.partition_of].astype(np.float64)
        return np.bincount(self.broker_of, sizes, minlength=len(self.brokers)).astype(np.float64)

    def name_partition(self, partition: int) -> TopicPartition:
        """The name of a partition, by index."""
        return TopicPartition(self.topics[self.topic_of[partition]], int(self.numbers[partition]))

    def list_replicas(self, partition: int) -> tuple[int, ...]:
        """The ids of a partition's brokers, in the order of the assignment."""
        indexes = self.broker_of[self.offsets[partition] : self.offsets[partition + 1]]
        return tuple(self.broker_ids[indexes].tolist())

    @property
    def departing_counts(self) -> Ints:
        """[B]: the replicas that reassignments under way take away."""
        return np.bincount(self.broker_of[self.removing], minlength=len(self.brokers)).astype(np.int64)

    def complete_reassignments(self) -> ClusterModel:
        """The same cluster after the reassignments under way: on their targets, led by the first if the leader goes."""
        if not self.removing.any():
            return self
        stays = ~self.removing
        counts = np.bincount(self.partition_of[stays], minlength=self.partition_count)
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        broker_of = self.broker_of[stays]
        loses_leader = np.zeros(self.partition_count, dtype=np.bool_)
        loses_leader[self.partition_of[self.removing & self.is_leader]] = True
        return dataclasses.replace(
            self,
            offsets=offsets,
            broker_of=broker_of,
            leader=np.where(loses_leader, broker_of[offsets[:-1]], self.leader),
            in_sync=self.in_sync[stays],
            offline=self.offline[stays],
            log_dir=self.log_dir[stays],
            removing=np.zeros(len(broker_of), dtype=np.bool_),
        )

    def replace_assignment(self, broker_of: Ints, leader: Ints, rows: Ints | None = None) -> ClusterModel:
        """The same cluster with its replicas and leaders elsewhere. Moved replicas are in sync and online there.

        `rows` [N] is the order of the replicas then: a permutation within each partition; None: as they are.
        """
        rows = np.arange(self.replica_count) if rows is None else rows
        moved = broker_of != self.broker_of
        return dataclasses.replace(
            self,
            broker_of=broker_of[rows],
            leader=leader,
            in_sync=(self.in_sync | moved)[rows],
            removing=self.removing[rows],
            offline=(self.offline & ~moved)[rows],
            log_dir=np.where(moved, NONE, self.log_dir)[rows],
        )


def build_model(description: ClusterDescription) -> ClusterModel:
    """The model of a description. An impossible description raises `InvalidInput` with the path of the field."""
    topics = sorted(description.topics, key=lambda topic: topic.name)
    _check_names([topic.name for topic in topics])
    brokers = _list_brokers(description)
    ids = np.array([broker.id for broker in brokers], dtype=np.int64)
    table = _ReplicaTable(brokers)
    topic_of: list[int] = []
    for topic_index, topic in enumerate(topics):
        before = -1
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition):
            if partition.partition == before:
                raise InvalidInput("is listed twice", path=_name_path(topic, partition))
            before = partition.partition
            if not partition.replicas:
                continue  # A topic being deleted, or an answer in error: there is nothing to move.
            if len(set(partition.replicas)) != len(partition.replicas):
                problem = f"names a broker twice: {list(partition.replicas)}"
                raise InvalidInput(problem, path=f"{_name_path(topic, partition)}.replicas")
            table.append(partition)
            topic_of.append(topic_index)
    leader = np.array(table.leader, dtype=np.int64)
    rates = (np.array(table.bytes_in), np.array(table.bytes_out)) if description.rate_source else (None, None)
    return ClusterModel(
        brokers=brokers,
        topics=tuple(topic.name for topic in topics),
        topic_of=np.array(topic_of, dtype=np.int64),
        numbers=np.array(table.numbers, dtype=np.int64),
        offsets=np.array(table.offsets, dtype=np.int64),
        broker_of=np.searchsorted(ids, np.array(table.broker_of, dtype=np.int64)),
        leader=np.where(leader == NONE, NONE, np.searchsorted(ids, leader)),
        in_sync=np.array(table.in_sync, dtype=np.bool_),
        offline=np.array(table.offline, dtype=np.bool_),
        log_dir=np.array(table.log_dir, dtype=np.int64),
        size_bytes=np.array(table.sizes, dtype=np.int64),
        size_known=np.array(table.size_known, dtype=np.bool_),
        bytes_in=rates[0],
        bytes_out=rates[1],
        min_isr=np.array([max(1, topic.min_isr) for topic in topics], dtype=np.int64),
        reassigning=np.array(table.reassigning, dtype=np.bool_),
        removing=np.array(table.removing, dtype=np.bool_),
        cluster_id=description.cluster_id,
        controller=description.controller,
        rate_source=description.rate_source,
        problems=tuple(_list_problems(description)),
    )


class _ReplicaTable:
    """The columns of partitions and replicas, row by row. Brokers are ids. A million rows pass here: few calls each."""

    def __init__(self, brokers: tuple[BrokerDescription, ...]) -> None:
        self._dirs_of = {
            broker.id: {log_dir.path: index for index, log_dir in enumerate(broker.log_dirs or ())}
            for broker in brokers
        }
        self.numbers: list[int] = []
        self.offsets: list[int] = [0]
        self.broker_of: list[int] = []
        self.leader: list[int] = []
        self.in_sync: list[bool] = []
        self.offline: list[bool] = []
        self.log_dir: list[int] = []
        self.sizes: list[int] = []
        self.size_known: list[bool] = []
        self.bytes_in: list[float] = []
        self.bytes_out: list[float] = []
        self.reassigning: list[bool] = []
        self.removing: list[bool] = []

    def append(self, partition: PartitionDescription) -> None:
        replicas, isr, offline = partition.replicas, partition.isr, partition.offline
        logs = {log.broker: log for log in partition.logs if not log.is_future}
        leader_log = logs.get(partition.leader)
        if leader_log is not None and is_size(leader_log.size_bytes):
            self.sizes.append(leader_log.size_bytes)
            self.size_known.append(True)
        else:
            sizes = [log.size_bytes for log in logs.values() if is_size(log.size_bytes)]
            self.sizes.append(max(sizes, default=0))
            self.size_known.append(bool(sizes))
        self.numbers.append(partition.partition)
        self.leader.append(partition.leader if partition.leader in replicas else NONE)
        self.bytes_in.append(bound_rate(partition.bytes_in_per_s) or 0.0)
        self.bytes_out.append(bound_rate(partition.bytes_out_per_s) or 0.0)
        self.reassigning.append(bool(partition.adding or partition.removing))
        self.broker_of += replicas
        self.in_sync += [broker in isr for broker in replicas]
        self.offline += [broker in offline for broker in replicas]
        # Without a target nothing is known of its end.
        removing = () if set(replicas) <= set(partition.removing) else partition.removing
        self.removing += [broker in removing for broker in replicas]
        dirs_of = self._dirs_of
        self.log_dir += [
            NONE if (log := logs.get(broker)) is None else dirs_of[broker].get(log.log_dir, NONE) for broker in replicas
        ]
        self.offsets.append(len(self.broker_of))


def _name_path(topic: TopicDescription, partition: PartitionDescription) -> str:
    return f"topics[{topic.name}].partitions[{partition.partition}]"


def _list_brokers(description: ClusterDescription) -> tuple[BrokerDescription, ...]:
    """Registered brokers, and those that only replicas name, by id."""
    known = {broker.id: broker for broker in description.brokers}
    if len(known) != len(description.brokers):
        ids = [broker.id for broker in description.brokers]
        twice = next(broker for broker in ids if ids.count(broker) > 1)
        raise InvalidInput(f"broker {twice} is listed twice", path="brokers")
    for topic in description.topics:
        for partition in topic.partitions:
            for broker in partition.replicas:
                if broker not in known:
                    known[broker] = BrokerDescription(id=broker, is_registered=False, problem="is not registered")
    return tuple(known[broker] for broker in sorted(known))


def _check_names(names: list[str]) -> None:
    for before, name in pairwise(names):
        if before == name:
            raise InvalidInput("is listed twice", path=f"topics[{name}]")


def _list_problems(description: ClusterDescription) -> Iterator[str]:
    yield from description.problems
    for broker in description.brokers:
        if broker.log_dirs is None:
            yield f"broker {broker.id} did not answer: {broker.problem or 'no reason given'}"
    for topic in description.topics:
        if topic.problem:
            yield f"topic {topic.name}: {topic.problem}"
        for partition in topic.partitions:
            if partition.problem:
                yield f"partition {topic.name}-{partition.partition}: {partition.problem}"
            elif not partition.replicas:
                yield f"partition {topic.name}-{partition.partition} has no replicas: it is left out"
