"""JSON as Go reads it: the value, the repeated fields, and Go's error for what is not JSON.

Values have passed `schema.json_values.take_over`, so walks may recurse.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

import msgspec

from plimsoll.core.values import Value
from plimsoll.objects.schema.json_values import MAX_NESTING, Refused, take_over

_MOST_DUPLICATES: Final = 100
_SPACE: Final = " \t\r\n"
# In text without spaces, all numbers that may be beyond int64.
_LARGE_NUMBER: Final = re.compile(rb"[:,\[]-?[0-9]{19}")
_encoder: Final = msgspec.json.Encoder()


class Read(Value):
    """What was read; `duplicates` are the paths of fields that stand twice, in the order in which they end."""

    value: Any
    duplicates: tuple[str, ...] = ()


class NotJson(Value):
    """Why it cannot be read, in Go's words."""

    problem: str


def read_json(text: bytes) -> Read | NotJson:
    """The value as Kubernetes takes it over: bounded nesting, numbers as Go spells them, the last of two equal keys."""
    plain = _parse_canonical(text)
    return _read_closely(text) if plain is None else Read(value=plain)


def _parse_canonical(text: bytes) -> Any | None:
    """The value of text in the canonical form of our own clients, which needs no further checks; None for any other.

    What comes out again letter by letter had no key twice and nothing spelled in an odd way. A tenth of the cost of
    the closer reading, which was a twelfth of a write.
    """
    if text.count(b"{") + text.count(b"[") > MAX_NESTING or _LARGE_NUMBER.search(text):
        return None
    try:
        value = _decoder.decode(text)
    except ValueError:
        return None
    return value if isinstance(value, (dict, list)) and _encoder.encode(value) == text else None


def _read_closely(text: bytes) -> Read | NotJson:
    counts = _Counting()
    try:
        value = json.loads(
            text.decode(errors="replace"), object_pairs_hook=counts.take, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):
        return NotJson(problem=describe_like_go(text.decode(errors="replace")))
    taken = take_over(value)
    if isinstance(taken, Refused):
        return NotJson(problem=f"{taken.path}: {taken.problem}" if taken.path else taken.problem)
    duplicates = _find_duplicate_paths(value, counts.repeated) if counts.repeated else ()
    return Read(value=taken, duplicates=duplicates)


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


# Go keeps 1.0 as a whole number: floats are read closely.
_decoder: Final = msgspec.json.Decoder(float_hook=_refuse_constant)


class _Repeated(NamedTuple):
    made: dict[str, Any]
    keys: tuple[str, ...]


class _Counting:
    """Notes which objects had a key twice. They are distinguished by identity, so each is kept alive beside its keys.

    The value alone does not do that: what a later key replaced is freed while reading goes on.
    """

    def __init__(self) -> None:
        self.repeated: dict[int, _Repeated] = {}

    def take(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            seen: set[str] = set()
            again = [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value] # add returns None, which is the point
            self.repeated[id(made)] = _Repeated(made, tuple(dict.fromkeys(again)))
        return made


def _find_duplicate_paths(value: Any, repeated: dict[int, _Repeated]) -> tuple[str, ...]:
    """Paths in document order; values that a later key replaced are gone, and with them what was wrong inside."""
    found: list[str] = []
    pending: list[tuple[str, Any]] = [("", value)]
    while pending and len(found) < _MOST_DUPLICATES:
        path, one = pending.pop()
        if isinstance(one, dict):
            if id(one) in repeated:
                found += [f"{path}.{key}" if path else key for key in repeated[id(one)].keys]
            inner = [(f"{path}.{key}" if path else key, item) for key, item in one.items()]
            pending += [pair for pair in reversed(inner) if isinstance(pair[1], dict | list)]
        else:
            inner = [(f"{path}[{index}]", item) for index, item in enumerate(one)]
            pending += [pair for pair in reversed(inner) if isinstance(pair[1], dict | list)]
    return tuple(found[:_MOST_DUPLICATES])


def describe_like_go(text: str) -> str:
    """Go's sentence about text that is no JSON: what is wrong with its first bad character."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        return "exceeded max depth"
    except json.JSONDecodeError as error:
        return _format_problem(text, error)
    except ValueError as error:
        return f"invalid character '{str(error)[:1]}' looking for beginning of value"
    return "invalid JSON"


def _format_problem(text: str, error: json.JSONDecodeError) -> str:
    place = error.pos
    while place < len(text) and text[place] in _SPACE:
        place += 1
    if place >= len(text) or error.msg.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    character = text[place]
    shown = "'\\''" if character == "'" else f"'{character}'"
    return f"invalid character {shown} {_EXPECTED.get(error.msg.partition(':')[0], 'looking for beginning of value')}"


_EXPECTED: Final = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ',' delimiter": "after object key:value pair",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
    "Invalid \\uXXXX escape": "in \\u hexadecimal character escape",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
}
