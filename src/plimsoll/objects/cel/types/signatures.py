"""Functions: how they are declared (a signature in words) and bound to Python, in one line each.

    @LIBRARY.function("<string>.charAt(int) -> string")
    def char_at(text: str, index: int) -> str: ...

`<receiver>.name(…)` is a method; without the angle brackets the dots belong to the name (`optional.of(A)`). Single
capital letters are type variables. The checker reads the types; the evaluator calls `implementation`, receiver first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from plimsoll.objects.cel.types import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

_SIGNATURE = re.compile(r"(?:<(?P<receiver>.+?)>\.)?(?P<name>\S+?)\((?P<parameters>.*)\) -> (?P<result>.+)")
_SIMPLE = {
    str(simple): simple
    for simple in (t.BOOL, t.INT, t.UINT, t.DOUBLE, t.STRING, t.BYTES, t.TIMESTAMP, t.DURATION, t.NULL, t.DYN)
} | {
    "quantity": t.QUANTITY,
    "url": t.URL,
    "ip": t.IP,
    "cidr": t.CIDR,
    "semver": t.SEMVER,
    "format": t.FORMAT,
}


@dataclass(frozen=True, slots=True)
class Overload:
    """One form of a function. A method's receiver is the first of `parameters`."""

    name: str
    parameters: tuple[t.CelType, ...]
    result: t.CelType
    is_method: bool
    implementation: Callable[..., Any]


@dataclass(slots=True)
class Library:
    """A set of functions, filled by its module at import."""

    overloads: list[Overload] = field(default_factory=list)

    def function(self, *signatures: str) -> Callable[[F], F]:
        """Declare the decorated function under each of the signatures."""

        def declare(implementation: F) -> F:
            self.overloads += [_parse_overload(signature, implementation) for signature in signatures]
            return implementation

        return declare


def _parse_overload(signature: str, implementation: Callable[..., Any]) -> Overload:
    found = _SIGNATURE.fullmatch(signature)
    assert found is not None, signature
    receiver = found["receiver"]
    names = ([receiver] if receiver else []) + _split(found["parameters"])
    return Overload(
        name=found["name"],
        parameters=tuple(_parse_type(name) for name in names),
        result=_parse_type(found["result"]),
        is_method=receiver is not None,
        implementation=implementation,
    )


def _split(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    parts: list[str] = []
    depth, start = 0, 0
    for position, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def _parse_type(text: str) -> t.CelType:
    if text in _SIMPLE:
        return _SIMPLE[text]
    if len(text) == 1 and text.isupper():
        return t.TypeVariable(text)
    constructor, _, rest = text.partition("(")
    of = [_parse_type(part) for part in _split(rest[:-1])]
    match constructor:
        case "list":
            return t.ListType(of[0])
        case "map":
            return t.MapType(of[0], of[1])
        case "optional":
            return t.OptionalType(of[0])
        case "type":
            return t.TypeType(of[0])
        case _:
            raise AssertionError(text)
