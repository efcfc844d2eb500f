"""The two implementations of `plimsoll.core.clock.Clock`, so that no other module reads the time of the machine.

Live processes use `RealClock`; tests, scenarios and what-ifs use the `VirtualClock` of a `VirtualLoop`, a live tour
that of an `AcceleratedLoop`.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class VirtualTimeSource(Protocol):
    """What a virtual clock reads: nanoseconds since the loop was created, and the same time in seconds."""

    def get_elapsed_ns(self) -> int: ...

    def time(self) -> float: ...


class RealClock:
    """The machine's time, and the event loop's sleep."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class VirtualClock:
    """The time of a virtual or accelerated loop, counted from `start`. It stands still while a step runs."""

    def __init__(self, source: VirtualTimeSource, *, start: datetime) -> None:
        if start.tzinfo is None:
            raise ValueError(f"start {start} has no time zone")
        self._source = source
        self._start = start.astimezone(UTC)
        self._last_ns, self._last = 0, self._start

    def now(self) -> datetime:
        # Time does not advance while a virtual loop is busy, so the same moment is read many times.
        elapsed_ns = self._source.get_elapsed_ns()
        if elapsed_ns != self._last_ns:
            # A datetime has no nanoseconds; what is cut off here is still in monotonic_s().
            self._last = self._start + timedelta(microseconds=elapsed_ns // 1_000)
            self._last_ns = elapsed_ns
        return self._last

    def monotonic_s(self) -> float:
        return self._source.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def compute_elapsed_ns(self, when: datetime) -> int:
        """The position of `when` on the loop's own scale."""
        if when.tzinfo is None:
            raise ValueError(f"{when} has no time zone")
        return (when - self._start) // timedelta(microseconds=1) * 1_000
