"""Parses times like Go, with Go's messages for invalid times (metav1.Time and MicroTime).

The message names the part of the layout that did not fit, so the parts are parsed one by one, as in Go. The functions
only check; they do not return the time.
"""

from __future__ import annotations

import calendar
import re
from functools import lru_cache
from typing import Final

RFC3339: Final = "2006-01-02T15:04:05Z07:00"
RFC3339_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"

_LONGEST_SHOWN: Final = 256
_OFFSET: Final = re.compile(r"[+-](\d\d):(\d\d)", re.ASCII)
_FRACTION: Final = re.compile(r"[.,]\d+", re.ASCII)
_SIX_DIGITS: Final = re.compile(r"[.,]\d{6}", re.ASCII)

# (piece of the layout, its width, is it a number)
_PIECES: Final = (
    ("2006", 4, True),
    ("-", 1, False),
    ("01", 2, True),
    ("-", 1, False),
    ("02", 2, True),
    ("T", 1, False),
    ("15", 2, True),
    (":", 1, False),
    ("04", 2, True),
    (":", 1, False),
    ("05", 2, True),
)


def find_time_problem(text: str, layout: str = RFC3339) -> str | None:
    """The error of Go's time.Parse for `text`; None if there is none."""
    return (_find_problem if len(text) <= _LONGEST_KEPT else _find_problem.__wrapped__)(text, layout)


# Cached: an object has the same time in many fields, and again in every patch. No valid time is this long.
_LONGEST_KEPT: Final = 64


@lru_cache(maxsize=4096)
def _find_problem(text: str, layout: str) -> str | None:
    shown = text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."
    numbers: dict[str, int] = {}
    rest = text
    for piece, width, is_number in _PIECES:
        taken = rest[:width]
        fits = len(taken) == width and taken.isascii() and taken.isdigit() if is_number else taken == piece
        if not fits:
            return _cannot_parse(shown, layout, rest=rest, piece=piece)
        if is_number:
            numbers[piece] = int(taken)
            problem = _find_out_of_range(piece, int(taken))
            if problem:
                return f'parsing time "{shown}": {problem}'
        rest = rest[width:]
    return _find_rest_problem(shown, layout, rest=rest, numbers=numbers)


def _find_rest_problem(shown: str, layout: str, *, rest: str, numbers: dict[str, int]) -> str | None:
    fraction = (_SIX_DIGITS if layout == RFC3339_MICRO else _FRACTION).match(rest)
    if fraction:
        rest = rest[fraction.end() :]
    elif layout == RFC3339_MICRO:
        return _cannot_parse(shown, layout, rest=rest, piece=".000000")
    if rest.startswith("Z"):
        extra = rest[1:]
    else:
        offset = _OFFSET.match(rest)
        if offset is None:
            return _cannot_parse(shown, layout, rest=rest, piece="Z07:00")
        if int(offset[1]) > 24 or int(offset[2]) >= 60:
            return (
                f'parsing time "{shown}": time zone offset {"hour" if int(offset[1]) > 24 else "minute"} out of range'
            )
        extra = rest[offset.end() :]
    if extra:
        return f'parsing time "{shown}": extra text: "{extra[:_LONGEST_SHOWN]}"'
    # Python has no year 0; it has the days of any other leap year.
    days = calendar.monthrange(numbers["2006"] or 2000, numbers["01"])[1]
    return None if 1 <= numbers["02"] <= days else f'parsing time "{shown}": day out of range'


def _find_out_of_range(piece: str, value: int) -> str | None:
    if piece == "01" and not 1 <= value <= 12:
        return "month out of range"
    if piece == "15" and value >= 24:
        return "hour out of range"
    if piece == "04" and value >= 60:
        return "minute out of range"
    if piece == "05" and value >= 60:
        return "second out of range"
    return None


def _cannot_parse(shown: str, layout: str, *, rest: str, piece: str) -> str:
    return f'parsing time "{shown}" as "{layout}": cannot parse "{rest[:_LONGEST_SHOWN]}" as "{piece}"'
