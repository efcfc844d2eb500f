"""The clock of leases, which continues while the machine is suspended.

Python's monotonic clock stands still during a suspend on Linux. A virtual machine that is paused and resumed would find
its lease as fresh as it left it, while a challenger on another machine has long taken over.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime


class SuspendAwareClock:
    """A `core.clock.Clock` over CLOCK_BOOTTIME, where there is one (Linux)."""

    def __init__(self) -> None:
        self._id = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        return time.clock_gettime(self._id)

    async def sleep(self, seconds: float) -> None:
        """The loop's sleep, which a suspend makes late: the caller must read the clock again after it."""
        await asyncio.sleep(seconds)
