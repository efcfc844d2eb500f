"""Properties of executions on random clusters, plans, limits and faults."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.app.kafka.simulated_admin import SimulatedAdmin
from plimsoll.kafka.executor.executor import Executor
from plimsoll.kafka.executor.record_stores import MemoryExecutionStore
from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOptions
from plimsoll.kafka.model.proposals import Proposal
from plimsoll.local.kafka.cluster import SimulatedKafka
from plimsoll.runtime.virtual_run import VirtualRun
from tests.kafka.executor.simulated_clusters import MB

if TYPE_CHECKING:
    import asyncio

BROKERS = 6
FAULTS = ("kill", "restart", "stop", "crash", "delete", "foreign", "star", "slow")


class Fault(NamedTuple):
    at_s: int
    kind: str
    broker: int


class Case(NamedTuple):
    replicas: list[list[int]]
    targets: list[list[int]]
    sizes: list[int]
    options: ExecutionOptions
    faults: list[Fault]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    factor = draw(st.integers(1, 3))
    count = draw(st.integers(1, 10))
    rows = st.permutations(range(BROKERS)).map(lambda row: list(row[:factor]))
    replicas = [draw(rows) for _ in range(count)]
    options = ExecutionOptions(
        concurrent_partition_movements_per_broker=draw(st.integers(1, 3)),
        max_partition_movements_in_cluster=draw(st.integers(1, 5)),
        replication_throttle=draw(st.sampled_from([None, MB, 3 * MB, 50 * MB])),
        dead_broker_grace_s=draw(st.sampled_from([0.0, 15.0])),
    )
    fault = st.builds(Fault, st.integers(0, 40), st.sampled_from(FAULTS), st.integers(0, BROKERS - 1))
    return Case(
        replicas=replicas,
        targets=[draw(rows) for _ in range(count)],
        sizes=[draw(st.integers(0, 40 * MB)) for _ in range(count)],
        options=options,
        faults=sorted(draw(st.lists(fault, max_size=5))),
    )


class Trial:
    """One case, run second by second, with its invariants checked each time."""

    def __init__(self, case: Case, run: VirtualRun) -> None:
        self.case = case
        self.run = run
        self.kafka = SimulatedKafka(run.clock)
        self.store = MemoryExecutionStore()
        for broker in range(BROKERS):
            self.kafka.add_broker(broker, rack=f"r{broker % 3}", bytes_per_s=10 * MB)
        self.kafka.create_topic("t", case.replicas, size_bytes=case.sizes)
        self.foreign: set[tuple[str, int]] = set()
        self.killed: set[int] = set()
        self.is_starred = False
        self.proposals = tuple(
            Proposal(
                topic="t",
                partition=number,
                old_leader=old[0],
                old_replicas=tuple(old),
                new_replicas=tuple(new),
                size_bytes=size,
            )
            for number, (old, new, size) in enumerate(zip(case.replicas, case.targets, case.sizes, strict=True))
        )
        self.executor = self._build()
        self.task: asyncio.Task[Any] = run.spawn(self.executor.execute("e", self.proposals, case.options))

    def _build(self) -> Executor:
        return Executor(SimulatedAdmin(self.kafka), self.run.clock, self.store)

    def run_to_end(self) -> Any:
        faults = list(self.case.faults)
        for second in range(2_000):
            while faults and faults[0].at_s <= second:
                self._strike(faults.pop(0))
            self.run.advance_by(1)
            self.check()
            if self.task.done() and not faults:
                break
        for broker in list(self.killed):
            self.kafka.start_broker(broker)
        outcome = self.run.run_until(self.task)
        self.run.run_until(self.executor.clean_up())
        return outcome

    def _strike(self, fault: Fault) -> None:
        state = self.kafka.catch_up()
        match fault.kind:
            case "kill" if not self.killed:
                self.killed.add(fault.broker)
                self.kafka.kill_broker(fault.broker)
            case "restart":
                for broker in self.killed:
                    self.kafka.start_broker(broker)
                self.killed.clear()
            case "stop" if not self.task.done():
                self.run.spawn(self.executor.stop())
            case "crash" if not self.task.done():
                self.task.cancel()
                self.run.settle()
                self.executor = self._build()
                self.task = self.run.spawn(self.executor.resume())
            case "delete" if fault.broker == 0:
                if "t" in state.topics:
                    self.kafka.delete_topic("t")
            case "foreign":
                free = [part for part in state.iterate_partitions() if not part.is_reassigning and part.leader >= 0]
                others = [b for b in range(BROKERS) if b not in self.killed]
                if free:
                    target = others[: len(free[0].replicas)]
                    self.foreign.add(free[0].key)
                    self.kafka.alter_reassignments({free[0].key: target})
            case "slow":
                self.kafka.slow_broker(fault.broker, float(MB))

    def check(self) -> None:
        """At every moment: limits hold, no partition has fewer replicas, none twice on a broker, nothing lost."""
        moving = [
            part for part in self.kafka.catch_up().iterate_partitions()
            if part.is_reassigning and part.key not in self.foreign
        ]  # fmt: skip
        options = self.case.options
        assert len(moving) <= options.max_partition_movements_in_cluster
        load = Counter(broker for part in moving for broker in {*part.adding, *part.removing})
        assert max(load.values(), default=0) <= options.concurrent_partition_movements_per_broker
        for part in self.kafka.catch_up().iterate_partitions():
            factor = len(self.case.replicas[part.partition])
            assert len(set(part.target)) == len(part.target) == factor, part
            assert part.isr, part
            for broker in part.isr:
                assert round(part.logs[broker].size) == round(part.end) == self.case.sizes[part.partition]


def read_throttles(kafka: SimulatedKafka) -> list[tuple[str, str]]:
    state = kafka.catch_up()
    names = [("topic", name) for name in state.topics] + [("broker", str(broker)) for broker in state.brokers]
    return [name for name in names if any("throttled" in key for key in state.settings.read(*name))]


@settings(max_examples=150)
@given(cases())
def test_whatever_happens_limits_hold_throttles_go_and_nothing_is_lost(case: Case):
    with VirtualRun() as run:
        trial = Trial(case, run)
        outcome = trial.run_to_end()
        assert read_throttles(trial.kafka) == []
        assert trial.store.is_settled
        trial.check()
        run.advance_by(600)
        state = trial.kafka.catch_up()
        left = [part.key for part in state.iterate_partitions() if part.is_reassigning]
        assert set(left) <= trial.foreign
        for part in state.iterate_partitions():
            assert sorted(part.isr) == sorted(part.replicas), part
        if outcome is not None and outcome.end is ExecutionEnd.COMPLETED and not trial.foreign and "t" in state.topics:
            assert [part.replicas for part in state.iterate_partitions()] == case.targets


@settings(max_examples=60)
@given(cases())
def test_without_faults_every_plan_is_completed_and_again_does_nothing(case: Case):
    with VirtualRun() as run:
        trial = Trial(case._replace(faults=[]), run)
        assert trial.run_to_end().end is ExecutionEnd.COMPLETED
        state = trial.kafka.catch_up()
        assert [part.replicas for part in state.iterate_partitions()] == case.targets
        assert [part.leader for part in state.iterate_partitions()] == [target[0] for target in case.targets]
        sent = trial.kafka.requests["alter_reassignments"]
        again = run.run_until(trial.executor.execute("e2", trial.proposals, case.options))
        assert again.end is ExecutionEnd.COMPLETED
        assert trial.kafka.requests["alter_reassignments"] == sent
