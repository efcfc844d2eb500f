"""The implementations of `plimsoll.core.clock.Clock`, so that no other module reads the time of the machine.

Live processes use `RealClock`, a live tour `AcceleratedClock`; tests, scenarios and what-ifs use the `VirtualClock` of
a `VirtualLoop`.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

_LOOK_EVERY_S: Final = 0.02
_LONGEST_LOOK_S: Final = 0.05


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


class AcceleratedClock:
    """A clock that goes `speed` times as fast as the machine's, and waits for a machine that is busy.

    `run` makes it go on: by the time since its last look, but at most by `_LONGEST_LOOK_S`. Where the event loop comes
    late, time goes slower, and nothing times out only because the machine cannot keep up.
    """

    def __init__(self, speed: float) -> None:
        if not 0 < speed < float("inf"):
            raise ValueError(f"speed {speed} is not a positive number")
        self._speed = speed
        self._start = datetime.now(UTC)
        self._elapsed_s = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed_s)

    def monotonic_s(self) -> float:
        return self._elapsed_s

    async def sleep(self, seconds: float) -> None:
        until_s = self._elapsed_s + seconds
        await asyncio.sleep(0)
        while self._elapsed_s < until_s:  # noqa: ASYNC110 -- an Event per sleeper would be set by each look
            await asyncio.sleep(max(_LOOK_EVERY_S, (until_s - self._elapsed_s) / self._speed))

    async def run(self) -> None:
        """Until cancelled."""
        last_s = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            now_s = time.monotonic()
            self._elapsed_s += min(now_s - last_s, _LONGEST_LOOK_S) * self._speed
            last_s = now_s


class VirtualClock:
    """The time of a virtual loop, counted from `start`. It advances only when the loop jumps to a timer."""

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
