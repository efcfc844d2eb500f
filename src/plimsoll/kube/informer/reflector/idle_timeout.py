"""How long a watch may be silent: one timer per connection, not one per chunk.

A timeout around every wait cost a fiftieth of a busy hour, and each left a cancelled timer behind. Here the timer, when
it fires, checks how long ago data arrived, and is set again for the rest. A silence that is too long ends the block
with a `TimeoutError`, as `asyncio.timeout` does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class IdleTimeout:
    """An asynchronous context that raises `TimeoutError` after too long without a call of `reset`."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._limit = asyncio.timeout(None)
        self._loop = asyncio.get_running_loop()
        self._last_received_s = 0.0
        self._alarm: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        self._last_received_s = self._loop.time()
        self._set_alarm()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        await self._limit.__aexit__(kind, error, trace)

    def reset(self) -> None:
        self._last_received_s = self._loop.time()

    def set_limit(self, longest_s: float) -> None:
        """Change the limit."""
        self._longest_s = longest_s
        if self._alarm is not None:
            self._alarm.cancel()
        self._set_alarm()

    def _set_alarm(self) -> None:
        self._alarm = self._loop.call_at(self._last_received_s + self._longest_s, self._on_timeout)

    def _on_timeout(self) -> None:
        if self._last_received_s + self._longest_s > self._loop.time():
            self._set_alarm()
        else:
            self._limit.reschedule(self._loop.time())
