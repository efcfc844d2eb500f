"""Every field of every body that the fleet manager reads, with the extreme values that are put into it.

The API declares its bodies once, so their schemas are the table: a field that is added to a body is fuzzed from then
on. Bodies are those of users, administrators and agents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.field_fuzz.field_table import INTEGERS, NUMBERS, TEXTS, WRONG_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.fleet.api.operations import Operation
    from tests.field_fuzz.field_table import Path_

Json = dict[str, Any]

KAFKA: Final = "<kafka>"
"""Stands for the id of a Kafka, in paths of fields and of requests."""

_BEYOND: Final = (2**63, -(2**63) - 1, 2**64, 10**30, -(10**40), 2**31 - 1, 10**9)
_LISTS: Final[tuple[Any, ...]] = ([None], [[]], ["x"] * 5000, [{}] * 2000)
_KEYS: Final = {"capacity": ("standard", "developer", "\u202e", "x" * 300), "max_nodes": ("standard", "")}
_SHAPES: Final = {"object", "array"}


class BodyField(NamedTuple):
    """One field of the body of one operation, such as `PATCH /kafkas/{id}`."""

    operation: str
    path: Path_
    values: tuple[Any, ...]


def list_body_fields(operations: Sequence[Operation]) -> tuple[BodyField, ...]:
    """The whole table, in a stable order."""
    return tuple(
        BodyField(name_operation(operation), path, values)
        for operation in operations
        if operation.body is not None
        for path, values in _walk(operation.body.model_json_schema(by_alias=True))
    )


def name_operation(operation: Operation) -> str:
    """Users and administrators have operations of the same id."""
    return f"{operation.method} {operation.path}"


def _walk(schema: Json) -> Iterator[tuple[Path_, tuple[Any, ...]]]:
    definitions = schema.get("$defs", {})

    def walk(part: Json, path: Path_) -> Iterator[tuple[Path_, tuple[Any, ...]]]:
        if "$ref" in part:
            yield from walk(definitions[part["$ref"].rpartition("/")[2]], path)
            return
        for choice in part.get("anyOf", ()):
            yield from walk(choice, path)
        if path and "anyOf" not in part:
            yield path, _list_values(part)
        for name, member in part.get("properties", {}).items():
            yield from walk(member, (*path, name))
        if isinstance(part.get("items"), dict):
            yield from walk(part["items"], (*path, 0))
        if isinstance(part.get("additionalProperties"), dict):
            for key in _KEYS.get(str(path[-1]) if path else "", (KAFKA,)):
                yield from walk(part["additionalProperties"], (*path, key))

    yield from walk(schema, ())


def _list_values(part: Json) -> tuple[Any, ...]:
    match part.get("type"):
        case "integer" | "number":
            return (*NUMBERS, *_BEYOND, *WRONG_TYPES)
        case "string":
            return (*TEXTS, *part.get("enum", ()), *INTEGERS, *WRONG_TYPES)
        case "boolean":
            return (True, False, "true", 1, 1.0, *WRONG_TYPES)
        case kind if kind in _SHAPES:
            return (*WRONG_TYPES, *_LISTS, {"": ""}, {"x" * 400: {}}, {str(number): {} for number in range(2000)})
        case _:
            return (*WRONG_TYPES, *TEXTS)
