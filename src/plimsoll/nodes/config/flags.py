"""What a flag is: a name, what may be written for it, and where its value goes.

`policy` declares every flag as a field of a struct with the functions here (`duration`, `switch`, ...), so that a flag,
its type and its default stand in one place; `options` reads what people wrote into these structs. Values come from the
command line as text, from scenario files and ConfigMaps as text, numbers, booleans or lists.
"""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.planning.consolidation.budgets import read_allowance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Parse = Callable[[Any], Any]

_METADATA: Final = "flag"
_DURATION: Final = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+")
_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_UNIT_S: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
# Text of people is quoted in complaints, but never whole megabytes of it.
_QUOTED_AT_MOST: Final = 60
_MOST: Final = 1 << 53
"""Counts beyond this are typing mistakes, and would not survive a JSON reader."""


class State(Enum):
    """What we do with a flag of Cluster Autoscaler."""

    IMPLEMENTED = "implemented"
    ACCEPTED = "accepted"
    """Read, without effect; `Flag.note` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag, as the reference lists it."""

    name: str
    kind: str
    """For people: "duration", "count", "true or false", ..."""
    default: Any
    parse: Parse
    aliases: tuple[str, ...] = ()
    state: State = State.IMPLEMENTED
    note: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Bounds:
    """A smallest and a largest amount; None: no largest."""

    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class NamedBounds:
    """MIN:MAX:ID of a node group, or TYPE:MIN:MAX of an accelerator."""

    name: str
    bounds: Bounds


class InvalidOptions(InvalidInput):
    """Every mistake in a set of options, one a line; `problems` are (path, problem)."""

    def __init__(self, problems: Iterable[tuple[str, str]]) -> None:
        self.problems = tuple(problems)
        path, problem = self.problems[0]
        super().__init__(problem, path=path)
        self.args = ("\n".join(f"{path}: {problem}" for path, problem in self.problems),)


class _Wrong(Exception):
    """A value that cannot be read; the text says what to write instead."""


def problem_of(flag: Flag, value: Any) -> str | None:
    """What is wrong with a value; None when nothing is."""
    try:
        flag.parse(value)
    except _Wrong as error:
        return str(error)
    return None


# ---- declaring flags as fields of structs


def flags_of(struct: type) -> Iterator[tuple[str, Flag]]:
    """Field name and flag of every field that is one."""
    for field in dataclasses.fields(struct):
        if _METADATA in field.metadata:
            yield field.name, field.metadata[_METADATA]


def _field(flag: Flag) -> Any:
    return dataclasses.field(default=flag.default, metadata={_METADATA: flag})


def duration(name: str, default_s: float) -> Any:
    return _field(Flag(name=name, kind="duration", default=float(default_s), parse=parse_duration_s))


def switch(name: str, *, default: bool, aliases: tuple[str, ...] = ()) -> Any:
    return _field(Flag(name=name, kind="true or false", default=default, parse=parse_switch, aliases=aliases))


def count(name: str, default: int | None, *, least: int = 0) -> Any:
    def parse(value: Any) -> int:
        return parse_count(value, least=least)

    return _field(Flag(name=name, kind="count", default=default, parse=parse))


def ratio(name: str, default: float, *, most: float = math.inf) -> Any:
    def parse(value: Any) -> float:
        return parse_number(value, most=most)

    return _field(Flag(name=name, kind="number", default=default, parse=parse))


def text(name: str, default: str) -> Any:
    return _field(Flag(name=name, kind="text", default=default, parse=parse_text))


def choice(name: str, default: str, among: tuple[str, ...]) -> Any:
    def parse(value: Any) -> str:
        return parse_choice(value, among)

    return _field(Flag(name=name, kind=" | ".join(one for one in among if one), default=default, parse=parse))


def listed(name: str, *, item: Parse | None = None, commas: bool = True) -> Any:
    """A repeatable flag: a list, or one text (in which commas part items unless an item may hold commas)."""

    def parse(value: Any) -> tuple[Any, ...]:
        return tuple((item or parse_text)(one) for one in parse_list(value, commas=commas))

    return _field(Flag(name=name, kind="list", default=(), parse=parse))


def total(name: str, *, unit: str) -> Any:
    """MIN:MAX of the whole cluster, unset by default."""
    return _field(Flag(name=name, kind=f"MIN:MAX {unit}", default=None, parse=parse_bounds))


def parsed(name: str, default: Any, *, kind: str, parse: Parse, aliases: tuple[str, ...] = ()) -> Any:
    return _field(Flag(name=name, kind=kind, default=default, parse=parse, aliases=aliases))


