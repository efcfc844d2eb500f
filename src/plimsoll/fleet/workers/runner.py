"""Runs the passes of the workers that this process leads: every period, on becoming leader, and on a signal.

All passes of a process run one after the other, in the order of `Worker`. So no pass overlaps another one, and a
tick has the order that scaling needs. Cancelling waits for the pass that is under way.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.errors import DatabaseUnreachable
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.workers.leased_store import LeasedStore
from plimsoll.fleet.workers.listening_time import ListeningTime
from plimsoll.fleet.workers.passes import PassResult, carry_out
from plimsoll.operator.pause import ActionGuard
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.ports import FleetStore, PauseStore
    from plimsoll.fleet.workers.leases import WorkerLeases
    from plimsoll.fleet.workers.passes import PassPlanner
    from plimsoll.operator.health import Health

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_LONGEST_ERROR: Final = 500
_ORDER: Final = {name: position for position, name in enumerate(Worker)}


class PassReporter(Protocol):
    """Where ended passes are reported."""

    async def report_pass(self, result: PassResult) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerParts:
    """What a runner needs besides its workers."""

    store: FleetStore
    pause: PauseStore
    leases: WorkerLeases
    reporter: PassReporter
    health: Health
    clock: Clock


class WorkerRunner:
    """The passes of one process."""

    def __init__(
        self, planners: Iterable[PassPlanner], parts: RunnerParts, *, period_s: float = 30.0, dry_run: bool = False
    ) -> None:
        self._planners: Sequence[PassPlanner] = sorted(planners, key=lambda planner: _ORDER[planner.name])
        names = [planner.name for planner in self._planners]
        if len(set(names)) < len(names):
            raise InvalidInput("two workers have the same name", path="workers")
        self._parts = parts
        self._listening = ListeningTime(parts.clock)
        self._period_s = period_s
        self._dry_run = dry_run
        self._signalled: set[Worker] = set()
        self._has_signal = asyncio.Event()
        self._next_tick_s = 0.0
        self._number = 0

    def notify(self, worker: Worker) -> None:
        """`reconcile:<worker>`: a pass of this worker as soon as possible, if this process leads it."""
        self._signalled.add(worker)
        self._has_signal.set()

    def list_services(self) -> list[Service]:
        """The supervisor stops them in reverse order: the leases outlive the last pass."""
        return [
            Service(name="worker leases", run=lambda: self._parts.leases.run(self._start_leading)),
            Service(name="workers", run=self.run),
        ]

    async def run(self) -> None:
        """Runs passes until cancelled."""
        clock, health = self._parts.clock, self._parts.health
        self._next_tick_s = clock.monotonic_s() + self._period_s
        health.begin(clock.monotonic_s())
        try:
            while True:
                await self._run_round(await self._wait_for_work())
        finally:
            health.end()

    async def run_once(self) -> tuple[PassResult, ...]:
        """One pass of every worker whose lease this process holds."""
        leading = set(self._parts.leases.list_leading())
        return tuple([await self._run_pass(planner) for planner in self._planners if planner.name in leading])

    def _start_leading(self, workers: tuple[Worker, ...]) -> None:
        log.info("workers.leading", workers=[worker.value for worker in workers])
        self._next_tick_s = self._parts.clock.monotonic_s() + self._period_s
        for worker in workers:
            self.notify(worker)

    async def _wait_for_work(self) -> bool:
        """Returns whether the period is over; otherwise a signal came."""
        try:
            async with asyncio.timeout(max(self._next_tick_s - self._parts.clock.monotonic_s(), 0.0)):
                await self._has_signal.wait()
        except TimeoutError:
            self._next_tick_s = self._parts.clock.monotonic_s() + self._period_s
            return True
        return False

    async def _run_round(self, is_tick: bool) -> None:
        self._has_signal.clear()
        for planner in self._planners:
            is_due = is_tick or planner.name in self._signalled
            self._signalled.discard(planner.name)
            if is_due and self._parts.leases.get_lease(planner.name).is_leading:
                await self._complete_pass(planner)
        if is_tick and not self._parts.leases.list_leading():
            # A standby is alive although it has no pass.
            self._parts.health.on_loop_finished(self._parts.clock.monotonic_s(), is_success=True)

    async def _complete_pass(self, planner: PassPlanner) -> None:
        """A pass that began ends, also when the runner is cancelled meanwhile."""
        running = asyncio.create_task(self._run_pass(planner), name=f"pass of {planner.name}")
        try:
            result = await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait((running,))
            raise
        if result.follow is not None and result.has_acted:
            self.notify(result.follow)

    async def _run_pass(self, planner: PassPlanner) -> PassResult:
        clock = self._parts.clock
        started_s, now = clock.monotonic_s(), clock.now()
        self._parts.health.on_loop_started(started_s)
        self._number += 1
        try:
            result = await self._decide_and_act(planner)
        except Exception as error:
            if isinstance(error, DatabaseUnreachable):
                self._listening.restart()  # reports are not stored either
            log.warning("pass.failed", worker=planner.name, exc_info=error)
            result = PassResult(worker=planner.name, at=now, errors=(_format_error(error),))
        ended_s = clock.monotonic_s()
        self._parts.health.on_loop_finished(ended_s, is_success=result.plan is not None)
        result = replace(result, duration_s=ended_s - started_s)
        await self._parts.reporter.report_pass(result)
        return result

    async def _decide_and_act(self, planner: PassPlanner) -> PassResult:
        now, lease = self._parts.clock.now(), self._parts.leases.get_lease(planner.name)
        guard = ActionGuard(dry_run=self._dry_run, paused=await self._parts.pause.read_pause())
        rows = self._parts.store.with_lease(lease.worker, lease.holder)
        store = LeasedStore(rows, lease, listening_since=self._listening.measure())
        work = await planner.plan_pass(store, number=self._number, now=now)
        outcomes, errors = await carry_out(work, guard)
        return PassResult(
            worker=planner.name,
            at=now,
            plan=work.plan,
            outcomes=outcomes,
            errors=(*work.errors, *errors),
            is_dry_run=self._dry_run,
            follow=work.follow,
        )


def _format_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
