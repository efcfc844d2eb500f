"""The garbage collector while time is virtual: it looks seldom, because there is next to nothing to be found.

A simulated world is frozen values and plain dicts, and nearly all of it is freed as soon as nobody refers to it. What
it writes takes the place of what it wrote before, so the collector's youngest generation grows by thousands of objects
that live, and its walks over them, and over the hundred thousand of a cluster, were a tenth of a busy hour. It is for
the whole process, so the last run that ends puts things back. Used by `virtual_runs` alone: in real time a process
lives for months, and the usual thresholds hold.
"""

from __future__ import annotations

import gc
from typing import Final

# Of containers made and not yet freed, as against Python's 700: some megabytes.
_SELDOM: Final = (50_000, 20, 100)


class SeldomCollecting:
    """Counts who wants it so."""

    def __init__(self) -> None:
        self._wanted = 0
        self._usual = gc.get_threshold()

    def begin(self) -> None:
        if not self._wanted:
            self._usual = gc.get_threshold()
            if self._usual[0]:  # zero: somebody has switched it off
                gc.set_threshold(*_SELDOM)
        self._wanted += 1

    def end(self) -> None:
        self._wanted -= 1
        if not self._wanted:
            gc.set_threshold(*self._usual)


SELDOM_COLLECTING: Final = SeldomCollecting()
