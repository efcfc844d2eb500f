"""The executor ends after a broker call, or is killed at any moment, and another one goes on: on real brokers."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOptions
from tests.e2e.kafka.executor.executions import MB, NEW, RealExecutions
from tests.e2e.kafka.executor.executor_process import Work
from tests.e2e.timeouts import speaking_in_time
from tests.effort import IS_LONG
from tests.faults import CrashAfter
from tests.faults.crashes import Crashed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plimsoll.kafka.executor.executor import Executor
    from plimsoll.kafka.model.proposals import Proposal
    from tests.e2e.kafka.real_kafka import RealKafka

STEP = 1 if IS_LONG else 13
"""A short run crashes after every thirteenth call."""
KILLS = 10 if IS_LONG else 4
OPTIONS = ExecutionOptions(replication_throttle=200 * MB, concurrent_partition_movements_per_broker=2)
SIZE = MB // 4


@pytest.fixture
def executions(kafka: RealKafka, tmp_path: Path) -> RealExecutions:
    return RealExecutions(kafka, tmp_path / "record")


async def go_on(executor: Executor, proposals: Sequence[Proposal]) -> None:
    outcome = await executor.resume()
    if outcome is None:
        outcome = await executor.execute("e1", proposals, OPTIONS)
    assert outcome.end is ExecutionEnd.COMPLETED, outcome


def crash_once(executions: RealExecutions, proposals: Sequence[Proposal], number: int) -> bool:
    """Run with a crash after a call, then without. False: the run had fewer calls."""
    crash = CrashAfter(number)

    async def die() -> None:
        async with executions.open_executor(crash.wrap) as executor:
            await go_on(executor, proposals)

    async def finish() -> None:
        async with executions.open_executor() as executor:
            await go_on(executor, proposals)

    try:
        asyncio.run(die())
    except Crashed:
        asyncio.run(finish())
    return crash.struck is not None


@pytest.mark.slow
def test_after_a_crash_at_a_broker_call_the_end_is_the_same(
    kafka: RealKafka, executions: RealExecutions, capsys: pytest.CaptureFixture[str]
) -> None:
    executions.fill(partitions=2, size=SIZE)
    kafka.start_broker(NEW)
    before = executions.read_assignment("a", "b")
    runs = {"add": 0, "remove": 0}
    number, has_struck = 1, True
    while has_struck:
        adding = executions.propose_add("a", "b", size=SIZE)
        struck_adding = crash_once(executions, adding, number)
        assert executions.read_assignment("a", "b") == {
            (moved.topic, moved.partition): list(moved.new_replicas) for moved in adding
        }
        executions.check_nothing_left("a", "b")
        removing = executions.propose_remove("a", "b", size=SIZE)
        struck_removing = crash_once(executions, removing, number)
        assert executions.read_assignment("a", "b") == before
        executions.check_nothing_left("a", "b")
        runs["add"] += struck_adding
        runs["remove"] += struck_removing
        has_struck = struck_adding or struck_removing
        number += STEP
    with capsys.disabled():
        sys.stdout.write(f"\ncrashes on real brokers: {runs['add']} of an add, {runs['remove']} of a remove\n")
    assert min(runs.values()) >= 3
    executions.wait_in_sync("a", "b")


@pytest.mark.slow
def test_a_process_killed_at_random_moments_loses_nothing(kafka: RealKafka, executions: RealExecutions) -> None:
    executions.fill(partitions=6, size=2 * MB)
    kafka.start_broker(NEW)
    proposals = executions.propose_add("a", "b")
    options = ExecutionOptions(
        replication_throttle=MB, progress_check_interval_s=0.2, concurrent_partition_movements_per_broker=2
    )
    work = Work(kafka.bootstrap, str(executions.directory), tuple(proposals), options)
    executions.directory.mkdir()
    file = executions.directory.parent / "work.json"
    file.write_bytes(msgspec.json.encode(work))
    dice = random.Random(7)
    killed = sum(run_and_kill(file, dice.uniform(0.1, 2.5)) for _ in range(KILLS))
    assert killed >= KILLS // 2, "the execution is long enough to be killed in"
    ended = subprocess.run(
        [sys.executable, "-m", "tests.e2e.kafka.executor.executor_process", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split()[-1] == "Completed"
    assert executions.read_assignment("a", "b") == {
        (moved.topic, moved.partition): list(moved.new_replicas) for moved in proposals
    }
    executions.check_nothing_left("a", "b")
    executions.wait_in_sync("a", "b")


def run_and_kill(file: Path, after_s: float) -> bool:
    """Kill a process a while after its start. Whether it was still at work."""
    command = [sys.executable, "-m", "tests.e2e.kafka.executor.executor_process", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        with speaking_in_time(process):
            assert process.stdout.readline() == "started\n", process.stderr and process.stderr.read()
        time.sleep(after_s)
        is_running = process.poll() is None
        process.kill()
    return is_running
