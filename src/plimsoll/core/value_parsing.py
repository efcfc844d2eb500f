"""Reads single values that people write: durations, switches, counts, numbers, texts, choices and lists.

Values come from the command line as text, from YAML files and ConfigMaps as text, numbers, booleans or lists. A parser
raises `InvalidValue`, whose text says what is wrong and what to write instead.
"""

from __future__ import annotations

import math
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DURATION: Final = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+")
_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_UNIT_S: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
# Text of people is quoted in complaints, but never whole megabytes of it.
_QUOTED_AT_MOST: Final = 60
_MOST: Final = 1 << 53
"""Counts beyond this are typing mistakes, and would not survive a JSON reader."""
LONGEST_S: Final = (2**63 - 1) / 1e9
"""Go's longest duration, 292 years: a longer one is not a duration there either."""
HIGHEST_PRICE: Final = 1e6
"""Per machine and hour. Sums of higher prices over a whole cluster would no longer be exact."""
LARGEST_NUMBER: Final = 1e15
"""Numbers beyond this are typing mistakes: prices, shares and seconds are smaller, and sums of them stay exact."""


class InvalidValue(Exception):
    """A value that cannot be read; the text says what to write instead."""


def find_problem(parse: Callable[[Any], Any], value: Any) -> str | None:
    """What is wrong with a value; None if it can be read."""
    try:
        parse(value)
    except InvalidValue as error:
        return str(error)
    return None


def parse_duration_s(value: Any) -> float:
    """Go's syntax; seconds. A bare 0 needs no unit."""
    if isinstance(value, str) and _DURATION.fullmatch(value):
        # Each part is bounded: fsum raises if finite parts have an infinite sum.
        seconds = math.fsum(min(float(number) * _UNIT_S[unit], 2 * LONGEST_S) for number, unit in _PART.findall(value))
        if value.startswith("-"):
            raise InvalidValue(f"{quote(value)} is negative")
        if seconds > LONGEST_S:
            raise InvalidValue(f"{quote(value)} is out of range; the longest duration is 2562047h47m16s")
        return seconds
    if (_is_number(value) and value == 0) or value == "0":
        return 0.0
    unit = f'; a number needs a unit: "{value}s"' if _is_number(value) or str(value).isdigit() else ""
    raise InvalidValue(f'{quote(value)} is not a duration like "10s", "5m" or "1h30m"{unit}')


def read_duration_s(written: str) -> float | None:
    """The seconds of a duration outside of flags, such as in an annotation; None if it is not a duration."""
    try:
        return parse_duration_s(written)
    except InvalidValue:
        return None


def parse_switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    written = str(value) if isinstance(value, (str, int)) else ""
    if written in _TRUE or written in _FALSE:
        return written in _TRUE
    raise InvalidValue(f"{quote(value)} is neither true nor false")


def parse_count(value: Any, *, least: int = 0) -> int:
    number = _parse_whole(value)
    if number is None:
        raise InvalidValue(f"{quote(value)} is not a whole number")
    if not least <= number <= _MOST:
        raise InvalidValue(
            f"{quote(value)} is out of range; the {'least' if number < least else 'most'} is "
            f"{least if number < least else _MOST}"
        )
    return number


def read_whole_number(written: str, *, least: int = 0, most: int = 2**31 - 1) -> int | None:
    """A whole number outside of flags, such as in an annotation; None if it is not a number, or out of range."""
    number = _parse_whole(written) if written.isascii() else None
    return number if number is not None and least <= number <= most else None


def parse_number(value: Any, *, most: float = math.inf) -> float:
    try:
        number = float(value) if isinstance(value, str) or _is_number(value) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidValue(f"{quote(value)} is not a number")
    most = min(most, LARGEST_NUMBER)
    if number < 0 and most == LARGEST_NUMBER:
        raise InvalidValue("must not be negative")
    if not 0 <= number <= most:
        raise InvalidValue(f"{quote(value)} is not between 0 and {most:g}")
    return number


def read_number(written: str) -> float | None:
    """A number outside of flags, such as in an annotation; None if it is not a number, or out of range."""
    try:
        return parse_number(written)
    except InvalidValue:
        return None


def parse_text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if _is_number(value):
        return str(value)
    raise InvalidValue(f"{quote(value)} is not a text")


def parse_choice(value: Any, among: tuple[str, ...], same: Mapping[str, str] = MappingProxyType({})) -> str:
    """One of `among`; `same` maps other spellings to theirs."""
    written = parse_text(value)
    chosen = same.get(written, written)
    if chosen not in among:
        raise InvalidValue(f"{quote(value)} is not known; use {' or '.join(value for value in among if value)}")
    return chosen


def parse_list(value: Any, *, commas: bool) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    written = parse_text(value)
    if not written:
        return []
    return [part.strip() for part in written.split(",") if part.strip()] if commas else [written]


def _parse_whole(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,18}", value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def quote(value: Any) -> str:
    written = repr(value) if isinstance(value, str) else str(value)
    return written if len(written) <= _QUOTED_AT_MOST else f"{written[:_QUOTED_AT_MOST]}..."
