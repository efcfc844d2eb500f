"""A budget that refills with time, as plain arithmetic: the reader of the clock says what time it is.

The work queue spreads retries over it, the event recorder stops chatter about one object with it, the client keeps to
its rate by it. It never waits: `take` answers at once, `missing_s` and `reserve_s` say how long the caller has to.
"""

from __future__ import annotations

import math

from plimsoll.core.errors import InvalidInput


class TokenBucket:
    """Holds up to `burst` tokens, full at first, and gains `per_s` of them a second."""

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

    def missing_s(self, now_s: float) -> float:
        """How long until there is a token to take."""
        self._refill(now_s)
        return max(0.0, (1 - self._tokens) / self._per_s)

    def reserve_s(self, now_s: float) -> float:
        """Take a token that may not be there yet: how long until it is."""
        self._refill(now_s)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._per_s)

    def _refill(self, now_s: float) -> None:
        if now_s > self._at_s:
            passed_s = now_s - self._at_s
            self._tokens = min(float(self._burst), self._tokens + passed_s * self._per_s)
            self._at_s = now_s
