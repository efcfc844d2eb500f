"""Ages in kubectl's format: `45s`, `2m10s`, `5d3h`, `<unknown>`.

Tables carry ages as text, so the server formats them, relative to its own clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from plimsoll.local.apiserver.presentation.field_access import UNKNOWN, Json, get_value

_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
# Go's zero time: what an absent timestamp is read as.
ZERO: Final = datetime(1, 1, 1, tzinfo=UTC)
# The longest duration Go can hold; longer ones are cut to it.
_LONGEST: Final = timedelta(microseconds=(2**63 - 1) // 1000)


def parse_timestamp(stamp: Any) -> datetime | None:
    """A timestamp of an object; None for what is absent, zero or no timestamp."""
    if not isinstance(stamp, str) or not _RFC3339.fullmatch(stamp):
        return None
    try:
        found = datetime.fromisoformat(stamp.upper())
    except ValueError:
        return None
    return None if found == ZERO else found


def format_since(stamp: Any, now: datetime) -> str:
    """The age of a timestamp."""
    found = parse_timestamp(stamp)
    return UNKNOWN if found is None else format_duration(now - found)


def format_age(obj: Json, now: datetime) -> str:
    """The age of an object."""
    return format_since(get_value(obj, "metadata", "creationTimestamp"), now)


def format_duration(span: timedelta) -> str:
    """A duration with the precision people care for at its size; a clock that is two seconds ahead is forgiven."""
    seconds = int(min(span, _LONGEST) / timedelta(seconds=1))
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * 60:
        return f"{max(seconds, 0)}s"
    minutes, hours = seconds // 60, seconds // 3600
    if minutes < 10:
        return _format_two_units(minutes, "m", seconds % 60, "s")
    if minutes < 3 * 60:
        return f"{minutes}m"
    if hours < 8:
        return _format_two_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    return _format_days(hours)


def _format_days(hours: int) -> str:
    days = hours // 24
    if days < 8:
        return _format_two_units(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    years = days // 365
    if hours < 24 * 365 * 8:
        return _format_two_units(years, "y", days % 365, "d")
    return f"{years}y"


def _format_two_units(large: int, unit: str, small: int, smaller_unit: str) -> str:
    return f"{large}{unit}{small}{smaller_unit}" if small else f"{large}{unit}"
