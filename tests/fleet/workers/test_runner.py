"""Passes: when they run, in which order, and what stops them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from structlog.testing import capture_logs

from plimsoll.core.plans import Action, Reason, Ref, Result
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.ports import LeaseLost
from plimsoll.fleet.workers.leases import LeaseTimes, WorkerLeases
from plimsoll.fleet.workers.passes import PassResult, Step, Work, build_work
from plimsoll.fleet.workers.runner import RunnerParts, WorkerRunner
from plimsoll.operator.health import Health, HealthTimeouts
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from plimsoll.testing import run_virtual
from tests.fleet.workers.lease_stores import MemoryLeases

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.ports import FleetStore
    from plimsoll.fleet.workers.leased_store import LeasedStore


class NoRows:
    """A store without rows that remembers under which lease it is used."""

    def with_lease(self, _worker: str, _holder: str) -> NoRows:
        return self


class Paused:
    why = ""

    async def read_pause(self) -> str:
        return self.why

    async def set_pause(self, _why: str | None) -> str:
        raise NotImplementedError


@dataclass
class Reports:
    results: list[PassResult] = field(default_factory=list)

    async def report_pass(self, result: PassResult) -> None:
        self.results.append(result)


class Recorder:
    """A worker whose passes take `takes_s` and write their start and end into `log`."""

    def __init__(
        self, name: Worker, world: World, *, takes_s: float = 0.0, follow: Worker | None = None, fails: bool = False
    ) -> None:
        self.name = name
        self._world = world
        self._takes_s = takes_s
        self._follow = follow
        self._fails = fails
        self.steps: list[Callable[[], Awaitable[bool]]] = []

    async def plan_pass(self, _store: LeasedStore, *, number: int, now: datetime) -> Work:
        if self._fails:
            raise KeyError("x9")
        started_s = self._world.clock.monotonic_s()
        await self._world.clock.sleep(self._takes_s)
        self._world.log.append((self.name, started_s, self._world.clock.monotonic_s()))
        reason = Reason(code="Needed", message="it is needed")
        steps = [
            Step(action=Action(verb="write", target=Ref(kind="kafka", name=str(place)), reason=reason), run=run)
            for place, run in enumerate(self.steps)
        ]
        return build_work(self.name, steps, number=number, now=now, follow=self._follow)


class World:
    """What runners in one virtual loop share."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.leases = MemoryLeases(clock)
        self.pause = Paused()
        self.reports = Reports()
        self.log: list[tuple[Worker, float, float]] = []
        self.health = Health(HealthTimeouts(inactivity_s=600, failing_s=900, startup_s=600))

    def build_runner(self, *workers: Recorder, holder: str = "one", dry_run: bool = False) -> WorkerRunner:
        names = [worker.name for worker in workers]
        leases = WorkerLeases(self.leases, names, holder=holder, times=LeaseTimes(), clock=self.clock)
        parts = RunnerParts(
            store=cast("FleetStore", NoRows()),
            pause=self.pause,
            leases=leases,
            reporter=self.reports,
            health=self.health,
            clock=self.clock,
        )
        return WorkerRunner(workers, parts, dry_run=dry_run)

    def start(self, runner: WorkerRunner) -> asyncio.Task[None]:
        supervisor = Supervisor(runner.list_services(), clock=self.clock, entropy=SeededEntropy(1))
        return asyncio.create_task(supervisor.run())

    def list_passes(self, name: Worker) -> list[float]:
        """The seconds at which the passes of a worker began."""
        return [round(started_s, 3) for worker, started_s, _ in self.log if worker is name]


async def stop(running: asyncio.Task[None]) -> None:
    running.cancel()
    await asyncio.wait((running,))


def run_story(story: Callable[[World], Awaitable[Any]]) -> None:
    async def run(clock: Clock) -> None:
        await story(World(clock))

    run_virtual(run)


def test_passes_run_at_once_and_then_every_period():
    async def story(world: World) -> None:
        running = world.start(world.build_runner(Recorder(Worker.ACCEPTED_KAFKA, world)))
        await world.clock.sleep(100)
        assert world.list_passes(Worker.ACCEPTED_KAFKA) == [0, 30, 60, 90]
        await stop(running)

    run_story(story)


def test_the_passes_of_a_tick_have_the_order_of_scaling():
    async def story(world: World) -> None:
        shuffled = sorted(Worker, key=lambda name: name.value)
        running = world.start(world.build_runner(*(Recorder(name, world, takes_s=0.1) for name in shuffled)))
        await world.clock.sleep(59)
        assert [name for name, _, _ in world.log] == [*Worker, *Worker]
        await stop(running)

    run_story(story)


def test_a_signal_runs_a_pass_before_its_period_and_only_that():
    async def story(world: World) -> None:
        workers = (Recorder(Worker.ACCEPTED_KAFKA, world), Recorder(Worker.DELETING_KAFKA, world))
        runner = world.build_runner(*workers)
        running = world.start(runner)
        await world.clock.sleep(7)
        runner.notify(Worker.DELETING_KAFKA)
        await world.clock.sleep(25)
        assert world.list_passes(Worker.ACCEPTED_KAFKA) == [0, 30]
        assert world.list_passes(Worker.DELETING_KAFKA) == [0, 7, 30]
        await stop(running)

    run_story(story)


