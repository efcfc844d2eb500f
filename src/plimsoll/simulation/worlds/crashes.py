"""Crashes of a process between two calls: what was done is done, nothing further happens, and nothing of it runs again.

The clients of a process share a `ProcessLife`. `PlannedCrashes` outlive it: each counts the successful writes of one
component. With the last of them the process is dead: `on_crash` is called, and every further call raises `Crashed`,
which nothing in the process catches. Reads and refused writes are not counted, because they have no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from plimsoll.kube.transport import Request, Response, Transport

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Crashed(BaseException):
    """The calling process is dead. Not an `Exception`, so that no error handler of the process catches it."""


@dataclass(slots=True, kw_only=True)
class PlannedCrash:
    """`path` is the step that planned it."""

    component: str
    writes_left: int
    path: str


class PlannedCrashes:
    """Crashes that are still to come, whichever process they will end."""

    def __init__(self) -> None:
        self.waiting: list[PlannedCrash] = []

    def add(self, component: str, *, after_calls: int, path: str) -> None:
        self.waiting.append(PlannedCrash(component=component, writes_left=after_calls, path=path))

    def take_due(self, component: str) -> PlannedCrash | None:
        """Count a write; returns the first crash that is due with it."""
        for crash in self.waiting:
            crash.writes_left -= crash.component == component
        due = [crash for crash in self.waiting if crash.writes_left <= 0]
        self.waiting = [crash for crash in self.waiting if crash.writes_left > 0]
        return due[0] if due else None


class ProcessLife:
    """One process. `on_crash` must not wait."""

    def __init__(self, on_crash: Callable[[], None], planned: PlannedCrashes) -> None:
        self._on_crash = on_crash
        self._planned = planned
        self.has_crashed = False

    def crash(self, component: str, *, path: str) -> None:
        if not self.has_crashed:
            self.has_crashed = True
            log.warning("simulation.process_crashed", component=component, step=path)
            self._on_crash()

    def record_write(self, component: str) -> None:
        """A write of this component took effect."""
        due = None if self.has_crashed else self._planned.take_due(component)
        if due is not None:
            self.crash(component, path=due.path)


class CrashingTransport:
    """The calls of one component, as long as its process lives."""

    def __init__(self, transport: Transport, *, component: str, life: ProcessLife) -> None:
        self._transport = transport
        self._component = component
        self._life = life

    async def send(self, call: Request) -> Response:
        self._check_alive()
        reply = await self._transport.send(call)
        if reply.is_success and not call.is_safe:
            self._life.record_write(self._component)
        self._check_alive()
        return reply

    def _check_alive(self) -> None:
        if self._life.has_crashed:
            raise Crashed(self._component)

    async def aclose(self) -> None:
        await self._transport.aclose()


async def run_until_crash(doing: Coroutine[Any, Any, None], life: ProcessLife) -> None:
    """Run inside a process. Errors of a dead process are ignored."""
    try:
        await doing
    except (Crashed, BaseExceptionGroup):
        if not life.has_crashed:
            raise
