"""How long the executor waits between two checks of the brokers.

While movements start and end, the next check follows soon, so that small partitions follow each other without a pause.
While nothing changes, the waits grow with the time since the last change, up to the interval of the options: the end of
a long movement may be noticed later than that of a short one. A check that takes long, on a large or slow cluster, is
followed by a longer wait: brokers are not kept busy with its reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock

SOON: Final = 0.1
"""The least wait, as a share of the interval."""
LATENESS: Final = 0.1
"""The wait, as a share of the time since something changed."""
REST: Final = 1.0
"""The least wait, as a multiple of the time that the check took."""


class CheckPace:
    """The waits of one execution."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed_s = self._began_s = clock.monotonic_s()

    def reset(self) -> None:
        """Something has changed: more may follow soon."""
        self._changed_s = self._clock.monotonic_s()

    def begin_check(self) -> None:
        self._began_s = self._clock.monotonic_s()

    def exclude(self, seconds: float) -> None:
        """A part of this check is not followed by a rest: something else limits how often it comes."""
        self._began_s += seconds

    def choose_wait(self, interval_s: float) -> float:
        """The wait after the check that ends now."""
        now_s = self._clock.monotonic_s()
        wait_s = max(SOON * interval_s, LATENESS * (now_s - self._changed_s), REST * (now_s - self._began_s))
        return min(interval_s, wait_s)