def test_a_worker_that_acted_signals_the_next_one():
    async def story(world: World) -> None:
        placing = Recorder(Worker.ACCEPTED_KAFKA, world, follow=Worker.PREPARING_KAFKA)
        runner = world.build_runner(placing, Recorder(Worker.PREPARING_KAFKA, world))
        running = world.start(runner)
        await world.clock.sleep(5)

        async def write() -> bool:
            return True

        placing.steps = [write]
        runner.notify(Worker.ACCEPTED_KAFKA)
        await world.clock.sleep(5)
        assert world.list_passes(Worker.PREPARING_KAFKA) == [0, 5]
        await stop(running)

    run_story(story)


def test_a_pass_never_overlaps_another():
    async def story(world: World) -> None:
        slow = Recorder(Worker.ACCEPTED_KAFKA, world, takes_s=70)
        runner = world.build_runner(slow, Recorder(Worker.READY_KAFKA, world, takes_s=3))
        running = world.start(runner)
        for _ in range(300):
            runner.notify(Worker.ACCEPTED_KAFKA)
            await world.clock.sleep(1)
        spans = sorted((started, ended) for _, started, ended in world.log)
        assert len(spans) > 4
        assert all(ended <= started for (_, ended), (started, _) in pairwise(spans))
        await stop(running)

    run_story(story)


def test_a_stop_waits_for_the_pass_under_way_and_then_releases_the_lease():
    async def story(world: World) -> None:
        running = world.start(world.build_runner(Recorder(Worker.ACCEPTED_KAFKA, world, takes_s=8)))
        await world.clock.sleep(2)
        assert await world.leases.list_holders()
        await stop(running)
        assert world.log == [(Worker.ACCEPTED_KAFKA, 0.0, 8.0)]
        assert len(world.reports.results) == 1
        assert await world.leases.list_holders() == {}

    run_story(story)


def test_a_failing_step_and_a_failing_pass_stop_no_other():
    async def story(world: World) -> None:
        async def write() -> bool:
            return True

        async def fail() -> bool:
            raise ValueError("odd row")

        async def lose_race() -> bool:
            return False

        rows = Recorder(Worker.ACCEPTED_KAFKA, world)
        rows.steps = [fail, lose_race, write]
        running = world.start(world.build_runner(Recorder(Worker.GENERAL_KAFKA, world, fails=True), rows))
        await world.clock.sleep(1)
        broken, done = world.reports.results
        assert broken.plan is None
        assert "x9" in broken.errors[0]
        assert [outcome.result for outcome in done.outcomes] == [Result.FAILED, Result.OVERTAKEN, Result.DONE]
        assert len(done.errors) == 1
        await stop(running)

    run_story(story)


def test_a_pause_and_a_dry_run_hold_everything_back():
    async def write() -> bool:
        raise AssertionError("nothing may be written")

    async def story(world: World) -> None:
        for dry_run, paused, code in ((True, "", "DryRun"), (False, "ana: upgrade", "Paused")):
            world.pause.why = paused
            worker = Recorder(Worker.ACCEPTED_KAFKA, world)
            worker.steps = [write, write]
            running = world.start(world.build_runner(worker, holder=code, dry_run=dry_run))
            await world.clock.sleep(1)
            outcomes = world.reports.results[-1].outcomes
            assert [outcome.result for outcome in outcomes] == [Result.HELD_BACK, Result.HELD_BACK]
            assert {outcome.reason.code for outcome in outcomes if outcome.reason} == {code}
            await stop(running)

    run_story(story)


def test_nothing_is_written_after_the_lease_is_lost():
    written = []

    async def write() -> bool:
        written.append(1)
        return True

    async def lose() -> bool:
        raise LeaseLost("taken")

    async def story(world: World) -> None:
        worker = Recorder(Worker.ACCEPTED_KAFKA, world)
        worker.steps = [write, lose, write]
        running = world.start(world.build_runner(worker))
        await world.clock.sleep(1)
        (result,) = world.reports.results
        assert [outcome.result for outcome in result.outcomes] == [Result.DONE, Result.HELD_BACK, Result.HELD_BACK]
        assert result.errors == ("taken",)
        assert written == [1]
        await stop(running)

    run_story(story)


def test_a_standby_runs_no_pass_and_is_healthy():
    async def story(world: World) -> None:
        await world.leases.acquire_lease(Worker.ACCEPTED_KAFKA, "other", duration_s=10_000)
        running = world.start(world.build_runner(Recorder(Worker.ACCEPTED_KAFKA, world)))
        await world.clock.sleep(2_000)
        assert world.log == []
        assert world.health.find_problem(world.clock.monotonic_s()) == ""
        await stop(running)

    run_story(story)


def test_a_leader_whose_passes_fail_is_not_healthy():
    async def story(world: World) -> None:
        running = world.start(world.build_runner(Recorder(Worker.GENERAL_KAFKA, world, fails=True)))
        await world.clock.sleep(2_000)
        assert world.health.find_problem(world.clock.monotonic_s())
        await stop(running)

    with capture_logs() as logged:
        run_story(story)
    assert "pass.failed" in {entry["event"] for entry in logged}
