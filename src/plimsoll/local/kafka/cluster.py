"""A simulated Kafka cluster: admin requests with Kafka's errors, and what tests and scenarios do to brokers.

Facts of Kafka 4.3.1 that it keeps: errors of partitions and settings come per item inside a good answer; a broker's
settings are taken by that broker only; cordoning keeps new topics away and no explicit reassignment; the registration
of a live broker can be removed, and its replicas go offline.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.local.kafka.answers import ItemError, NoAnswer, RequestRefused, build_unknown_partition
from plimsoll.local.kafka.brokers import DEFAULT_BYTES_PER_S, DEFAULT_DISK_BYTES, SimulatedBroker, SimulatedLogDir
from plimsoll.local.kafka.partitions import SimulatedPartition
from plimsoll.local.kafka.settings import BROKER, CORDONED, TOPIC, SettingChange
from plimsoll.local.kafka.state import KafkaState, SimulatedTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from plimsoll.core.clock import Clock

    Key = tuple[str, int]
    """A partition: topic and number."""

BYTES_PER_RECORD: Final = 1_000


class ListedReassignment(NamedTuple):
    """A reassignment under way, as ListPartitionReassignments has it."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class SettingEntry(NamedTuple):
    """A setting as DescribeConfigs has it."""

    value: str
    is_dynamic: bool


@dataclass(slots=True)
class _Rejection:
    method: str
    error: RequestRefused | NoAnswer
    times: int


@dataclass(slots=True)
class _ItemFault:
    method: str
    error: ItemError
    times: int
    takes_effect: bool


