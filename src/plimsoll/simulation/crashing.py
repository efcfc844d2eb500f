"""The end of a process between two calls: what it did is done, what was to follow is not, and nothing of it runs again.

A `Lifeline` is what the clients of one process share. Armed, it counts the writes of one component that took effect;
with the last of them the process is dead: `on_crash` is called, and whoever made the call or makes another one gets no
answer but `Crashed`, which nothing of the process catches. Reads, and writes that were refused, are not counted: they
took no effect that a crash could come after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from plimsoll.kube.exchange import Call, Reply, Transport


class Crashed(BaseException):
    """The process of whoever gets this is dead. No Exception: it ends whatever its process does about errors."""


class Lifeline:
    """One process. `on_crash` must not wait."""

    def __init__(self, on_crash: Callable[[], None]) -> None:
        self._on_crash = on_crash
        self._component = ""
        self._writes_left = 0
        self.is_cut = False

    def arm(self, component: str, *, after_calls: int) -> None:
        self._component, self._writes_left = component, after_calls

    def cut(self) -> None:
        if not self.is_cut:
            self.is_cut = True
            self._on_crash()

    def wrote(self, component: str) -> None:
        """A write of this component took effect."""
        if component == self._component:
            self._writes_left -= 1
            if self._writes_left <= 0:
                self.cut()


class MortalTransport:
    """The calls of one component, as long as its process lives."""

    def __init__(self, transport: Transport, *, component: str, life: Lifeline) -> None:
        self._transport = transport
        self._component = component
        self._life = life

    async def send(self, call: Call) -> Reply:
        self._check_alive()
        reply = await self._transport.send(call)
        if reply.is_success and not call.is_safe:
            self._life.wrote(self._component)
        self._check_alive()
        return reply

    def _check_alive(self) -> None:
        if self._life.is_cut:
            raise Crashed(self._component)

    async def aclose(self) -> None:
        await self._transport.aclose()


async def until_crash(doing: Coroutine[Any, Any, None], life: Lifeline) -> None:
    """Do something inside of a process. How a dead one ends is nobody's business."""
    try:
        await doing
    except (Crashed, BaseExceptionGroup):
        if not life.is_cut:
            raise
