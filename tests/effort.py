"""How long the long tests run: a part in `make test` and in CI, the whole under `make test-long`."""

from __future__ import annotations

import os

IS_LONG = bool(os.environ.get("PLIMSOLL_TEST_LONG"))
SHARE = 5
"""A short run tries one example in five."""
CALLS_APART = 3


def share_of(whole: int) -> int:
    """The number of examples, clusters or rounds to try in this run."""
    return whole if IS_LONG else max(1, whole // SHARE)


def choose_calls(at_most: int, first: int = 1) -> range:
    """The calls, counted from 1, that a sweep of faults strikes in turn: all, or every third in a short run.

    `first`: of a short run. Sweeps of one story begin at different calls, so that together they strike them all.
    """
    return range(1, at_most) if IS_LONG else range(first, at_most, CALLS_APART)
