"""Simulated clusters to execute on: three brokers and a fourth, with plans that fill or empty it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plimsoll.app.kafka.simulated_admin import SimulatedAdmin
from plimsoll.kafka.executor.executor import Executor
from plimsoll.kafka.executor.record_stores import MemoryExecutionStore
from plimsoll.kafka.model.executions import ExecutionOptions
from plimsoll.kafka.model.proposals import Proposal
from plimsoll.local.kafka.cluster import SimulatedKafka
from plimsoll.local.kafka.settings import SettingChange
from plimsoll.runtime.virtual_run import VirtualRun

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Collection, Coroutine, Iterator, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.kafka.model.description import TopicDescription
    from plimsoll.kafka.model.executions import ExecutionOutcome
    from plimsoll.local.kafka.partitions import SimulatedPartition

MB = 1_000_000
LEADER_LIST = "leader.replication.throttled.replicas"
FOLLOWER_LIST = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LISTS = (LEADER_LIST, FOLLOWER_LIST)
RATES = (LEADER_RATE, FOLLOWER_RATE)
NEW = 3
THROTTLED = ExecutionOptions(replication_throttle=5 * MB)


class Cluster:
    """What outlives a process: the brokers and the record."""

    def __init__(
        self, clock: Clock, *, partitions: int = 6, brokers: int = 4, size: int = 20 * MB, on_new: bool = False
    ) -> None:
        self.clock = clock
        self.kafka = SimulatedKafka(clock)
        self.store = MemoryExecutionStore()
        for broker in range(brokers):
            self.kafka.add_broker(broker, rack=f"r{broker % 3}", bytes_per_s=10 * MB)
        replicas = [[number % 3, (number + 1) % 3, (number + 2) % 3] for number in range(partitions)]
        if on_new:
            replicas = [[NEW, row[1], row[2]] if number % 2 else row for number, row in enumerate(replicas)]
        self.kafka.create_topic("a", replicas[: partitions // 2], size_bytes=size)
        self.kafka.create_topic("b", replicas[partitions // 2 :], size_bytes=size)

    @property
    def admin(self) -> SimulatedAdmin:
        return SimulatedAdmin(self.kafka)

    def build_executor(self, **options: Any) -> Executor:
        return Executor(self.admin, self.clock, self.store, **options)

    # ---- plans

    def propose(self, topic: str, number: int, *new: int) -> Proposal:
        partition = self.partition(topic, number)
        return Proposal(
            topic=topic,
            partition=number,
            old_leader=partition.leader,
            old_replicas=tuple(partition.replicas),
            new_replicas=new,
            size_bytes=int(partition.end),
        )

    def propose_add(self) -> tuple[Proposal, ...]:
        """Every second partition gives its first replica to the new broker."""
        return tuple(
            self.propose(*part.key, NEW, *part.replicas[1:])
            for part in self.partitions()
            if part.partition % 2 == 0 and NEW not in part.replicas
        )

    def propose_remove(self) -> tuple[Proposal, ...]:
        """Every replica of the new broker goes where the partition is not."""
        return tuple(
            self.propose(*part.key, *[_find_other(part.replicas) if b == NEW else b for b in part.replicas])
            for part in self.partitions()
            if NEW in part.replicas
        )

    # ---- reading

    def partitions(self) -> list[SimulatedPartition]:
        return list(self.kafka.catch_up().iterate_partitions())

    def partition(self, topic: str, number: int) -> SimulatedPartition:
        return self.kafka.catch_up().topics[topic].partitions[number]

    def assignment(self) -> dict[tuple[str, int], tuple[list[int], int]]:
        return {part.key: (part.replicas, part.leader) for part in self.partitions()}

    def throttles(self) -> dict[tuple[str, str], dict[str, str]]:
        """Every throttle setting on the cluster, also empty ones."""
        state = self.kafka.catch_up()
        found = {("topic", name): state.settings.read("topic", name) for name in state.topics}
        found |= {("broker", str(broker)): state.settings.read("broker", str(broker)) for broker in state.brokers}
        kept = {name: {key: v for key, v in values.items() if "throttled" in key} for name, values in found.items()}
        return {name: values for name, values in kept.items() if values}

    def rates(self) -> set[str]:
        """The values of all throttle rates."""
        return {v for (kind, _), values in self.throttles().items() if kind == "broker" for v in values.values()}

    def set(self, kind: str, name: str, key: str, value: str) -> None:
        error = self.kafka.catch_up().settings.change(kind, name, [SettingChange(key, "SET", value)])
        assert error is None, error

    def check_nothing_left(self) -> None:
        assert [part.key for part in self.partitions() if part.is_reassigning] == []
        assert self.throttles() == {}
        assert self.store.is_settled

    def check_in_sync(self) -> None:
        for part in self.partitions():
            assert sorted(part.isr) == sorted(part.replicas), part
            assert len(set(part.replicas)) == len(part.replicas), part
            assert {round(log.size) for log in part.logs.values()} == {round(part.end)}, part


class LaggingAdmin(SimulatedAdmin):
    """Answers about topics with what they were some seconds ago, as a broker whose metadata is behind."""

    def __init__(self, kafka: SimulatedKafka, clock: Clock, *, lag_s: float) -> None:
        super().__init__(kafka)
        self._clock = clock
        self._lag_s = lag_s
        self._known: dict[str, list[tuple[float, TopicDescription]]] = {}

    async def describe_topics(
        self, names: Collection[str] | None = None, *, with_min_isr: bool = False
    ) -> tuple[TopicDescription, ...]:
        now = self._clock.monotonic_s()
        answer = []
        for topic in await super().describe_topics(names, with_min_isr=with_min_isr):
            known = self._known.setdefault(topic.name, [])
            known.append((now, topic))
            while len(known) > 1 and known[1][0] <= now - self._lag_s:
                known.pop(0)
            answer.append(known[0][1])
        return tuple(answer)


class Running:
    """A cluster and its virtual time, for tests that look into an execution while it runs."""

    def __init__(self, run: VirtualRun, **options: Any) -> None:
        self.run = run
        self.cluster = Cluster(run.clock, **options)
        self.kafka = self.cluster.kafka
        self.executor = self.cluster.build_executor()

    def start(self, proposals: Sequence[Proposal], options: ExecutionOptions = THROTTLED) -> asyncio.Task[Any]:
        task = self.run.spawn(self.executor.execute("e1", proposals, options))
        self.run.settle()
        return task

    def finish(self, task: asyncio.Task[ExecutionOutcome]) -> ExecutionOutcome:
        return self.run.run_until(task)

    def until(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.run.run_until(work)


@contextmanager
def run_cluster(**options: Any) -> Iterator[Running]:
    with VirtualRun() as run:
        yield Running(run, **options)


def _find_other(replicas: Sequence[int]) -> int:
    return next(broker for broker in range(NEW) if broker not in replicas)