class SimulatedKafka:
    """A cluster in the time of a clock. Each method first lets time pass up to now."""

    def __init__(self, clock: Clock, *, cluster_id: str = "simulated", session_timeout_s: float = 9.0) -> None:
        self._clock = clock
        self.cluster_id = cluster_id
        self.has_cordons = True
        """Whether the brokers are of Kafka 4.3 or later."""
        self.hidden_topics: set[str] = set()
        """Topics that clients are not permitted to describe."""
        self.shows_quorum = True
        """Whether clients are permitted to describe the metadata quorum."""
        self.state = KafkaState(time_s=clock.monotonic_s(), session_timeout_s=session_timeout_s)
        self.requests: Counter[str] = Counter()
        """The admin requests so far, by name."""
        self.sent_targets: dict[Key, list[tuple[int, ...] | None]] = defaultdict(list)
        """Every target that was ever sent for a partition."""
        self._rejections: list[_Rejection] = []
        self._item_faults: list[_ItemFault] = []

    def catch_up(self) -> KafkaState:
        """The state now."""
        self.state.advance(self._clock.monotonic_s())
        return self.state

    # ---- what happens to the cluster

    def add_broker(
        self,
        broker: int,
        *,
        rack: str = "",
        log_dirs: Mapping[str, int] | None = None,
        bytes_per_s: float = DEFAULT_BYTES_PER_S,
        static_settings: Mapping[str, str] | None = None,
    ) -> None:
        """A new broker registers. `log_dirs`: path → bytes of its volume."""
        dirs = log_dirs or {"/data": DEFAULT_DISK_BYTES}
        self.catch_up().brokers[broker] = SimulatedBroker(
            broker,
            rack=rack,
            log_dirs={path: SimulatedLogDir(path, total) for path, total in dirs.items()},
            bytes_per_s=bytes_per_s,
            static_settings=dict(static_settings or {}),
        )

    def kill_broker(self, broker: int) -> None:
        """Its process ends at once; the controller fences it after the session timeout."""
        state = self.catch_up()
        known = state.brokers[broker]
        known.is_running = False
        known.fenced_at_s = state.time_s + state.session_timeout_s

    def start_broker(self, broker: int) -> None:
        """Its process starts again with its logs, and registers."""
        state = self.catch_up()
        known = state.brokers[broker]
        known.is_running, known.is_registered, known.is_fenced, known.fenced_at_s = True, True, False, None
        state.settle_all()

    def slow_broker(self, broker: int, bytes_per_s: float) -> None:
        self.catch_up().brokers[broker].bytes_per_s = bytes_per_s

    def close_log_dir(self, broker: int, path: str) -> None:
        """A volume fails."""
        state = self.catch_up()
        state.brokers[broker].log_dirs[path].is_online = False
        state.settle_all()

    def reject(self, method: str, error: RequestRefused | NoAnswer, *, times: int = 1) -> None:
        """The next requests of this name fail as a whole, without effect."""
        self._rejections.append(_Rejection(method, error, times))

    def fail_items(self, method: str, error: ItemError, *, times: int = 1, takes_effect: bool = False) -> None:
        """The next items of requests of this name get this error inside a good answer."""
        self._item_faults.append(_ItemFault(method, error, times, takes_effect))

    def _apply_item(self, method: str, apply: Callable[[], ItemError | None]) -> ItemError | None:
        """Apply one item of a request, unless its fault is due."""
        for fault in self._item_faults:
            if fault.method == method and fault.times > 0:
                fault.times -= 1
                if fault.takes_effect:
                    apply()
                return fault.error
        return apply()

    def create_topic(
        self,
        name: str,
        replicas: Sequence[Sequence[int]],
        *,
        size_bytes: float | Sequence[float] = 0.0,
        is_internal: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """A topic with these replicas per partition, in sync, with this much data."""
        state = self.catch_up()
        state.topics[name] = SimulatedTopic(name, is_internal=is_internal)
        self.add_partitions(name, replicas, size_bytes=size_bytes)
        for key, value in (settings or {}).items():
            problem = state.settings.change(TOPIC, name, [SettingChange(key, "SET", value)])
            if problem is not None:
                raise ValueError(problem)

    def add_partitions(
        self, name: str, replicas: Sequence[Sequence[int]], *, size_bytes: float | Sequence[float] = 0.0
    ) -> None:
        """Further partitions of a topic, in sync, with this much data each."""
        state = self.catch_up()
        topic = state.topics[name]
        for index, brokers in enumerate(replicas):
            size = float(size_bytes if isinstance(size_bytes, int | float) else size_bytes[index])
            number = len(topic.partitions)
            partition = SimulatedPartition(name, number, list(brokers), brokers[0], list(brokers), {}, end=size)
            topic.partitions[number] = partition
            for broker in brokers:
                state.create_log(partition, broker, size=size)
            state.settle(partition)

    def place_topic(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int,
        size_bytes: float = 0.0,
        is_internal: bool = False,
    ) -> None:
        """A topic as a user creates it: on brokers that are alive and not cordoned, of alternating racks."""
        state = self.catch_up()
        if name in state.topics:
            raise RequestRefused("TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists.")
        free = order_by_rack(
            broker
            for broker in state.brokers.values()
            if broker.is_alive and set(broker.log_dirs) - state.list_cordoned(broker)
        )
        if replication_factor > len(free):
            raise RequestRefused("INVALID_REPLICATION_FACTOR", f"{len(free)} brokers for {replication_factor} replicas")
        replicas = [
            [free[(number + position) % len(free)] for position in range(replication_factor)]
            for number in range(partitions)
        ]
        self.create_topic(name, replicas, size_bytes=size_bytes, is_internal=is_internal)

    def delete_topic(self, name: str) -> None:
        self.catch_up().remove_topic(name)

    def set_rates(self, topic: str, partition: int, *, bytes_in_per_s: float, bytes_out_per_s: float = 0.0) -> None:
        state = self.catch_up()
        state.set_rates(state.topics[topic].partitions[partition], bytes_in_per_s, bytes_out_per_s)

    # ---- admin requests: reading

    def receive(self, method: str, *, broker: int | None = None) -> KafkaState:
        """A request arrives: at any broker, or at one that must answer."""
        state = self.catch_up()
        self.requests[method] += 1
        for rejection in self._rejections:
            if rejection.method == method and rejection.times > 0:
                rejection.times -= 1
                raise rejection.error
        answering = [known for known in state.brokers.values() if known.answers]
        if not answering:
            raise NoAnswer("no broker answers")
        if broker is not None and broker not in {known.id for known in answering}:
            raise NoAnswer(f"broker {broker} does not answer")
        return state

    def list_reassignments(self) -> dict[Key, ListedReassignment]:
        state = self.receive("list_reassignments")
        return {
            partition.key: ListedReassignment(
                tuple(partition.replicas), tuple(partition.adding), tuple(partition.removing)
            )
            for partition in state.iterate_partitions()
            if partition.is_reassigning
        }

    def describe_settings(
        self, resources: Iterable[tuple[str, str]], keys: Iterable[str]
    ) -> dict[tuple[str, str], dict[str, SettingEntry] | ItemError]:
        state = self.receive("describe_configs")
        wanted = tuple(keys)
        return {(kind, name): self._describe_resource(state, kind, name, wanted) for kind, name in resources}

    def _describe_resource(
        self, state: KafkaState, kind: str, name: str, keys: tuple[str, ...]
    ) -> dict[str, SettingEntry] | ItemError:
        problem = _check_resource(state, kind, name)
        if problem is not None:
            return problem
        values = {key: SettingEntry(value, is_dynamic=True) for key, value in state.settings.read(kind, name).items()}
        if kind == BROKER:
            static = state.brokers[int(name)].static_settings
            values = {key: SettingEntry(value, is_dynamic=False) for key, value in static.items()} | values
            if self.has_cordons:  # seen on 4.3.1: the log directories show the value, DescribeConfigs does not
                values[CORDONED] = SettingEntry("", is_dynamic=False)
        return {key: value for key, value in values.items() if key in keys}

    # ---- admin requests: writing

    def alter_reassignments(self, targets: Mapping[Key, Sequence[int] | None]) -> dict[Key, ItemError | None]:
        state = self.receive("alter_reassignments")
        return {
            key: self._apply_item("alter_reassignments", partial(self._reassign, state, key, target))
            for key, target in targets.items()
        }

    def _reassign(self, state: KafkaState, key: Key, target: Sequence[int] | None) -> ItemError | None:
        self.sent_targets[key].append(None if target is None else tuple(target))
        partition = state.find_partition(*key)
        if partition is None:
            return build_unknown_partition()
        if target is None:
            if not partition.is_reassigning:
                return ItemError("NO_REASSIGNMENT_IN_PROGRESS", "No partition reassignment is in progress.")
            if not partition.can_revert():
                return ItemError("INVALID_REPLICA_ASSIGNMENT", "No in-sync replica would be left.")
            partition.revert_reassignment()
        else:
            unknown = [broker for broker in target if broker not in state.brokers or not _is_known(state, broker)]
            if not target or unknown or len(set(target)) < len(target):
                message = f"The manual partition assignment {list(target)} is empty, has duplicates or unknown brokers"
                return ItemError("INVALID_REPLICA_ASSIGNMENT", message)
            partition.begin_reassignment(target)
        state.settle(partition)
        return None

    def elect_preferred_leaders(self, partitions: Iterable[Key]) -> dict[Key, ItemError | None]:
        state = self.receive("elect_preferred_leaders")
        return {key: self._apply_item("elect_preferred_leaders", partial(_elect, state, key)) for key in partitions}

    def alter_settings(
        self, changes: Mapping[tuple[str, str], Sequence[SettingChange]]
    ) -> dict[tuple[str, str], ItemError | None]:
        state = self.receive("alter_configs")
        return {
            (kind, name): self._apply_item("alter_configs", partial(_change_settings, state, kind, name, changed))
            for (kind, name), changed in changes.items()
        }

    def alter_replica_log_dirs(
        self, moves: Iterable[tuple[Key, int, str]]
    ) -> dict[tuple[Key, int, str], ItemError | None]:
        state = self.receive("alter_replica_log_dirs")
        return {
            (key, broker, path): self._apply_item(
                "alter_replica_log_dirs", partial(_move_log, state, key, broker, path)
            )
            for key, broker, path in moves
        }

    def read_end_offsets(self, partitions: Iterable[Key]) -> dict[Key, int]:
        state = self.receive("read_end_offsets")
        found = ((key, state.find_partition(*key)) for key in partitions)
        return {
            key: int(partition.end) // BYTES_PER_RECORD
            for key, partition in found
            if partition is not None and partition.leader >= 0
        }

    def unregister_broker(self, broker: int) -> ItemError | None:
        """As the controller does it: without a look at the broker's replicas or its process."""
        state = self.receive("unregister_broker")
        known = state.brokers.get(broker)
        if known is None or not known.is_registered:
            return ItemError("BROKER_ID_NOT_REGISTERED", f"Broker ID {broker} is not currently registered")
        known.is_registered, known.fenced_at_s = False, None
        state.settle_all()
        return None


def order_by_rack(brokers: Iterable[SimulatedBroker]) -> list[int]:
    """The ids of brokers, one of each rack in turn: neighbours in the list share a rack only if they must."""
    by_rack: dict[str, list[int]] = defaultdict(list)
    for broker in brokers:
        by_rack[broker.rack].append(broker.id)
    rows = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for row in rows for broker in row if broker is not None]


