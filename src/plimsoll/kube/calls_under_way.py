"""The calls a transport carries at the moment: each has its time limit, and closing the transport ends them all.

Used by both transports, `kube.http` and the embedded server's, so that they end calls in the same way. Time is the
event loop's, which may be virtual.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class CallsUnderWay:
    """Deadlines that can be brought forward together."""

    def __init__(self) -> None:
        self._deadlines: set[asyncio.Timeout] = set()

    @asynccontextmanager
    async def within(self, timeout_s: float) -> AsyncIterator[None]:
        """Raises `TimeoutError` when time is up, and when `end_all` is called."""
        async with asyncio.timeout(timeout_s) as deadline:
            self._deadlines.add(deadline)
            try:
                yield
            finally:
                self._deadlines.discard(deadline)

    def end_all(self) -> None:
        now = asyncio.get_running_loop().time()
        for deadline in self._deadlines:
            if not deadline.expired():
                deadline.reschedule(now)
