"""Validation of cron schedules, with the messages of the library that Kubernetes parses them with."""

from __future__ import annotations

from typing import Final, NamedTuple


class _Field(NamedTuple):
    low: int
    high: int
    names: dict[str, int]


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    _Field(0, 59, {}),
    _Field(0, 23, {}),
    _Field(1, 31, {}),
    _Field(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_DESCRIPTORS: Final = frozenset(
    {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"},
)
_LONGEST: Final = 1000


def find_schedule_problem(schedule: str) -> str | None:
    if "TZ" in schedule:
        return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    if len(schedule) > _LONGEST:
        return f"expected at most {_LONGEST} characters, found {len(schedule)}"
    if schedule.startswith("@"):
        known = schedule in _DESCRIPTORS or schedule.startswith("@every ")
        return None if known else f"unrecognized descriptor: {schedule}"
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        return f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]"
    for field, part in zip(_FIELDS, parts, strict=True):
        for expression in part.split(","):
            problem = _find_range_problem(expression, field)
            if expression and problem:
                return problem
    return None


def _find_range_problem(expression: str, field: _Field) -> str | None:
    span, *steps = expression.split("/")
    ends = span.split("-")
    if len(steps) > 1:
        return f"too many slashes: {expression}"
    if ends[0] in ("*", "?"):
        start, end = field.low, field.high
    else:
        if len(ends) > 2:
            return f"too many hyphens: {expression}"
        numbers = [_parse_number(text, field) for text in ends]
        for number in numbers:
            if isinstance(number, str):
                return number
        start, end = (int(numbers[0]), int(numbers[-1]))
        if len(ends) == 1 and steps:
            end = field.high
    if steps:
        step = _parse_number(steps[0], _Field(0, 0, {}))
        if isinstance(step, str):
            return step
        if step == 0:
            return f"step of range should be a positive number: {expression}"
    return _find_bounds_problem(start, end, field=field, expression=expression)


def _find_bounds_problem(start: int, end: int, *, field: _Field, expression: str) -> str | None:
    if start < field.low:
        return f"beginning of range ({start}) below minimum ({field.low}): {expression}"
    if end > field.high:
        return f"end of range ({end}) above maximum ({field.high}): {expression}"
    if start > end:
        return f"beginning of range ({start}) beyond end of range ({end}): {expression}"
    return None


def _parse_number(text: str, field: _Field) -> int | str:
    """The number, or what is wrong with it."""
    if text.lower() in field.names:
        return field.names[text.lower()]
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return int(text)
    return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
