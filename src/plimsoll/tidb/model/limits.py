"""Bounds of numbers that come from objects and answers, and of what is computed from them.

A number outside its bounds is not used: it counts as unknown, or it is a problem of its field. The bounds are far above
every real cluster and keep arithmetic with times and floats from overflowing.
"""

from __future__ import annotations

from typing import Final

LEAST_CORES: Final = 0.001
MOST_CORES: Final = 1_000_000
MOST_BYTES: Final = 2**63 - 1
MOST_SECONDS: Final = 10 * 365 * 86_400
"""Ten years: the longest interval, and the longest window."""
HEARD_WITHIN_S: Final = 120.0
"""Stores report every 10 s, TiDB servers every 30 s; PD calls a store Up that it heard from within 20 s.

The report of a live instance from another time is an old answer, or clocks differ.
"""
CLOCK_SKEW_S: Final = 10.0
"""How far the clocks of two healthy machines may differ."""


def read_cores(number: float | None) -> float | None:
    """A cpu quota; None: it is unknown or out of range."""
    return number if number is not None and LEAST_CORES <= number <= MOST_CORES else None


def read_cpu_seconds(number: float | None, *, window_s: float) -> float | None:
    """The cpu time used in a window; None: it is unknown or out of range."""
    return number if number is not None and 0 <= number <= MOST_CORES * window_s else None


def read_bytes(number: float | None) -> float | None:
    return number if number is not None and 0 <= number <= MOST_BYTES else None
