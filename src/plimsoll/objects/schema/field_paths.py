"""The small JSON paths of definitions: `fieldPath` of a rule and `jsonPath` of a selectable field.

Only fields and map keys, no array positions: `.spec.min`, `.labels['a.b']`. Read against a schema, because a path must
lead to something the schema describes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.objects.schema.field_errors import child, key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.objects.schema.structural import StructuralSchema

_NAME = re.compile(r"[^.\[\]]+", re.DOTALL)
_CLOSING_QUOTE = re.compile(r"(?<!\\)'")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class FoundField(Value):
    """A path that leads somewhere: its normal form, its first step and the schema it leads to."""

    path: str
    first: str
    schema: StructuralSchema | None


class BadPath(Value):
    """A path that leads nowhere."""

    problem: str


def find_field(path: str, schema: StructuralSchema, *, allow_brackets: bool = True) -> FoundField | BadPath:
    """Follow a path through a schema."""
    tokens = _tokenize(path)
    normal, first = "", ""
    node: StructuralSchema | None = schema
    for opening in tokens:
        if opening not in {".", "["}:
            return BadPath(problem=f"expected [ or . but got: {opening}")
        if opening == "[" and not allow_brackets:
            return BadPath(problem="array notation is not allowed")
        step = _parse_step(opening, tokens)
        if isinstance(step, BadPath):
            return step
        if node is None or not (node.properties or node.has_additional_properties):
            return BadPath(problem="does not refer to a valid field")
        if node.properties and step not in node.properties:
            return BadPath(problem="does not refer to a valid field")
        normal = child(normal, step) if node.properties else key(normal, step)
        first = first or step
        node = node.properties[step] if node.properties else node.additional_properties
    return FoundField(path=normal, first=first, schema=node)


def _tokenize(path: str) -> Iterator[str]:
    """Split a path into dots, brackets, quoted keys with their quotes, and names."""
    position = 0
    while position < len(path):
        if path[position] == "'":
            closing = _CLOSING_QUOTE.search(path, position + 1)
            end = closing.end() if closing else len(path)
        else:
            name = _NAME.match(path, position)
            end = name.end() if name else position + 1
        yield path[position:end]
        position = end


def _parse_step(opening: str, tokens: Iterator[str]) -> str | BadPath:
    step = next(tokens, None)
    if step is None:
        return BadPath(problem="unexpected end of JSON path")
    if opening == ".":
        return step
    if len(step) < 2 or not (step.startswith("'") and step.endswith("'")):
        return BadPath(problem=f"expected single quoted string but got {step}")
    unknown = [escape for escape in re.findall(r"\\.", step[1:-1], re.DOTALL) if escape[1] not in _ESCAPES]
    if unknown:
        return BadPath(problem=f"invalid string literal: invalid escape char {unknown[-1]}")
    closing = next(tokens, None)
    if closing != "]":
        problem = "unexpected end of JSON path" if closing is None else f"expected ] but got {closing}"
        return BadPath(problem=problem)
    return re.sub(r"\\(.)", lambda found: _ESCAPES[found[1]], step[1:-1], flags=re.DOTALL)
