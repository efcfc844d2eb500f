"""Expectations about an outcome: paths, operators and messages. Pure.

A path is `/nodeGroups/g/target`, with `~1` for a slash and `~0` for a tilde inside a name as in JSON pointers, or
dotted: `loops[0].time`. A name that contains the separator is also found without escaping: `/pods/default/web-0`.
"""

from __future__ import annotations

import difflib
import json
import operator
import re
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.objects.schema.regular_expressions import compile_pattern, find_problem
from plimsoll.simulation.document import describe_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.simulation.document import DocumentValue
    from plimsoll.simulation.scenario import Expectation

OPERATORS: Final = ("eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "matches", "absent", "count")
# Names of operators in other languages.
_FOREIGN: Final = {
    "lte": "le",
    "gte": "ge",
    "neq": "ne",
    "equal": "eq",
    "equals": "eq",
    "len": "count",
    "length": "count",
    "regex": "matches",
}
# Fields of an outcome that look like operators.
_NO_SLIPS: Final = frozenset({"min"})
_SIMILARITY: Final = 0.8


class Absent(Value, frozen=True):
    """There is nothing at a path. `at` is its first missing part."""

    at: str


class UnmetExpectation(Value, frozen=True):
    """An expectation that does not hold."""

    path: str
    wanted: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.path}: wanted {format_value(self.wanted)}, got {format_value(self.got)}"


# ---- reading


def read_operators(given: DocumentValue) -> tuple[tuple[str, Any], ...]:
    """A map of operators, or any other value, which must be equal.

    A map with an operator, or with a misspelt one, must consist of operators only.
    """
    value = given.value
    if not (isinstance(value, dict) and any(name in OPERATORS or _guess_operator(name) for name in value)):
        return (("eq", value),)
    for name, field in given.read_members().items():
        if name in OPERATORS:
            _check_operand(name, field)
        else:
            field.add_problem(f"{_format_no_operator(name)} (a map to be compared as it is goes under eq)")
    return tuple(value.items())


def _guess_operator(name: str) -> str:
    """The operator that a name probably misspells; empty if there is none."""
    if name in _NO_SLIPS:
        return ""
    lowered = name.lower().lstrip("$")
    near = difflib.get_close_matches(lowered, OPERATORS, n=1, cutoff=_SIMILARITY)
    return _FOREIGN.get(lowered, near[0] if near else "")


def _format_no_operator(name: str) -> str:
    meant = _guess_operator(name)
    return "is not an operator; " + (f"did you mean {meant}?" if meant else f"known are {', '.join(OPERATORS)}")


def _check_operand(name: str, given: DocumentValue) -> None:
    if name == "matches":
        if problem := find_problem(given.read_text()):
            given.add_problem(problem)
    elif name == "in" and not isinstance(given.value, list):
        given.add_problem(f"must be a list, is {describe_value(given.value)}")
    elif name == "absent":
        given.read_flag()
    elif name == "count":
        _check_count(given)
    elif name in {"lt", "le", "gt", "ge"} and not _is_ordered(given.value):
        given.add_problem(f"must be a number or a text, is {describe_value(given.value)}")


def _check_count(given: DocumentValue) -> None:
    if not isinstance(given.value, dict):
        given.read_whole()
    elif not given.value:
        given.add_problem("must be a number or operators, is an empty map")
    else:
        for name, field in given.read_members().items():
            if name in OPERATORS:
                _check_operand(name, field)
            else:
                field.add_problem(_format_no_operator(name))


# ---- comparing


def find_unmet(expectation: Expectation, outcome: dict[str, Any]) -> UnmetExpectation | None:
    got = find(outcome, expectation.path)
    for name, operand in expectation.operators:
        if not _holds(name, operand, got):
            wanted = operand if name == "eq" else {name: operand}
            return UnmetExpectation(path=expectation.path, wanted=wanted, got=got)
    return None


