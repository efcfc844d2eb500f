"""Durations as text, in Go's spelling, and times that stay within Python's range."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
LATEST: Final = datetime.max.replace(tzinfo=UTC)
"""Python's times end with the year 9999."""


def format_duration(seconds: float) -> str:
    """A duration as Go writes it: 15m0s, 1h0m10s, 1.5s."""
    minutes, rest = divmod(round(seconds, 3), 60)
    shown = f"{rest:.3f}".rstrip("0").rstrip(".") + "s"
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f"{hours}h{minutes}m{shown}"
    return f"{minutes}m{shown}" if minutes else shown


def add_seconds(moment: datetime, seconds: float) -> datetime:
    """The moment so many seconds later, or earlier if they are negative; at most `LATEST`, at least `EARLIEST`.

    For times and numbers that come from objects: a grace period may be 2⁶³ - 1 seconds. What is to happen beyond the
    end of time does not happen.
    """
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return LATEST if seconds > 0 else EARLIEST


def to_utc(moment: datetime) -> datetime:
    """The same moment in UTC: a time with an offset may lie before the year 1 or after 9999 there."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return LATEST if moment.year > 1 else EARLIEST
