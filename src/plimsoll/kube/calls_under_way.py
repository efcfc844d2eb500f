"""The calls a transport carries at the moment: each has its time limit, and closing the transport ends them all.

Used by both transports, `kube.http` and the embedded server's, so that they end calls in the same way. Time is the
event loop's, which may be virtual.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType


class CallsUnderWay:
    """Deadlines that can be brought forward together."""

    def __init__(self) -> None:
        self._deadlines: set[asyncio.Timeout] = set()

    def within(self, timeout_s: float) -> AbstractAsyncContextManager[None]:
        """Raises `TimeoutError` when time is up, and when `end_all` is called."""
        return _UnderWay(asyncio.timeout(timeout_s), self._deadlines)

    def end_all(self) -> None:
        now = asyncio.get_running_loop().time()
        for deadline in self._deadlines:
            if not deadline.expired():
                deadline.reschedule(now)


class _UnderWay:
    """One call. A class, because every call comes through here and a generator costs three times as much."""

    __slots__ = ("_deadline", "_deadlines")

    def __init__(self, deadline: asyncio.Timeout, deadlines: set[asyncio.Timeout]) -> None:
        self._deadline = deadline
        self._deadlines = deadlines

    async def __aenter__(self) -> None:
        await self._deadline.__aenter__()
        self._deadlines.add(self._deadline)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.discard(self._deadline)
        await self._deadline.__aexit__(kind, error, trace)
