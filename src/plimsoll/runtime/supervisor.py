"""Keeps services alive: starts them in order, restarts what crashes, stops all of it in reverse order.

Cancelling `Supervisor.run()` stops the program: services are cancelled one after the other, last started first, each
given `grace_s`; cancelling again cancels all the rest at once. The broad `except` here is deliberate: a bug in one
service must not take the others down. It logs, counts and restarts; it never swallows `BaseException` (a `Crashed` of
the tests, a KeyboardInterrupt), which ends the process without an orderly stop.

`Service`, its policy and its status are plain data.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003 - msgspec resolves the annotations of Values at run time
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from plimsoll.core.errors import GaveUp, InvalidInput
from plimsoll.core.values import Value
from plimsoll.runtime.backoff import Backoff, BackoffState

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy


log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_ERROR_TEXT_LENGTH = 500


class Supervisor:
    """Runs its services until it is cancelled, until all of them ended as expected, or until one fails too often."""

    def __init__(self, services: Sequence[Service], *, clock: Clock, entropy: Entropy, grace_s: float = 10.0) -> None:
        names = [service.name for service in services]
        for name in names:
            if names.count(name) > 1:
                raise InvalidInput(f"two services are called {name!r}", path="services")
        self._clock = clock
        self._grace_s = grace_s
        self._restarters = [_Restarter(service, clock=clock, entropy=entropy) for service in services]

    def get_status(self) -> tuple[ServiceStatus, ...]:
        """The status of every service, in start order."""
        return tuple(restarter.status for restarter in self._restarters)

    async def run(self) -> None:
        """Raises `GaveUp` when a service's policy escalates, and CancelledError when cancelled: after stopping all."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(restarter.keep(), name=restarter.status.name) for restarter in self._restarters]
            try:
                escalation = await _find_first_escalation(tasks)
            finally:
                await self._stop_in_reverse(tasks)
        if escalation is not None:
            raise escalation

    async def _stop_in_reverse(self, tasks: Sequence[asyncio.Task[GaveUp | None]]) -> None:
        for restarter, task in zip(reversed(self._restarters), reversed(tasks), strict=True):
            if task.done():
                continue
            restarter.on_stopping()
            # A task that is being cancelled already (the group aborts) is not disturbed in its clean-up.
            if not task.cancelling():
                task.cancel()
            if not await self._ends_in_time(task):
                log.warning("service.stop_overdue", service=restarter.status.name, grace_s=self._grace_s)
        for task in tasks:
            task.cancel()

    async def _ends_in_time(self, task: asyncio.Task[GaveUp | None]) -> bool:
        timer = asyncio.create_task(self._sleep_grace())
        try:
            await asyncio.wait((task, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            await asyncio.wait((timer,))
        return task.done()

    async def _sleep_grace(self) -> None:
        await self._clock.sleep(self._grace_s)


async def _find_first_escalation(tasks: Sequence[asyncio.Task[GaveUp | None]]) -> GaveUp | None:
    pending = set(tasks)
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task in done and not task.cancelled() and (escalation := task.result()) is not None:
                return escalation
    return None


class _Restarter:
    """Runs and restarts one service, and records its failures."""

    def __init__(self, service: Service, *, clock: Clock, entropy: Entropy) -> None:
        self._service = service
        self._clock = clock
        self._entropy = entropy
        self._failed_at_s: deque[float] = deque()
        self.status = ServiceStatus(name=service.name, state=ServiceState.WAITING, since=clock.now())

    def on_stopping(self) -> None:
        self._enter(ServiceState.STOPPING)

    async def keep(self) -> GaveUp | None:
        """Keep the service alive until it ends as expected, or until its policy escalates."""
        try:
            return await self._keep()
        except asyncio.CancelledError:
            self._enter(ServiceState.STOPPED)
            log.info("service.stopped", service=self._service.name)
            raise

    async def _keep(self) -> GaveUp | None:
        policy = self._service.policy
        backoff = BackoffState(policy=policy.backoff)
        while True:
            self._enter(ServiceState.RUNNING)
            error = await self._run_once()
            if error is None and policy.on_end is OnEnd.EXPECTED:
                self._enter(ServiceState.ENDED)
                return None
            backoff = backoff.with_failure(self._clock.monotonic_s(), self._entropy)
            if error is not None and (self._must_escalate() or backoff.is_used_up):
                return self._escalate(error)
            self._enter(ServiceState.BACKING_OFF)
            await self._clock.sleep(backoff.ready_at - self._clock.monotonic_s())
            self.status = msgspec.structs.replace(self.status, restarts=self.status.restarts + 1)

    async def _run_once(self) -> BaseException | None:
        """Run the service once. Its failure is returned, recorded and logged."""
        name = self._service.name
        log.info("service.started", service=name)
        try:
            await self._service.run()
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # This was not requested: the service awaited something that was cancelled. Left alone it would be gone for
            # good, because a TaskGroup does not miss a cancelled child.
            return self._record_crash(error)
        except Exception as error:  # noqa: BLE001 -- the supervisor: logs, counts, restarts
            return self._record_crash(error)
        log.info("service.ended", service=name)
        return None

    def _record_crash(self, error: BaseException) -> BaseException:
        text = _format_error(error)
        self._failed_at_s.append(self._clock.monotonic_s())
        self.status = msgspec.structs.replace(self.status, failures=self.status.failures + 1, last_error=text)
        log.error("service.crashed", service=self._service.name, error=text, exc_info=error)
        return error

    def _must_escalate(self) -> bool:
        policy, failed_at_s = self._service.policy, self._failed_at_s
        while failed_at_s and self._clock.monotonic_s() - failed_at_s[0] > policy.window_s:
            failed_at_s.popleft()
        return policy.escalate_after is not None and len(failed_at_s) >= policy.escalate_after

    def _escalate(self, error: BaseException) -> GaveUp:
        self._enter(ServiceState.ESCALATED)
        log.critical("service.escalated", service=self._service.name, failures=self.status.failures)
        escalation = GaveUp(f"service {self._service.name} failed {self.status.failures} times: {_format_error(error)}")
        escalation.__cause__ = error
        return escalation

    def _enter(self, state: ServiceState) -> None:
        self.status = msgspec.structs.replace(self.status, state=state, since=self._clock.now())


def _format_error(error: BaseException) -> str:
    """The error on one line, also for exception groups."""
    if isinstance(error, BaseExceptionGroup):
        text = f"{error.message}: " + "; ".join(_format_error(part) for part in error.exceptions)
    else:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return text[:_ERROR_TEXT_LENGTH]


class OnEnd(StrEnum):
    """What it means when a service's `run()` returns."""

    EXPECTED = "expected"
    RESTART = "restart"


class RestartPolicy(Value):
    """How a service is kept alive. `escalate_after` failures within `window_s` end the whole; None: never."""

    on_end: OnEnd = OnEnd.RESTART
    backoff: Backoff = Backoff(initial_s=1.0, factor=2.0, cap_s=60.0, jitter=0.1)
    escalate_after: int | None = None
    window_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A long-running task. `run` is called again for each restart and must build its own state."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]
    policy: RestartPolicy = field(default_factory=RestartPolicy)


class ServiceState(StrEnum):
    """The state of a service."""

    WAITING = "waiting"
    """not started yet"""
    RUNNING = "running"
    BACKING_OFF = "backing-off"
    """crashed, will be started again"""
    ENDED = "ended"
    """returned, as it was expected to"""
    ESCALATED = "escalated"
    """failed too often; the supervisor stops because of it"""
    STOPPING = "stopping"
    STOPPED = "stopped"


class ServiceStatus(Value):
    """The status of a service. `since` is the start of its current state."""

    name: str
    state: ServiceState
    since: datetime
    restarts: int = 0
    failures: int = 0
    last_error: str | None = None

    @property
    def is_healthy(self) -> bool:
        return self.state in (ServiceState.RUNNING, ServiceState.ENDED)
