"""An event loop whose time goes faster than that of the machine, and waits for a machine that is busy.

While the loop waits, its time goes `speed` times as fast; while it works, only for a moment per step. So every timer
and every timeout is faster by the same factor, and nothing times out because the machine cannot keep up. Sockets work
as ever: a browser may watch.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from plimsoll.runtime.clocks import VirtualClock

if TYPE_CHECKING:
    from selectors import SelectorKey

_LONGEST_STEP_S: Final = 0.01
"""What a step of the loop counts at most, in seconds of the machine."""
_NANOSECONDS: Final = 1_000_000_000


class _PacedSelector(selectors.DefaultSelector):
    """Counts the time of the loop."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed
        self._since_s = time.monotonic()
        self.elapsed_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """`timeout` is in seconds of the loop."""
        began_s = time.monotonic()
        self.elapsed_s += min(began_s - self._since_s, _LONGEST_STEP_S) * self._speed
        wanted_s = None if timeout is None else timeout / self._speed
        events = super().select(wanted_s)
        self._since_s = time.monotonic()
        waited_s = self._since_s - began_s
        self.elapsed_s += (waited_s if wanted_s is None else min(waited_s, max(0.0, wanted_s))) * self._speed
        return events


class AcceleratedLoop(asyncio.SelectorEventLoop):
    """`clock` shows its time, which begins now."""

    def __init__(self, speed: float) -> None:
        self._paced = _PacedSelector(speed)
        super().__init__(self._paced)
        self.clock = VirtualClock(self, start=datetime.now(UTC))

    def time(self) -> float:
        return self._paced.elapsed_s

    def get_elapsed_ns(self) -> int:
        return int(self._paced.elapsed_s * _NANOSECONDS)
