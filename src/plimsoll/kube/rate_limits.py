"""The client's side of fairness: not more calls than agreed, in the order they were asked for.

A token bucket on the `Clock`. It starts no task: whoever is first in line sleeps until its token is there, the others
queue behind it. So a caller that is cancelled while it waits leaves the line without a trace.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

LONG_WAIT_S: Final = 1.0
# A wait computed in floats may end a hair too early; another of a millisecond ends that, one of zero would spin.
_SHORTEST_WAIT_S: Final = 0.001


class RateLimit:
    """At most `burst` calls at once and `qps` a second on the average; `qps` 0 lets everything pass."""

    def __init__(self, *, qps: float, burst: int, clock: Clock) -> None:
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._filled_at = clock.monotonic_s()
        self._line = asyncio.Lock()
        self._has_told = False

    async def turn(self) -> None:
        """Return when it is the caller's turn."""
        if not self._qps:
            return
        asked_at = self._clock.monotonic_s()
        async with self._line:
            while (missing := 1.0 - self._filled()) > 0:
                await self._clock.sleep(max(missing / self._qps, _SHORTEST_WAIT_S))
            # Taken only now: a caller that was cancelled in its sleep has taken none.
            self._tokens -= 1.0
        self._tell(self._clock.monotonic_s() - asked_at)

    def _filled(self) -> float:
        now_s = self._clock.monotonic_s()
        self._tokens = min(self._burst, self._tokens + (now_s - self._filled_at) * self._qps)
        self._filled_at = now_s
        return self._tokens

    def _tell(self, waited_s: float) -> None:
        """Once for each time of congestion: it ends when somebody did not have to wait."""
        if waited_s >= LONG_WAIT_S and not self._has_told:
            self._has_told = True
            log.warning("client.throttled", waited_s=round(waited_s, 3), qps=self._qps, burst=self._burst)
        elif not waited_s:
            self._has_told = False