def find(document: Any, path: str) -> Any:
    """The value at a path, or `Absent`."""
    is_pointer = path.startswith("/")
    parts = path[1:].split("/") if is_pointer else _split_path(path)
    if path in {"", "/"}:
        return document
    return _find(document, parts, separator="/" if is_pointer else ".")


def _find(document: Any, parts: Sequence[str], *, separator: str) -> Any:
    if not parts:
        return document
    if isinstance(document, dict):
        return _find_in_map(document, parts, separator=separator)
    if isinstance(document, list) and re.fullmatch(r"-?\d{1,9}", parts[0]):
        index = int(parts[0])
        if -len(document) <= index < len(document):
            return _find(document[index], parts[1:], separator=separator)
    return Absent(at=parts[0])


def _find_in_map(document: dict[str, Any], parts: Sequence[str], *, separator: str) -> Any:
    """A name may contain the separator: the shortest run of parts that is a key is tried first, then longer ones."""
    nothing: Absent | None = None
    for length in range(1, len(parts) + 1):
        raw = separator.join(parts[:length])
        for key in dict.fromkeys((raw, _unescape(raw))):
            if key in document:
                found = _find(document[key], parts[length:], separator=separator)
                if not isinstance(found, Absent):
                    return found
                nothing = nothing or found
    return nothing or Absent(at=parts[0])


def _split_path(path: str) -> list[str]:
    """`loops[0].time` → loops, 0, time."""
    return [part for part in re.sub(r"\[(-?\d+)\]", r".\1", path).split(".") if part]


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _holds(name: str, operand: Any, got: Any) -> bool:
    if name == "absent":
        return isinstance(got, Absent) is bool(operand)
    if isinstance(got, Absent):
        return False
    return _CHECKS[name](operand, got)


def _is_counted(operand: Any, got: Any) -> bool:
    if not isinstance(got, dict | list | str):
        return False
    wanted = operand if isinstance(operand, dict) else {"eq": operand}
    return all(_holds(name, bound, len(got)) for name, bound in wanted.items())


def _contains(operand: Any, got: Any) -> bool:
    if isinstance(got, str):
        return isinstance(operand, str) and operand in got
    if isinstance(got, dict):
        return operand in got if isinstance(operand, str) else _covers(operand, got)
    return isinstance(got, list) and any(_covers(operand, item) for item in got)


def _covers(wanted: Any, got: Any) -> bool:
    """A map covers maps that have its fields among others; other values must be equal."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        return all(key in got and _covers(value, got[key]) for key, value in wanted.items())
    return is_equal(wanted, got)


def is_equal(value: Any, other: Any) -> bool:
    """Equality as in JSON: 1 equals 1.0, and neither equals true."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(is_equal(value[key], other[key]) for key in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(is_equal, value, other))
    return bool(value == other)


def _format_value(value: Any) -> str:
    """The text that a pattern is matched with if the value is not a string: JSON with sorted keys."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _is_ordered(value: Any) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)


def _compare_ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def check(operand: Any, got: Any) -> bool:
        same_kind = isinstance(operand, str) == isinstance(got, str)
        return _is_ordered(got) and same_kind and compare(got, operand)

    return check


_CHECKS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": is_equal,
    "ne": lambda operand, got: not is_equal(operand, got),
    "lt": _compare_ordered(operator.lt),
    "le": _compare_ordered(operator.le),
    "gt": _compare_ordered(operator.gt),
    "ge": _compare_ordered(operator.ge),
    "in": lambda operand, got: any(is_equal(allowed, got) for allowed in operand),
    "contains": _contains,
    "matches": lambda operand, got: bool(
        compile_pattern(operand).search(got if isinstance(got, str) else _format_value(got))
    ),
    "count": _is_counted,
}


def format_value(value: Any) -> str:
    """A value on one line, as JSON, truncated if long."""
    if isinstance(value, Absent):
        return f"nothing (no {value.at})"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 500 else f"{text[:500]}…"
