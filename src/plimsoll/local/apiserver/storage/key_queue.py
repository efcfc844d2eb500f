"""One writer at a time per key, in the order of asking: what makes a read-decide-write lose nothing.

A turn outlives the task that took it: it ends when the write is settled, even if whoever asked was cancelled meanwhile.
So it is taken and given back, not held by a `with` block.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll.local.apiserver.storage.objects import Key


class Turns:
    """Keys whose turn is taken, with those who wait for it."""

    def __init__(self) -> None:
        self._taken: dict[Key, deque[asyncio.Future[None]] | None] = {}

    async def take(self, key: Key) -> None:
        if key not in self._taken:
            self._taken[key] = None
            return
        waiting = self._taken[key]
        if waiting is None:
            waiting = self._taken[key] = deque()
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(called)
        try:
            await called
        except asyncio.CancelledError:
            if not called.cancelled():  # called and cancelled in the same instant: the turn goes on to the next
                self.give_back(key)
            raise

    def give_back(self, key: Key) -> None:
        waiting = self._taken[key]
        while waiting:
            called = waiting.popleft()
            if not called.done():
                called.set_result(None)
                return
        del self._taken[key]
