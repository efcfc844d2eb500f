"""The end of a process between two calls: what it did is done, what was to follow is not, and nothing of it runs again.

A `ProcessLife` is what the clients of one process share. `PlannedCrashes` outlive it: each counts the writes of one
component that took effect. With the last of them the process is dead: `on_crash` is called, and whoever made the call
or makes another one gets no answer but `Crashed`, which nothing of the process catches. Reads, and writes that were
refused, are not counted: they took no effect that a crash could come after.
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
    """The process of whoever gets this is dead. No Exception: it ends whatever its process does about errors."""


@dataclass(slots=True, kw_only=True)
class PlannedCrash:
    """`path` is the step that wants it."""

    component: str
    writes_left: int
    path: str


class PlannedCrashes:
    """Those that are still to come, whichever process they will end."""

    def __init__(self) -> None:
        self.waiting: list[PlannedCrash] = []

    def add(self, component: str, *, after_calls: int, path: str) -> None:
        self.waiting.append(PlannedCrash(component=component, writes_left=after_calls, path=path))

    def due_after_write(self, component: str) -> PlannedCrash | None:
        """Count a write; the first of the crashes that come with it, if any does."""
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

    def wrote(self, component: str) -> None:
        """A write of this component took effect."""
        due = None if self.has_crashed else self._planned.due_after_write(component)
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
            self._life.wrote(self._component)
        self._check_alive()
        return reply

    def _check_alive(self) -> None:
        if self._life.has_crashed:
            raise Crashed(self._component)

    async def aclose(self) -> None:
        await self._transport.aclose()


async def until_crash(doing: Coroutine[Any, Any, None], life: ProcessLife) -> None:
    """Do something inside of a process. How a dead one ends is nobody's business."""
    try:
        await doing
    except (Crashed, BaseExceptionGroup):
        if not life.has_crashed:
            raise
