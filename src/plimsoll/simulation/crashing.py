"""The end of a process between two calls: what it did is done, what was to follow is not, and nothing of it runs again.

A `Lifeline` is what the clients of one process share. Armed, it counts the writes of one component; after the last of
them took effect, its answer never arrives and `on_crash` is called. From then on every call of that process is refused.
Reads are not counted: they take no effect that a crash could come after.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from plimsoll.kube.errors import Closed

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kube.exchange import Call, Reply, Transport


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

    def wrote(self, component: str) -> bool:
        """A write of this component took effect; gives whether it was its last."""
        if component != self._component:
            return False
        self._writes_left -= 1
        if self._writes_left > 0:
            return False
        self.cut()
        return True


class MortalTransport:
    """The calls of one component, as long as its process lives."""

    def __init__(self, transport: Transport, *, component: str, life: Lifeline) -> None:
        self._transport = transport
        self._component = component
        self._life = life

    async def send(self, call: Call) -> Reply:
        if self._life.is_cut:
            raise Closed(f"{self._component} has crashed")
        reply = await self._transport.send(call)
        if call.method != "GET" and self._life.wrote(self._component):
            never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            await never
        return reply

    async def aclose(self) -> None:
        await self._transport.aclose()
