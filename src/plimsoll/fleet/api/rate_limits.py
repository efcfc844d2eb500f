"""Requests per second and token: a bucket per token that fills by the clock."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from plimsoll.fleet.api.errors import Code, RequestRefused

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.fleet.api.ports import RateLimit

_MOST_BUCKETS: Final = 10_000


class RateLimiter:
    """Counts requests. A bucket that is full again is forgotten."""

    def __init__(self, limit: RateLimit, *, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        """Requests left, and the time of the count, by token digest."""

    def take(self, token_digest: str) -> None:
        """Counts a request. Raises `RequestRefused` with the seconds to wait."""
        now_s = self._clock.monotonic_s()
        left, counted_s = self._buckets.get(token_digest, (float(self._limit.burst), now_s))
        left = min(self._limit.burst, left + (now_s - counted_s) * self._limit.per_second)
        if left < 1:
            self._buckets[token_digest] = left, now_s
            wait_s = math.ceil((1 - left) / self._limit.per_second)
            raise RequestRefused(
                Code.TOO_MANY_REQUESTS,
                f"more than {self._limit.per_second:g} requests per second with this token",
                headers={"retry-after": str(wait_s)},
            )
        if len(self._buckets) >= _MOST_BUCKETS and token_digest not in self._buckets:
            self._forget_full(now_s)
        self._buckets[token_digest] = left - 1, now_s

    def _forget_full(self, now_s: float) -> None:
        filling_s = self._limit.burst / self._limit.per_second
        self._buckets = {
            digest: (left, counted_s)
            for digest, (left, counted_s) in self._buckets.items()
            if now_s - counted_s < filling_s
        }
