"""What a flag is: a name, a kind of value, a default and a description.

`policy` declares every flag as a field of a struct with the functions here (`duration`, `switch`, ...), so that a flag,
its type, its default and its description stand in one place. `options` reads what people wrote into these structs.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.value_parsing import (
    InvalidValue,
    find_problem,
    parse_choice,
    parse_count,
    parse_duration_s,
    parse_list,
    parse_number,
    parse_switch,
    parse_text,
    quote,
)
from plimsoll.nodes.config.node_disruption_budgets import parse_budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Parse = Callable[[Any], Any]

_METADATA: Final = "flag"


class State(Enum):
    """Whether a flag has an effect."""

    IMPLEMENTED = "implemented"
    ACCEPTED = "accepted"
    """It is read and has no effect; `Flag.note` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag, as the reference lists it."""

    name: str
    kind: str
    """The kind of value, as the reference shows it: "duration", "count", "true or false", ..."""
    description: str
    """One plain sentence: what the flag does, its unit, and what holds without it."""
    default: Any
    parse: Parse
    aliases: tuple[str, ...] = ()
    state: State = State.IMPLEMENTED
    note: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Bounds:
    """A minimum and a maximum; None means no maximum."""

    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class NamedBounds:
    """MIN:MAX:ID of a node group, or TYPE:MIN:MAX of an accelerator."""

    name: str
    bounds: Bounds


class InvalidOptions(InvalidInput):
    """Every mistake in a set of options, one per line; `problems` are (path, problem)."""

    def __init__(self, problems: Iterable[tuple[str, str]]) -> None:
        self.problems = tuple(problems)
        path, problem = self.problems[0]
        super().__init__(problem, path=path)
        self.args = ("\n".join(f"{path}: {problem}" for path, problem in self.problems),)


def find_flag_problem(flag: Flag, value: Any) -> str | None:
    """What is wrong with a value; None if it can be read."""
    return find_problem(flag.parse, value)


# ---- declaring flags as fields of structs


def iterate_flags(struct: type) -> Iterator[tuple[str, Flag]]:
    """The field name and flag of every field that declares a flag."""
    for field in dataclasses.fields(struct):
        if _METADATA in field.metadata:
            yield field.name, field.metadata[_METADATA]


def _build_field(flag: Flag) -> Any:
    return dataclasses.field(default=flag.default, metadata={_METADATA: flag})


def duration(name: str, default_s: float, *, description: str) -> Any:
    flag = Flag(name=name, kind="duration", description=description, default=float(default_s), parse=parse_duration_s)
    return _build_field(flag)


def switch(name: str, *, default: bool, description: str, aliases: tuple[str, ...] = ()) -> Any:
    flag = Flag(
        name=name,
        kind="true or false",
        description=description,
        default=default,
        parse=parse_switch,
        aliases=aliases,
    )
    return _build_field(flag)


def count(name: str, default: int | None, *, description: str, least: int = 0) -> Any:
    def parse(value: Any) -> int:
        return parse_count(value, least=least)

    return _build_field(Flag(name=name, kind="count", description=description, default=default, parse=parse))


def ratio(name: str, default: float, *, description: str, most: float = math.inf) -> Any:
    def parse(value: Any) -> float:
        return parse_number(value, most=most)

    return _build_field(Flag(name=name, kind="number", description=description, default=default, parse=parse))


def text(name: str, default: str, *, description: str) -> Any:
    return _build_field(Flag(name=name, kind="text", description=description, default=default, parse=parse_text))


def choice(name: str, default: str, among: tuple[str, ...], *, description: str) -> Any:
    def parse(value: Any) -> str:
        return parse_choice(value, among)

    kind = " | ".join(value for value in among if value)
    return _build_field(Flag(name=name, kind=kind, description=description, default=default, parse=parse))


def list_flag(name: str, *, description: str, item: Parse | None = None, commas: bool = True) -> Any:
    """A repeatable flag: a list, or one text, which commas separate into items unless an item may contain commas."""

    def parse(value: Any) -> tuple[Any, ...]:
        return tuple((item or parse_text)(written) for written in parse_list(value, commas=commas))

    return _build_field(Flag(name=name, kind="list", description=description, default=(), parse=parse))


def total(name: str, *, unit: str, description: str) -> Any:
    """MIN:MAX of the whole cluster, unset by default."""
    return _build_field(
        Flag(name=name, kind=f"MIN:MAX {unit}", description=description, default=None, parse=parse_bounds)
    )


def custom_flag(
    name: str, default: Any, *, kind: str, parse: Parse, description: str, aliases: tuple[str, ...] = ()
) -> Any:
    flag = Flag(name=name, kind=kind, description=description, default=default, parse=parse, aliases=aliases)
    return _build_field(flag)


# ---- reading values


def parse_bounds(value: Any) -> Bounds:
    """MIN:MAX, as --cores-total and --memory-total take them."""
    parts = parse_text(value).split(":")
    if len(parts) != 2:
        raise InvalidValue(f'{quote(value)} is not MIN:MAX, like "0:320"')
    return _build_bounds(parts[0], parts[1])


def parse_group_bounds(value: Any) -> NamedBounds:
    """MIN:MAX:ID; an id may hold colons itself."""
    parts = parse_text(value).split(":", 2)
    if len(parts) != 3 or not parts[2]:
        raise InvalidValue(f'{quote(value)} is not MIN:MAX:ID of a node group, like "0:10:pool-a"')
    return NamedBounds(parts[2], _build_bounds(parts[0], parts[1]))


def parse_disruption_budget(value: Any) -> str:
    """A budget that `parse_budget` can read, as it was written."""
    written = parse_text(value)
    try:
        parse_budget(written)
    except InvalidInput as error:
        raise InvalidValue(f"{quote(value)} {error.problem}") from error
    return written


def parse_accelerator_bounds(value: Any) -> NamedBounds:
    parts = parse_text(value).rsplit(":", 2)
    if len(parts) != 3 or not parts[0]:
        raise InvalidValue(f'{quote(value)} is not TYPE:MIN:MAX, like "nvidia.com/gpu:0:8"')
    return NamedBounds(parts[0], _build_bounds(parts[1], parts[2]))


def _build_bounds(least: str, most: str) -> Bounds:
    bounds = Bounds(parse_count(least), parse_count(most))
    if bounds.most is not None and bounds.least > bounds.most:
        raise InvalidValue(f"the minimum {bounds.least} is above the maximum {bounds.most}")
    return bounds
