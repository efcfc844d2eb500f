"""How often the executor looks at the brokers: soon after a change, seldom while nothing happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.app.kafka.simulated_admin import SimulatedAdmin
from plimsoll.kafka.executor.executor import Executor
from plimsoll.kafka.executor.pacing import REST, SOON, CheckPace
from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOptions
from plimsoll.runtime.virtual_run import VirtualRun
from tests.kafka.executor.simulated_clusters import MB, Cluster

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.kafka.brokers.ports import Reassignment
    from plimsoll.kafka.model.description import TopicPartition
    from plimsoll.local.kafka.cluster import SimulatedKafka


class SlowAdmin(SimulatedAdmin):
    """Notes when reassignments are listed, and takes its time to list them."""

    def __init__(self, kafka: SimulatedKafka, clock: Clock, *, answer_s: float = 0.0) -> None:
        super().__init__(kafka)
        self._clock = clock
        self._answer_s = answer_s
        self.checks_s: list[float] = []

    async def list_reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        self.checks_s.append(self._clock.monotonic_s())
        if self._answer_s:
            await self._clock.sleep(self._answer_s)
        return await super().list_reassignments()

    @property
    def pauses_s(self) -> list[float]:
        return [after - before for before, after in zip(self.checks_s, self.checks_s[1:], strict=False)]


def run_add(run: VirtualRun, admin: SlowAdmin, cluster: Cluster, options: ExecutionOptions) -> None:
    executor = Executor(admin, run.clock, cluster.store)
    outcome = run.run_until(executor.execute("e1", cluster.propose_add(), options))
    assert outcome.end is ExecutionEnd.COMPLETED, outcome
    cluster.check_nothing_left()


def test_small_partitions_follow_each_other_without_a_pause():
    with VirtualRun() as run:
        cluster = Cluster(run.clock, partitions=100, size=1000)
        admin = SlowAdmin(cluster.kafka, run.clock)
        run_add(run, admin, cluster, ExecutionOptions(concurrent_partition_movements_per_broker=2))
        batches = len(cluster.propose_remove()) / 2
        assert batches == 25
        assert len(admin.checks_s) <= 3 * batches
        assert admin.checks_s[-1] - admin.checks_s[0] <= 2 * SOON * batches


def test_while_nothing_changes_the_checks_are_an_interval_apart():
    with VirtualRun() as run:
        cluster = Cluster(run.clock, partitions=2, size=600 * MB)
        admin = SlowAdmin(cluster.kafka, run.clock)
        run_add(run, admin, cluster, ExecutionOptions())
        assert admin.checks_s[-1] - admin.checks_s[0] > 50
        assert admin.pauses_s[:5] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0])
        assert admin.pauses_s[5:-1] == pytest.approx([1.0] * len(admin.pauses_s[5:-1]))


def test_a_longer_interval_makes_all_waits_longer():
    with VirtualRun() as run:
        cluster = Cluster(run.clock, partitions=2, size=600 * MB)
        admin = SlowAdmin(cluster.kafka, run.clock)
        run_add(run, admin, cluster, ExecutionOptions(progress_check_interval_s=10.0))
        assert admin.pauses_s[:5] == pytest.approx([1, 2, 4, 8, 10])


def test_brokers_that_answer_slowly_are_asked_less():
    with VirtualRun() as run:
        cluster = Cluster(run.clock, partitions=40, size=1000)
        admin = SlowAdmin(cluster.kafka, run.clock, answer_s=0.2)
        run_add(run, admin, cluster, ExecutionOptions(concurrent_partition_movements_per_broker=2))
        assert min(admin.pauses_s[:-1]) >= 0.2 * (1 + REST) - 1e-6


def test_a_change_ends_the_growth_of_the_waits():
    with VirtualRun() as run:
        pace = CheckPace(run.clock)
        assert [pace.choose_wait(1.0) for _ in range(6)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
        pace.reset()
        assert pace.choose_wait(1.0) == pytest.approx(SOON)
