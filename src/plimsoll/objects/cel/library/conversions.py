"""Conversions between types, `type`, `dyn`, and the accessors of timestamps and durations."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, NoReturn

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.types.signatures import Library
from plimsoll.objects.cel.values import times
from plimsoll.objects.cel.values.numbers import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    UInt,
    check_int64,
    convert_double_to_int,
    convert_double_to_uint,
)
from plimsoll.objects.cel.values.values import (
    NANOS,
    Duration,
    Opaque,
    Timestamp,
    TypeValue,
    get_type_name,
    raise_no_such_overload,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

LIBRARY = Library()

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DOUBLE = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE
)
_LONGEST_NUMBER = 400


def _refuse(value: object, to: str) -> NoReturn:
    raise CelEvaluationError(f"type conversion error from '{get_type_name(value)}' to '{to}'")


@LIBRARY.function(
    "int(int) -> int",
    "int(uint) -> int",
    "int(double) -> int",
    "int(string) -> int",
    "int(timestamp) -> int",
    "int(duration) -> int",
)
def to_int(value: object) -> int:
    match value:
        case bool():
            return raise_no_such_overload("int")
        case int():
            return check_int64(int(value), unsigned=False)
        case float():
            return convert_double_to_int(value)
        case str():
            return _parse_integer(value, "int", low=INT_MIN, high=INT_MAX)
        case Timestamp():
            return value.nanos // NANOS
        case Duration():
            return value.nanos
    return raise_no_such_overload("int")


@LIBRARY.function("uint(uint) -> uint", "uint(int) -> uint", "uint(double) -> uint", "uint(string) -> uint")
def to_uint(value: object) -> UInt:
    match value:
        case bool():
            return raise_no_such_overload("uint")
        case int():
            return UInt(check_int64(int(value), unsigned=True))
        case float():
            return convert_double_to_uint(value)
        case str():
            return UInt(_parse_integer(value, "uint", low=0, high=UINT_MAX))
    return raise_no_such_overload("uint")


def _parse_integer(text: str, to: str, *, low: int, high: int) -> int:
    if len(text) > _LONGEST_NUMBER or not _INTEGER.fullmatch(text) or (low == 0 and not text.isdigit()):
        _refuse(text, to)
    value = int(text)
    if not low <= value <= high:
        _refuse(text, to)
    return value


@LIBRARY.function(
    "double(double) -> double", "double(int) -> double", "double(uint) -> double", "double(string) -> double"
)
def to_double(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        if len(value) > _LONGEST_NUMBER or not _DOUBLE.fullmatch(value):
            _refuse(value, "double")
        number = float(value)
        if math.isinf(number) and "inf" not in value.lower():
            _refuse(value, "double")
        return number
    return raise_no_such_overload("double")


@LIBRARY.function(
    "string(string) -> string",
    "string(bool) -> string",
    "string(int) -> string",
    "string(uint) -> string",
    "string(double) -> string",
    "string(bytes) -> string",
    "string(timestamp) -> string",
    "string(duration) -> string",
    "string(ip) -> string",
    "string(cidr) -> string",
)
def to_string(value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return format_shortest_double(value)
        case bytes():
            return _decode_text(value)
        case Timestamp():
            return times.format_timestamp(value)
        case Duration():
            return times.format_duration(value)
        case Opaque():
            return str(value)
    return raise_no_such_overload("string")


def _decode_text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise CelEvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def format_shortest_double(value: float) -> str:
    """Format like Go's %g: the fewest digits that parse to the same value; an exponent from 1e+06 on and below 1e-4."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    sign, digits, power = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(power, int)
    minus = "-" if sign else ""
    text = "".join(map(str, digits))
    exponent = len(text) - 1 + power
    if value != 0 and not -4 <= exponent < 6:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        return f"{minus}{text[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return minus + format(Decimal(text).scaleb(power), "f")


@LIBRARY.function("bytes(bytes) -> bytes", "bytes(string) -> bytes")
def to_bytes(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return value if isinstance(value, bytes) else raise_no_such_overload("bytes")


@LIBRARY.function("bool(bool) -> bool", "bool(string) -> bool")
def to_bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return raise_no_such_overload("bool")
    if value in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if value in {"0", "f", "F", "false", "FALSE", "False"}:
        return False
    return _refuse(value, "bool")


@LIBRARY.function("timestamp(timestamp) -> timestamp", "timestamp(string) -> timestamp", "timestamp(int) -> timestamp")
def to_timestamp(value: object) -> Timestamp:
    match value:
        case Timestamp():
            return value
        case str():
            return times.parse_timestamp(value)
        case int() if not isinstance(value, bool | UInt):
            return Timestamp(value * NANOS)
    return raise_no_such_overload("timestamp")


@LIBRARY.function("duration(duration) -> duration", "duration(string) -> duration", "duration(int) -> duration")
def to_duration(value: object) -> Duration:
    match value:
        case Duration():
            return value
        case str():
            return times.parse_duration(value)
        case int() if not isinstance(value, bool | UInt):
            return Duration(value)
    return raise_no_such_overload("duration")


@LIBRARY.function("dyn(A) -> dyn")
def to_dyn(value: object) -> object:
    return value


@LIBRARY.function("type(A) -> type(A)")
def type_of(value: object) -> TypeValue:
    return TypeValue(get_type_name(value))


def _declare_calendar_part(name: str, part: Callable[[datetime], int]) -> None:
    @LIBRARY.function(f"<timestamp>.{name}() -> int", f"<timestamp>.{name}(string) -> int")
    def accessor(value: Timestamp, zone: str | None = None) -> int:
        return part(times.convert_to_local_time(value, zone))


_declare_calendar_part("getFullYear", lambda moment: moment.year)
_declare_calendar_part("getMonth", lambda moment: moment.month - 1)
_declare_calendar_part("getDayOfYear", lambda moment: moment.timetuple().tm_yday - 1)
_declare_calendar_part("getDayOfMonth", lambda moment: moment.day - 1)
_declare_calendar_part("getDate", lambda moment: moment.day)
_declare_calendar_part("getDayOfWeek", lambda moment: moment.isoweekday() % 7)


def _declare_clock_part(name: str, part: Callable[[datetime], int], nanos: int) -> None:
    """A part of a timestamp's clock time, or a whole duration in that unit."""

    @LIBRARY.function(
        f"<timestamp>.{name}() -> int", f"<timestamp>.{name}(string) -> int", f"<duration>.{name}() -> int"
    )
    def accessor(value: Timestamp | Duration, zone: str | None = None) -> int:
        if isinstance(value, Duration):
            return int(math.copysign(abs(value.nanos) // nanos, value.nanos))
        return part(times.convert_to_local_time(value, zone))


_declare_clock_part("getHours", lambda moment: moment.hour, 3600 * NANOS)
_declare_clock_part("getMinutes", lambda moment: moment.minute, 60 * NANOS)
_declare_clock_part("getSeconds", lambda moment: moment.second, NANOS)
_declare_clock_part("getMilliseconds", lambda moment: moment.microsecond // 1000, NANOS // 1000)
