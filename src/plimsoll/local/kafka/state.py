"""The state of a simulated cluster and its course in time: fencing, replication, volumes that run full.

Between two changes all rates are constant, so time passes in steps from one event to the next: exact, and independent
of how often the state is read.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.local.kafka.partitions import (
    ReplicaLog,
    SimulatedPartition,
)
from plimsoll.local.kafka.replication import DISK, NETWORK, THROTTLE, Fetch, share_rates
from plimsoll.local.kafka.settings import (
    ALL,
    BROKER,
    CORDONED,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    TOPIC,
    DynamicSettings,
    lists_replica,
    split_list,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.kafka.brokers import SimulatedBroker, SimulatedLogDir

_WHOLE_BYTE: Final = 0.5
"""A replica that lacks less than this is in sync: rates are fractions."""


@dataclass(slots=True)
class SimulatedTopic:
    """A topic with its partitions by number."""

    name: str
    partitions: dict[int, SimulatedPartition] = field(default_factory=dict)
    is_internal: bool = False


class KafkaState:
    """Brokers, topics and settings, up to `time_s` on the scale of the caller's clock."""

    def __init__(self, *, time_s: float, session_timeout_s: float) -> None:
        self.brokers: dict[int, SimulatedBroker] = {}
        self.topics: dict[str, SimulatedTopic] = {}
        self.settings = DynamicSettings()
        self.voters: frozenset[int] | None = None
        """The voters of the metadata quorum; None: it is not formed yet."""
        self.time_s = time_s
        self.session_timeout_s = session_timeout_s
        self._catching_up: dict[tuple[str, int], SimulatedPartition] = {}
        self._producing: dict[tuple[str, int], SimulatedPartition] = {}

    # ---- reading

    def find_partition(self, topic: str, partition: int) -> SimulatedPartition | None:
        known = self.topics.get(topic)
        return None if known is None else known.partitions.get(partition)

    def iterate_partitions(self) -> Iterator[SimulatedPartition]:
        for topic in self.topics.values():
            yield from topic.partitions.values()

    def can_host(self, partition: SimulatedPartition, broker: int) -> bool:
        """Whether the controller takes the broker for alive, and the directory of its replica is online."""
        known = self.brokers.get(broker)
        if known is None or not known.is_active:
            return False
        log = partition.logs.get(broker)
        return log is None or known.log_dirs[log.path].is_online

    def has_logs(self, broker: int) -> bool:
        """Whether a broker holds the log of any replica."""
        return any(broker in partition.logs for partition in self.iterate_partitions())

    def list_cordoned(self, broker: SimulatedBroker) -> frozenset[str]:
        value = self.settings.get(BROKER, str(broker.id), CORDONED)
        return frozenset(broker.log_dirs) if value == ALL else frozenset(split_list(value))

    # ---- changes

    def settle(self, partition: SimulatedPartition) -> None:
        """Do what the controller does after any change: shrink, elect, complete, create and delete logs."""
        for broker in [broker for broker in partition.isr if not self.can_host(partition, broker)]:
            partition.shrink_isr(broker)
        partition.elect_leader(lambda broker: self.can_host(partition, broker))
        if partition.is_reassigning and partition.can_complete():
            partition.complete_reassignment()
            partition.elect_leader(lambda broker: self.can_host(partition, broker))
        self._place_logs(partition)
        self._watch(partition)

    def settle_all(self) -> None:
        for partition in self.iterate_partitions():
            self.settle(partition)

    def set_rates(self, partition: SimulatedPartition, bytes_in_per_s: float, bytes_out_per_s: float) -> None:
        partition.bytes_in_per_s, partition.bytes_out_per_s = bytes_in_per_s, bytes_out_per_s
        self._watch(partition)

    def remove_topic(self, name: str) -> None:
        for partition in self.topics.pop(name).partitions.values():
            for broker in list(partition.logs):
                self._delete_log(partition, broker)
            self._catching_up.pop(partition.key, None)
            self._producing.pop(partition.key, None)
        self.settings.remove(TOPIC, name)

    def create_log(self, partition: SimulatedPartition, broker: int, *, size: float = 0.0, path: str = "") -> None:
        known = self.brokers[broker]
        chosen = path or known.choose_log_dir(self._count_replicas(broker), self.list_cordoned(known))
        partition.logs[broker] = ReplicaLog(chosen, size)
        known.log_dirs[chosen].used += size

    def _count_replicas(self, broker: int) -> Counter[str]:
        if len(self.brokers[broker].log_dirs) == 1:
            return Counter()
        logs = (partition.logs.get(broker) for partition in self.iterate_partitions())
        return Counter(log.path for log in logs if log is not None)

    def _place_logs(self, partition: SimulatedPartition) -> None:
        for broker in partition.replicas:
            if broker not in partition.logs and self._is_alive(broker):
                self.create_log(partition, broker)
        for broker in [broker for broker in partition.logs if broker not in partition.replicas]:
            self._delete_log(partition, broker)

    def _delete_log(self, partition: SimulatedPartition, broker: int) -> None:
        log = partition.logs.pop(broker)
        known = self.brokers.get(broker)
        if known is not None:
            known.log_dirs[log.path].used -= log.size
            if log.future_path:
                known.log_dirs[log.future_path].used -= log.future_size

    def end_future_log(self, partition: SimulatedPartition, broker: int, *, is_complete: bool) -> None:
        """A move within a broker ends: the future log takes the place of the log, or is deleted."""
        log, known = partition.logs[broker], self.brokers[broker]
        if is_complete:
            known.log_dirs[log.path].used -= log.size
            log.path, log.size = log.future_path, log.future_size
        else:
            known.log_dirs[log.future_path].used -= log.future_size
        log.future_path, log.future_size = "", 0.0
        self._watch(partition)

    def _watch(self, partition: SimulatedPartition) -> None:
        key = partition.key
        if partition.lagging or any(log.future_path for log in partition.logs.values()):
            self._catching_up[key] = partition
        else:
            self._catching_up.pop(key, None)
        if partition.bytes_in_per_s > 0:
            self._producing[key] = partition
        else:
            self._producing.pop(key, None)

    # ---- time

    def advance(self, now_s: float) -> None:
        """Let time pass up to `now_s`."""
        while True:
            self._fence_due_brokers()
            rates = share_rates(self._list_fetches())
            step = min(now_s - self.time_s, self._find_next_event(rates))
            if step > 0:
                self._grow(step, rates)
                self.time_s += step
            if not self._finish_fetches(rates) and self.time_s >= now_s:
                break
        self._fence_due_brokers()

    def _fence_due_brokers(self) -> None:
        due = [
            broker
            for broker in self.brokers.values()
            if broker.fenced_at_s is not None and broker.fenced_at_s <= self.time_s
        ]
        for broker in due:
            broker.is_fenced, broker.fenced_at_s = True, None
        if due:
            self.settle_all()

    def _list_fetches(self) -> Iterator[Fetch]:
        for partition in self._catching_up.values():
            for broker, log in partition.logs.items():
                known = self.brokers[broker]
                if not (known.is_alive and self.can_host(partition, broker)):
                    continue
                if log.future_path:
                    limits = ((f"{DISK} {broker}", known.bytes_per_s),)
                    yield Fetch(partition, broker, broker, limits, is_local=True)
                if broker not in partition.isr and self._has_reachable_leader(partition):
                    yield Fetch(partition, partition.leader, broker, tuple(self._list_limits(partition, broker)))

    def _is_alive(self, broker: int) -> bool:
        return broker in self.brokers and self.brokers[broker].is_alive

    def _has_reachable_leader(self, partition: SimulatedPartition) -> bool:
        return self._is_alive(partition.leader) and self.can_host(partition, partition.leader)

    def _takes_records(self, partition: SimulatedPartition) -> bool:
        """Whether producers that wait for all in-sync replicas get on."""
        return self._has_reachable_leader(partition) and all(self._is_alive(broker) for broker in partition.isr)

    def _list_limits(self, partition: SimulatedPartition, broker: int) -> Iterator[tuple[str, float]]:
        sides = ((partition.leader, LEADER_REPLICAS, LEADER_RATE), (broker, FOLLOWER_REPLICAS, FOLLOWER_RATE))
        for side, list_key, rate_key in sides:
            yield f"{NETWORK} {rate_key} {side}", self.brokers[side].bytes_per_s
            listed = self.settings.get(TOPIC, partition.topic, list_key)
            rate = self.settings.get(BROKER, str(side), rate_key)
            if rate and listed and lists_replica(listed, partition.partition, side):
                yield f"{THROTTLE} {rate_key} {side}", float(rate)

    def _find_next_event(self, rates: list[tuple[Fetch, float]]) -> float:
        """Seconds until a broker is fenced, a replica has caught up or a volume is full."""
        events = [
            broker.fenced_at_s - self.time_s for broker in self.brokers.values() if broker.fenced_at_s is not None
        ]
        events += [_estimate_catch_up_s(fetch, rate) for fetch, rate in rates]
        growth: dict[tuple[int, str], float] = {}
        for broker, path, rate in self._list_growth(rates):
            growth[broker, path] = growth.get((broker, path), 0.0) + rate
        for (broker, path), rate in growth.items():
            log_dir = self.brokers[broker].log_dirs[path]
            if rate > 0 and log_dir.is_online:
                events.append(max(log_dir.total_bytes - log_dir.used, 0.0) / rate)
        return max(min(events, default=math.inf), 0.0)

    def _list_growth(self, rates: list[tuple[Fetch, float]]) -> Iterator[tuple[int, str, float]]:
        for partition in self._producing.values():
            if self._takes_records(partition):
                for broker in partition.isr:
                    yield broker, partition.logs[broker].path, partition.bytes_in_per_s
        for fetch, rate in rates:
            log = fetch.partition.logs[fetch.destination]
            yield fetch.destination, log.future_path if fetch.is_local else log.path, rate

    def _grow(self, seconds: float, rates: list[tuple[Fetch, float]]) -> None:
        for partition in self._producing.values():
            if self._takes_records(partition):
                grown = partition.bytes_in_per_s * seconds
                partition.end += grown
                for broker in partition.isr:
                    log = partition.logs[broker]
                    log.size += grown
                    self.brokers[broker].log_dirs[log.path].used += grown
        for fetch, rate in rates:
            log = fetch.partition.logs[fetch.destination]
            if fetch.is_local:
                grown = min(rate * seconds, log.size - log.future_size)
                log.future_size += grown
                self._find_dir(fetch.destination, log.future_path).used += grown
            else:
                grown = min(rate * seconds, max(fetch.partition.end - log.size, 0.0))
                log.size += grown
                self._find_dir(fetch.destination, log.path).used += grown

    def _find_dir(self, broker: int, path: str) -> SimulatedLogDir:
        return self.brokers[broker].log_dirs[path]

    def _finish_fetches(self, rates: list[tuple[Fetch, float]]) -> bool:
        """Replicas that have caught up join the ISR; full volumes go offline. Whether anything changed."""
        has_changed = self._close_full_dirs(rates)
        for fetch, _ in rates:
            partition, broker = fetch.partition, fetch.destination
            log = partition.logs.get(broker)
            if log is None or not self.can_host(partition, broker):
                continue
            if fetch.is_local:
                if log.future_path and log.size - log.future_size < _WHOLE_BYTE:
                    self.end_future_log(partition, broker, is_complete=True)
                    has_changed = True
            elif broker not in partition.isr and partition.end - log.size < _WHOLE_BYTE:
                partition.expand_isr(broker)
                self.settle(partition)
                has_changed = True
        return has_changed

    def _close_full_dirs(self, rates: list[tuple[Fetch, float]]) -> bool:
        full = {
            (broker, path)
            for broker, path, rate in self._list_growth(rates)
            if rate > 0 and self._find_dir(broker, path).is_online
            if self._find_dir(broker, path).used >= self._find_dir(broker, path).total_bytes - _WHOLE_BYTE
        }
        for broker, path in full:
            self._find_dir(broker, path).is_online = False
        if full:
            self.settle_all()
        return bool(full)


def _estimate_catch_up_s(fetch: Fetch, rate: float) -> float:
    log = fetch.partition.logs[fetch.destination]
    if fetch.is_local:
        missing, closing = log.size - log.future_size, rate
    else:
        missing, closing = fetch.partition.end - log.size, rate - fetch.partition.bytes_in_per_s
    if missing < _WHOLE_BYTE:
        return 0.0
    return missing / closing if closing > 0 else math.inf