# ---- reading values


def parse_duration_s(value: Any) -> float:
    """Go's syntax; seconds. A bare 0 needs no unit."""
    if isinstance(value, str) and _DURATION.fullmatch(value):
        seconds = math.fsum(float(number) * _UNIT_S[unit] for number, unit in _PART.findall(value))
        if value.startswith("-"):
            raise _Wrong(f"{_quoted(value)} is negative")
        return seconds
    if (_is_number(value) and value == 0) or value == "0":
        return 0.0
    unit = f'; a number needs a unit: "{value}s"' if _is_number(value) or str(value).isdigit() else ""
    raise _Wrong(f'{_quoted(value)} is no duration like "10s", "5m" or "1h30m"{unit}')


def read_duration_s(written: str) -> float | None:
    """Of a duration that no flag holds, an annotation's; None: it is none."""
    try:
        return parse_duration_s(written)
    except _Wrong:
        return None


def parse_switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    written = str(value) if isinstance(value, (str, int)) else ""
    if written in _TRUE or written in _FALSE:
        return written in _TRUE
    raise _Wrong(f"{_quoted(value)} is neither true nor false")


def parse_count(value: Any, *, least: int = 0) -> int:
    number = _whole(value)
    if number is None:
        raise _Wrong(f"{_quoted(value)} is not a whole number")
    if not least <= number <= _MOST:
        raise _Wrong(f"{_quoted(value)} is out of range; the least is {least}" if number < least else "is too large")
    return number


def parse_number(value: Any, *, most: float = math.inf) -> float:
    try:
        number = float(value) if isinstance(value, str) or _is_number(value) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise _Wrong(f"{_quoted(value)} is not a number")
    if not 0 <= number <= most:
        raise _Wrong(f"{_quoted(value)} is not between 0 and {most:g}" if most < math.inf else "must not be negative")
    return number


def parse_text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if _is_number(value):
        return str(value)
    raise _Wrong(f"{_quoted(value)} is not a text")


def parse_choice(value: Any, among: tuple[str, ...], same: Mapping[str, str] = MappingProxyType({})) -> str:
    """One of `among`; `same` maps other spellings to theirs."""
    written = parse_text(value)
    chosen = same.get(written, written)
    if chosen not in among:
        raise _Wrong(f"{_quoted(value)} is not known; say {' or '.join(one for one in among if one)}")
    return chosen


def parse_list(value: Any, *, commas: bool) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    written = parse_text(value)
    if not written:
        return []
    return [part.strip() for part in written.split(",") if part.strip()] if commas else [written]


def parse_bounds(value: Any) -> Bounds:
    """MIN:MAX, as --cores-total and --memory-total take them."""
    parts = parse_text(value).split(":")
    if len(parts) != 2:
        raise _Wrong(f'{_quoted(value)} is not MIN:MAX, like "0:320"')
    return _bounds(parts[0], parts[1])


def parse_group_bounds(value: Any) -> NamedBounds:
    """MIN:MAX:ID; an id may hold colons itself."""
    parts = parse_text(value).split(":", 2)
    if len(parts) != 3 or not parts[2]:
        raise _Wrong(f'{_quoted(value)} is not MIN:MAX:ID of a node group, like "0:10:pool-a"')
    return NamedBounds(parts[2], _bounds(parts[0], parts[1]))


def parse_disruption_budget(value: Any) -> str:
    """As `disruption_windows.read_allowance` reads it; kept as it was written."""
    written = parse_text(value)
    try:
        read_allowance(written)
    except InvalidInput as error:
        raise _Wrong(f"{_quoted(value)} {error.problem}") from error
    return written


def parse_accelerator_bounds(value: Any) -> NamedBounds:
    parts = parse_text(value).rsplit(":", 2)
    if len(parts) != 3 or not parts[0]:
        raise _Wrong(f'{_quoted(value)} is not TYPE:MIN:MAX, like "nvidia.com/gpu:0:8"')
    return NamedBounds(parts[0], _bounds(parts[1], parts[2]))


def _bounds(least: str, most: str) -> Bounds:
    bounds = Bounds(parse_count(least), parse_count(most))
    if bounds.most is not None and bounds.least > bounds.most:
        raise _Wrong(f"the minimum {bounds.least} is above the maximum {bounds.most}")
    return bounds


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,18}", value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _quoted(value: Any) -> str:
    written = repr(value) if isinstance(value, str) else str(value)
    return written if len(written) <= _QUOTED_AT_MOST else f"{written[:_QUOTED_AT_MOST]}..."
