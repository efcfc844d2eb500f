"""The JSON paths of printer columns: `.spec.size`, `.status.conditions[?(@.type=="Ready")].status`.

They support client-go's fields, indexes, slices, unions, wildcards, filters and recursive descent; a missing field is
no error, it finds nothing. Parsing is one pass and evaluation uses a list of values, so neither can hang or overflow on
a hostile definition.
"""

from __future__ import annotations

import itertools
import operator
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TOKEN: Final = re.compile(
    r"""
      \.\.(?P<deep>[^.,\[\]$@{}\s\\]+)
    | \.(?P<field>(?:\\.|[^.,\[\]$@{}\s\\])+)
    | \[\s*\?\((?P<filter>(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^'"])*?)\)\s*\]
    | \[(?P<inside>(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^\]'"?])*)\]
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED: Final = re.compile(r"""'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)\"""", re.DOTALL)
_SLICE: Final = re.compile(r"(-?\d+)?:(-?\d+)?(?::(\d+))?", re.ASCII)
_FILTERED: Final = re.compile(
    r"""\s*@(?P<left>[^=!<>\s"'\[]*(?:\[(?:'[^']*'|"[^"]*"|[^\]'"]*)\][^=!<>\s"'\[]*)*)\s*(?P<sign>==|!=|<=|>=|<|>|)""",
    re.DOTALL,
)
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_LONGEST_PATH: Final = 10_000
_LONGEST_NUMBER: Final = 18

_SIGNS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class FieldNode(NamedTuple):
    """`.name`, `['name']`; `*` takes every value of an object or a list."""

    name: str


class WildcardNode(NamedTuple):
    """`.*` and `[*]`."""


class RecursiveNode(NamedTuple):
    """`..name`: the field wherever it stands below."""

    name: str


class ArrayNode(NamedTuple):
    """`[0]`, `[-1]`, `[0:2]`, `[0,2]`: places in a list."""

    places: tuple[slice, ...]


class UnionNode(NamedTuple):
    """`['a','b']`."""

    names: tuple[str, ...]


class FilterNode(NamedTuple):
    """`[?(@.type=="Ready")]`; without a comparison, the items that have the field."""

    left: JsonPath
    sign: str = ""
    right: Any = None


Step = FieldNode | WildcardNode | RecursiveNode | ArrayNode | UnionNode | FilterNode


class JsonPath(NamedTuple):
    """A parsed path."""

    steps: tuple[Any, ...]

    def find(self, root: Any) -> list[Any]:
        """Everything the path leads to. A filter that compares what cannot be compared finds nothing at all."""
        found = [root]
        try:
            for step in self.steps:
                found = list(_take(step, found))
        except TypeError:
            return []
        return found


class InvalidJsonPath(NamedTuple):
    """A text that is not a supported path; `problem` names the place of the error."""

    problem: str


@lru_cache(maxsize=1024)
def parse(text: str) -> JsonPath | InvalidJsonPath:
    """Parse a path with or without its braces."""
    if len(text) > _LONGEST_PATH:
        return InvalidJsonPath(f"the path is longer than {_LONGEST_PATH} characters")
    bare = text.strip()
    bare = bare[1:-1].strip() if bare.startswith("{") and bare.endswith("}") else bare
    bare = bare.removeprefix("$")
    steps: list[Step] = []
    at = 0
    while at < len(bare):
        token = _TOKEN.match(bare, at)
        step = None if token is None else _parse_step(token)
        if token is None or step is None:
            return InvalidJsonPath(f"unrecognized text at {bare[at : at + 40]!r}")
        steps.append(step)
        at = token.end()
    return JsonPath(tuple(steps))


def _parse_step(token: re.Match[str]) -> Step | None:
    if token["deep"] is not None:
        return RecursiveNode(token["deep"])
    if token["field"] is not None:
        return WildcardNode() if token["field"] == "*" else FieldNode(_unescape(token["field"]))
    return _parse_bracket(token["inside"].strip()) if token["filter"] is None else _parse_filter(token["filter"])


def _parse_bracket(inside: str) -> Step | None:
    if inside == "*":
        return WildcardNode()
    parts = _split_at_commas(inside)
    names = [_QUOTED.fullmatch(part) for part in parts]
    if all(names):
        unquoted = tuple(_unescape(name[1] if name[1] is not None else name[2]) for name in names if name)
        return FieldNode(unquoted[0]) if len(unquoted) == 1 else UnionNode(unquoted)
    places = [_parse_slice(part) for part in parts]
    return (
        None
        if any(place is None for place in places)
        else ArrayNode(tuple(item for item in places if item is not None))
    )


def _split_at_commas(inside: str) -> list[str]:
    without_quotes = _QUOTED.sub(lambda found: "x" * len(found[0]), inside)
    cuts = [-1, *(at for at, character in enumerate(without_quotes) if character == ","), len(inside)]
    return [inside[start + 1 : end].strip() for start, end in itertools.pairwise(cuts)]


def _parse_slice(part: str) -> slice | None:
    if len(part) > 3 * _LONGEST_NUMBER:
        return None
    if re.fullmatch(r"-?\d+", part, re.ASCII):
        at = int(part)
        return slice(at, at + 1 if at != -1 else None)
    found = _SLICE.fullmatch(part)
    if found is None or found[3] == "0":
        return None
    start, end, stride = (None if group is None else int(group) for group in found.groups())
    return slice(start, end, stride)


def _parse_filter(inside: str) -> FilterNode | None:
    found = _FILTERED.match(inside)
    if found is None:
        return None
    left, rest = parse(found["left"]), inside[found.end() :].strip()
    if isinstance(left, InvalidJsonPath):
        return None
    if not found["sign"]:
        return None if rest else FilterNode(left)
    right = _parse_literal(rest)
    return None if right is None else FilterNode(left, found["sign"], right)


def _parse_literal(written: str) -> Any:
    quoted = _QUOTED.fullmatch(written)
    if quoted is not None:
        return _unescape(quoted[1] if quoted[1] is not None else quoted[2])
    if written in {"true", "false"}:
        return written == "true"
    if len(written) <= _LONGEST_NUMBER and _NUMBER.fullmatch(written):
        return float(written) if "." in written else int(written)
    return None


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _take(step: Step, values: list[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(step, FieldNode):
            if isinstance(value, dict) and step.name in value:
                yield value[step.name]
        elif isinstance(step, UnionNode):
            yield from (value[name] for name in step.names if isinstance(value, dict) and name in value)
        elif isinstance(step, WildcardNode):
            yield from _list_children(value)
        elif isinstance(step, ArrayNode):
            yield from (item for place in step.places if isinstance(value, list) for item in value[place])
        elif isinstance(step, RecursiveNode):
            yield from _find_below(value, step.name)
        else:
            yield from (child for child in _list_children(value) if _passes(step, child))


def _list_children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return value if isinstance(value, list) else []


def _find_below(root: Any, name: str) -> Iterator[Any]:
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if name == "*":
            yield from _list_children(value)
        elif isinstance(value, dict) and name in value:
            yield value[name]
        waiting.extend(reversed(_list_children(value)))


def _passes(step: FilterNode, item: Any) -> bool:
    found = step.left.find(item)
    if not step.sign:
        return bool(found)
    if not found:
        return False
    left, right = found[0], step.right
    if _sort(left) != _sort(right):
        raise TypeError(f"{left!r} and {right!r} cannot be compared")
    return _SIGNS[step.sign](left, right)


def _sort(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "other"
