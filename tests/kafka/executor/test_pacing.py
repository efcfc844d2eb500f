"""How often the executor looks at the brokers: soon after a change, seldom while nothing happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.app.kafka.simulated_admin import SimulatedAdmin
from plimsoll.kafka.executor.executor import Executor
from plimsoll.kafka.executor.pacing import LATENESS, REST, SOON, CheckPace
from plimsoll.kafka.executor.phases.look_times import QUIET_INTERVALS
from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOptions
from plimsoll.runtime.virtual_run import VirtualRun
from tests.kafka.executor.simulated_clusters import MB, Cluster

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.kafka.brokers.ports import Reassignment
    from plimsoll.kafka.model.description import TopicDescription, TopicPartition
    from plimsoll.local.kafka.cluster import SimulatedKafka


class SlowAdmin(SimulatedAdmin):
    """Notes when reassignments are listed, and takes its time to list them."""

    def __init__(self, kafka: SimulatedKafka, clock: Clock, *, answer_s: float = 0.0) -> None:
        super().__init__(kafka)
        self._clock = clock
        self._answer_s = answer_s
        self.checks_s: list[float] = []
        self.topic_reads = 0

    async def list_reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        self.checks_s.append(self._clock.monotonic_s())
        if self._answer_s:
            await self._clock.sleep(self._answer_s)
        return await super().list_reassignments()

    async def describe_topics(
        self, names: Collection[str] | None = None, *, with_min_isr: bool = False
    ) -> tuple[TopicDescription, ...]:
        self.topic_reads += 1
        return await super().describe_topics(names, with_min_isr=with_min_isr)

    @property
    def pauses(self) -> list[tuple[float, float]]:
        return list(zip(self.checks_s, self.pauses_s, strict=False))

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
        assert admin.pauses_s[:5] == pytest.approx([SOON] * 5)
        late = [pause for at_s, pause in admin.pauses if at_s - admin.checks_s[0] >= 10.0 / LATENESS * SOON]
        assert late
        assert late[:-1] == pytest.approx([1.0] * len(late[:-1]))


def test_a_longer_interval_makes_all_waits_longer():
    with VirtualRun() as run:
        cluster = Cluster(run.clock, partitions=2, size=600 * MB)
        admin = SlowAdmin(cluster.kafka, run.clock)
        run_add(run, admin, cluster, ExecutionOptions(progress_check_interval_s=10.0))
        assert admin.pauses_s[:5] == pytest.approx([10 * SOON] * 5)


def test_the_end_of_a_movement_is_noticed_within_a_share_of_its_time():
    with VirtualRun() as run:
        for size in (3 * MB, 30 * MB, 80 * MB):
            cluster = Cluster(run.clock, partitions=2, size=size)
            admin = SlowAdmin(cluster.kafka, run.clock)
            began_s = run.clock.monotonic_s()
            run_add(run, admin, cluster, ExecutionOptions())
            took_s = 2 * size / (10 * MB)  # two movements to one broker
            assert run.clock.monotonic_s() - began_s <= took_s * (1 + LATENESS) + 2 * SOON


def test_topics_and_brokers_are_read_seldom_while_all_movements_are_under_way():
    with VirtualRun() as run:
        cluster = Cluster(run.clock, partitions=2, size=600 * MB)
        admin = SlowAdmin(cluster.kafka, run.clock)
        run_add(run, admin, cluster, ExecutionOptions())
        took_s = admin.checks_s[-1] - admin.checks_s[0]
        assert took_s / 10 <= admin.topic_reads <= took_s / QUIET_INTERVALS + 5


def test_brokers_that_answer_slowly_are_asked_less():
    with VirtualRun() as run:
        cluster = Cluster(run.clock, partitions=40, size=1000)
        admin = SlowAdmin(cluster.kafka, run.clock, answer_s=0.2)
        run_add(run, admin, cluster, ExecutionOptions(concurrent_partition_movements_per_broker=2))
        assert min(admin.pauses_s[:-1]) >= 0.2 * (1 + REST) - 1e-6


def test_a_change_ends_the_growth_of_the_waits():
    with VirtualRun() as run:
        pace = CheckPace(run.clock)

        def choose_after(seconds: float) -> float:
            run.advance_by(seconds)
            pace.begin_check()
            return pace.choose_wait(1.0)

        assert [choose_after(seconds) for seconds in (0, 0.5, 2.5, 3, 30)] == pytest.approx([0.1, 0.1, 0.3, 0.6, 1.0])
        pace.reset()
        assert pace.choose_wait(1.0) == pytest.approx(SOON)


def test_a_part_of_a_check_that_is_excluded_needs_no_rest():
    with VirtualRun() as run:
        pace = CheckPace(run.clock)
        run.advance_by(0.8)
        pace.reset()
        assert pace.choose_wait(1.0) == pytest.approx(0.8 * REST)
        pace.exclude(0.5)
        assert pace.choose_wait(1.0) == pytest.approx(0.3 * REST)
