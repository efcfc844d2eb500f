"""The executor ends after every single call of an add and of a remove, and another one goes on."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kafka.brokers.ports import KafkaUnavailable
from plimsoll.kafka.executor.executor import Executor
from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOptions
from plimsoll.testing import run_virtual
from tests.effort import choose_calls
from tests.faults import Answer5xx, LoseAnswers
from tests.faults.crashes import CrashAfter, Crashed
from tests.faults.sweeps import sweep_crashes, sweep_faults
from tests.kafka.executor.simulated_clusters import MB, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.kafka.model.proposals import Proposal
    from plimsoll.runtime.clocks import VirtualClock

OPTIONS = ExecutionOptions(replication_throttle=5 * MB, concurrent_partition_movements_per_broker=2)


@dataclass
class Story:
    """What a sweep runs on: a cluster, its plan, and the assignment that must come out."""

    cluster: Cluster
    proposals: Sequence[Proposal]
    end: dict[tuple[str, int], tuple[list[int], int]]


def build_story(mode: str, clock: VirtualClock) -> Story:
    cluster = Cluster(clock, on_new=mode == "remove")
    proposals = cluster.propose_add() if mode == "add" else cluster.propose_remove()
    assert len(proposals) >= 3
    end = cluster.assignment() | {
        (moved.topic, moved.partition): (list(moved.new_replicas), moved.new_replicas[0]) for moved in proposals
    }
    return Story(cluster, proposals, end)


def build_instance(story: Story, through: Callable[[Any], Any]) -> tuple[Executor, Story]:
    """A process: its calls to brokers and to the record go through the fault."""
    return Executor(through(story.cluster.admin), story.cluster.clock, through(story.cluster.store)), story


async def run_instance(instance: tuple[Executor, Story]) -> None:
    executor, story = instance
    outcome = await executor.resume()
    if outcome is None:
        outcome = await executor.execute("e1", story.proposals, OPTIONS)
    assert outcome.end is ExecutionEnd.COMPLETED, outcome


def check_story(story: Story) -> None:
    story.cluster.check_nothing_left()
    story.cluster.check_in_sync()
    assert story.cluster.assignment() == story.end
    for key, targets in story.cluster.kafka.sent_targets.items():
        assert len(targets) == len(set(targets)), f"{key} was sent twice: {targets}"


@pytest.mark.parametrize("mode", ["add", "remove"])
def test_k36_after_a_crash_at_any_call_the_end_is_the_same(mode: str, capsys: pytest.CaptureFixture[str]):
    runs = sweep_crashes(
        build_world=partial(build_story, mode),
        build_instance=build_instance,
        run=run_instance,
        check=check_story,
        calls=choose_calls(1000),
    )
    with capsys.disabled():
        sys.stdout.write(f"\n{mode}: {runs} crash points\n")
    assert runs > 40


@pytest.mark.parametrize("mode", ["add", "remove"])
def test_k36_a_process_that_stops_after_a_crash_restores_what_was(mode: str, capsys: pytest.CaptureFixture[str]):
    """The second process stops instead of going on: every partition is at its origin or at its target."""

    def is_first(executor: Executor) -> bool:
        return "behind" in repr(executor._admin)

    async def run(instance: tuple[Executor, Story]) -> None:
        executor, _ = instance
        if is_first(executor):
            await run_instance(instance)
        else:
            await executor.stop()

    def check(story: Story) -> None:
        story.cluster.check_nothing_left()
        story.cluster.check_in_sync()
        origins = {(moved.topic, moved.partition): moved.old_replicas for moved in story.proposals}
        for key, (replicas, _) in story.cluster.assignment().items():
            assert replicas in ([*origins.get(key, ())], story.end[key][0]), key

    runs = sweep_crashes(
        build_world=partial(build_story, mode),
        build_instance=build_instance,
        run=run,
        check=check,
        calls=choose_calls(1000, first=2),
    )
    with capsys.disabled():
        sys.stdout.write(f"\n{mode}, then stopped: {runs} crash points\n")
    assert runs > 40


@pytest.mark.parametrize("mode", ["add", "remove"])
@pytest.mark.parametrize("fault", ["lost answer", "no answer"])
def test_an_answer_that_is_lost_at_any_call_changes_nothing(mode: str, fault: str):
    def make(number: int) -> Any:
        if fault == "lost answer":
            return LoseAnswers(number, error=lambda: KafkaUnavailable("the answer was lost"))
        return Answer5xx(number, error=lambda _: KafkaUnavailable("no broker answers"))

    def through_brokers(story: Story, through: Callable[[Any], Any]) -> tuple[Executor, Story]:
        return Executor(through(story.cluster.admin), story.cluster.clock, story.cluster.store), story

    async def run(instance: tuple[Executor, Story]) -> None:
        try:
            await run_instance(instance)
        except KafkaUnavailable:  # before anything was recorded
            await run_instance(instance)

    runs = sweep_faults(
        make,
        build_world=partial(build_story, mode),
        build_instance=through_brokers,
        run=run,
        check=check_story,
        calls=choose_calls(1000, first=3 if fault == "lost answer" else 1),
    )
    assert runs > 40


def test_two_crashes_in_a_row_are_got_over():
    """Every fifth call of the process that goes on after a crash ends that one too."""

    async def attempt(first: int, clock: VirtualClock) -> None:
        story = build_story("remove", clock)
        for number in (first, 5, 11, 17):
            crash = CrashAfter(number)
            try:
                await run_instance(build_instance(story, crash.wrap))
            except Crashed:
                continue
        await run_instance(build_instance(story, lambda port: port))
        check_story(story)

    for first in range(1, 60, 7):
        run_virtual(partial(attempt, first))
