"""How long the executor waits between two checks of the brokers.

While movements start and end, the next check follows soon, so that small partitions follow each other without a pause.
While nothing changes, each wait is twice the one before, up to the interval of the options. A check that takes long, on
a large or slow cluster, is followed by a longer wait: brokers are not kept busy with its reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock

SOON: Final = 0.1
"""The wait after a check in which something changed, as a share of the interval."""
GROWTH: Final = 2.0
REST: Final = 1.0
"""The least wait, as a multiple of the time that the check took."""


class CheckPace:
    """The waits of one execution."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._share = SOON
        """The next wait, as a share of the interval."""
        self._began_s = clock.monotonic_s()

    def reset(self) -> None:
        """Something has changed: more may follow soon."""
        self._share = SOON

    def begin_check(self) -> None:
        self._began_s = self._clock.monotonic_s()

    def choose_wait(self, interval_s: float) -> float:
        """The wait after the check that ends now."""
        took_s = self._clock.monotonic_s() - self._began_s
        wait_s = max(self._share * interval_s, REST * took_s)
        self._share = min(1.0, self._share * GROWTH)
        return min(interval_s, wait_s)