def _is_known(state: KafkaState, broker: int) -> bool:
    return state.brokers[broker].is_registered


def _check_resource(state: KafkaState, kind: str, name: str) -> ItemError | None:
    if kind == TOPIC:
        return None if name in state.topics else build_unknown_partition()
    broker = state.brokers.get(int(name))
    if broker is None or not broker.answers:
        return ItemError("REQUEST_TIMED_OUT", f"broker {name} does not answer, and its settings are its own")
    return None


def _change_settings(state: KafkaState, kind: str, name: str, changes: Sequence[SettingChange]) -> ItemError | None:
    return _check_resource(state, kind, name) or state.settings.change(kind, name, changes)


def _elect(state: KafkaState, key: tuple[str, int]) -> ItemError | None:
    partition = state.find_partition(*key)
    if partition is None:
        return build_unknown_partition()
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        return ItemError("ELECTION_NOT_NEEDED", "Leader election not needed for topic partition.")
    if preferred not in partition.isr or not state.can_host(partition, preferred):
        return ItemError("PREFERRED_LEADER_NOT_AVAILABLE", "The preferred leader was not available.")
    partition.leader = preferred
    state.settle(partition)
    return None


def _move_log(state: KafkaState, key: tuple[str, int], broker: int, path: str) -> ItemError | None:
    partition = state.find_partition(*key)
    known = state.brokers.get(broker)
    if partition is None:
        return build_unknown_partition()
    if known is None or not known.is_alive:
        return ItemError("REQUEST_TIMED_OUT", f"broker {broker} does not answer")
    if path not in known.log_dirs:
        return ItemError("LOG_DIR_NOT_FOUND", "The user-specified log directory is not found in the broker config.")
    if not known.log_dirs[path].is_online:
        return ItemError("KAFKA_STORAGE_ERROR", f"Log directory {path} is offline")
    log = partition.logs.get(broker)
    if log is None:
        return ItemError("REPLICA_NOT_AVAILABLE", "The replica is not available for the requested topic-partition.")
    if log.future_path and log.future_path != path:
        state.end_future_log(partition, broker, is_complete=False)
    if log.path != path and not log.future_path:
        log.future_path, log.future_size = path, 0.0
    state.settle(partition)
    return None
