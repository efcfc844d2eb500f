"""Client-side rate limiting: a token bucket, and a queue of callers in the order of their calls.

`TokenBucket` is plain arithmetic: the caller passes the time. It never waits: `take` answers at once, `get_wait_s` and
`reserve_s` say how long the caller has to wait. The work queue spreads retries with it, and the event recorder limits
the events of one object.

`RateLimit` adds the waiting. It starts no task: the first caller sleeps until its token is there, and the others queue
behind it. So a caller that is cancelled while it waits leaves the queue without a trace.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock


log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

LONG_WAIT_S: Final = 1.0
# A wait computed in floats may end slightly too early; a further millisecond corrects that, zero would spin.
_SHORTEST_WAIT_S: Final = 0.001


class RateLimit:
    """At most `burst` calls at once and `qps` per second on average; `qps` 0 means no limit."""

    def __init__(self, *, qps: float, burst: int, clock: Clock) -> None:
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._bucket = TokenBucket(per_s=qps, burst=burst) if qps else None
        self._queue = asyncio.Lock()
        self._has_logged = False

    async def wait(self) -> None:
        """Wait for a token."""
        if self._bucket is None:
            return
        requested_at = self._clock.monotonic_s()
        async with self._queue:
            # Taken after the wait, not reserved before it: a caller that is cancelled in its sleep has taken none.
            while not self._bucket.take(self._clock.monotonic_s()):
                missing_s = self._bucket.get_wait_s(self._clock.monotonic_s())
                await self._clock.sleep(max(missing_s, _SHORTEST_WAIT_S))
        self._log_wait(self._clock.monotonic_s() - requested_at)

    def _log_wait(self, waited_s: float) -> None:
        """Log once per congestion, which ends with the first call that did not wait."""
        if waited_s >= LONG_WAIT_S and not self._has_logged:
            self._has_logged = True
            log.warning("client.throttled", waited_s=round(waited_s, 3), qps=self._qps, burst=self._burst)
        elif not waited_s:
            self._has_logged = False


class TokenBucket:
    """Holds up to `burst` tokens, is full at first, and gains `per_s` tokens per second."""

    def __init__(self, *, per_s: float, burst: int) -> None:
        if not 0 < per_s < math.inf:
            raise InvalidInput(f"must be more than 0, is {per_s}", path="per_s")
        if burst < 1:
            raise InvalidInput(f"must be at least 1, is {burst}", path="burst")
        self._per_s = per_s
        self._burst = burst
        self._tokens = float(burst)
        self._at_s = -math.inf

    def take(self, now_s: float) -> bool:
        """Take a token if there is one."""
        self._refill(now_s)
        # Ten refills of 0.1 token make one token, whatever binary fractions say.
        if self._tokens < 1 - 1e-9:
            return False
        self._tokens -= 1
        return True

    def get_wait_s(self, now_s: float) -> float:
        """The time until a token is available."""
        self._refill(now_s)
        return max(0.0, (1 - self._tokens) / self._per_s)

    def reserve_s(self, now_s: float) -> float:
        """Take a token in advance, and return the time until it is available."""
        self._refill(now_s)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._per_s)

    def _refill(self, now_s: float) -> None:
        if now_s > self._at_s:
            passed_s = now_s - self._at_s
            self._tokens = min(float(self._burst), self._tokens + passed_s * self._per_s)
            self._at_s = now_s
