"""The client's side of fairness: not more calls than agreed, in the order they were asked for.

A `TokenBucket` and a line before it. It starts no task: whoever is first in line sleeps until its token is there, the
others queue behind it. So a caller that is cancelled while it waits leaves the line without a trace.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.kube.token_buckets import TokenBucket

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
        self._bucket = TokenBucket(per_s=qps, burst=burst) if qps else None
        self._line = asyncio.Lock()
        self._has_told = False

    async def turn(self) -> None:
        """Return when it is the caller's turn."""
        if self._bucket is None:
            return
        asked_at = self._clock.monotonic_s()
        async with self._line:
            # Taken after the wait, not reserved before it: a caller that is cancelled in its sleep has taken none.
            while not self._bucket.take(self._clock.monotonic_s()):
                missing_s = self._bucket.missing_s(self._clock.monotonic_s())
                await self._clock.sleep(max(missing_s, _SHORTEST_WAIT_S))
        self._tell(self._clock.monotonic_s() - asked_at)

    def _tell(self, waited_s: float) -> None:
        """Once for each time of congestion: it ends when somebody did not have to wait."""
        if waited_s >= LONG_WAIT_S and not self._has_told:
            self._has_told = True
            log.warning("client.throttled", waited_s=round(waited_s, 3), qps=self._qps, burst=self._burst)
        elif not waited_s:
            self._has_told = False
