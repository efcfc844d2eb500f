"""Timestamps and durations as text: RFC 3339 with nanoseconds, and Go's `1h30m` durations."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.values.values import NANOS, Duration, Timestamp

_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:[.,](\d{1,9})\d*)?(?:[Zz]|([+-])(\d{2}):(\d{2}))", re.ASCII
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)", re.ASCII)
_UNIT_NANOS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": NANOS,
    "m": 60 * NANOS,
    "h": 3600 * NANOS,
}
_OFFSET = re.compile(r"([+-]?)(\d{2}):(\d{2})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_TEXT = 128


def parse_timestamp(text: str) -> Timestamp:
    found = _RFC3339.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if found is None:
        raise _conversion_error("google.protobuf.Timestamp")
    date, clock, fraction, sign, hours, minutes = found.groups()
    try:
        local = datetime.fromisoformat(f"{date}T{clock}+00:00")
    except ValueError:
        raise _conversion_error("google.protobuf.Timestamp") from None
    if hours and (int(hours) > 23 or int(minutes) > 59):
        raise _conversion_error("google.protobuf.Timestamp")
    offset_s = (int(hours) * 3600 + int(minutes) * 60) * (-1 if sign == "-" else 1) if hours else 0
    seconds = (local - _EPOCH) // timedelta(seconds=1) - offset_s
    return Timestamp(seconds * NANOS + int((fraction or "").ljust(9, "0")))


def parse_date_or_timestamp(text: str) -> Timestamp:
    """The formats `date` and `date-time` of a schema both become timestamps."""
    return parse_timestamp(f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text)


def format_timestamp(value: Timestamp) -> str:
    seconds, nanos = divmod(value.nanos, NANOS)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{fraction}Z"


def parse_duration(text: str) -> Duration:
    if len(text) > _LONGEST_TEXT or not _DURATION.fullmatch(text):
        raise _conversion_error("google.protobuf.Duration")
    total = 0
    for number, unit in _PART.findall(text):
        whole, _, fraction = number.partition(".")
        scale = _UNIT_NANOS[unit]
        total += int(whole or "0") * scale + (int(fraction) * scale // 10 ** len(fraction) if fraction else 0)
    return Duration(-total if text.startswith("-") else total)


def format_duration(value: Duration) -> str:
    """The duration in seconds, with as many digits as needed."""
    sign = "-" if value.nanos < 0 else ""
    seconds, nanos = divmod(abs(value.nanos), NANOS)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{sign}{seconds}{fraction}s"


def convert_to_local_time(value: Timestamp, zone: str | None) -> datetime:
    """The time in UTC or in `zone` (an IANA name or `±hh:mm`), truncated to microseconds."""
    moment = _EPOCH + timedelta(microseconds=value.nanos // 1_000)
    if zone is None:
        return moment
    try:
        return moment.astimezone(_load_zone(zone))
    except OverflowError:
        raise CelEvaluationError("timestamp overflow") from None


@lru_cache(maxsize=64)
def _load_zone(name: str) -> timezone | ZoneInfo:
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        shift = timedelta(hours=int(hours), minutes=int(minutes))
        if shift < timedelta(days=1):
            return timezone(-shift if sign == "-" else shift)
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise CelEvaluationError(f"unknown time zone {name}") from None


def _conversion_error(to: str) -> CelEvaluationError:
    return CelEvaluationError(f"type conversion error from 'string' to '{to}'")
