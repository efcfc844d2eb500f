"""The garbage collector runs seldom under virtual time, because there is almost nothing to collect.

A simulated world is frozen values and plain dicts, and nearly all of it is freed as soon as the last reference goes.
New values replace old ones, so the youngest generation grows by thousands of live objects; walking them, and the
hundred thousand of a cluster, took a tenth of a busy hour. The setting is process-wide, so the last run that ends
restores it. In real time a process lives for months, and the usual thresholds hold; but while the API server works on a
value of megabytes in a thread, a full collection would stop every thread for as long as it walks that value.
"""

from __future__ import annotations

import gc
from typing import Final

# The number of allocated containers before a collection; Python's default is 700. This is a few megabytes.
_SELDOM: Final = (50_000, 20, 100)


class SeldomCollecting:
    """Counts the runs that use the setting."""

    def __init__(self) -> None:
        self._wanted = 0
        self._usual = gc.get_threshold()

    def begin(self) -> None:
        if not self._wanted:
            self._usual = gc.get_threshold()
            if self._usual[0]:  # zero: it was switched off
                gc.set_threshold(*_SELDOM)
        self._wanted += 1

    def end(self) -> None:
        self._wanted -= 1
        if not self._wanted:
            gc.set_threshold(*self._usual)


SELDOM_COLLECTING: Final = SeldomCollecting()
