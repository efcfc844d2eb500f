"""Readers of the values of each recorded schema, compiled once per component and run for every object.

A compiled reader has its Go type and its fields, so that decoding a valid object resolves no `$ref` and builds no
path; a path is built only for a problem. Readers apply schemas, not validation rules.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any, Final, Protocol, TypeAlias

from plimsoll.objects.builtin.decoding import go_types, openapi
from plimsoll.objects.builtin.decoding.go_scalars import (
    SPECIAL_READERS,
    SPECIAL_ZEROS,
    NotConverted,
    find_base64_problem,
)

Schema = openapi.Schema
Json = dict[str, Any]

Place: TypeAlias = "tuple[Place | None, str, str | int]"
"""A step, linked to the one before it: in a struct of that name to a field, or (no struct) to an element."""

_RANGES: Final = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}
_ZEROS: Final = {"string": "", "integer": 0, "number": 0, "boolean": False}


class Notes(Protocol):
    """The receiver of decoding errors."""

    def add_type_error(self, value: Any, place: Place | None, go_type: str) -> None: ...

    def add_problem(self, place: Place | None, text: str, *, ends_decoding: bool = False) -> None: ...

    def add_unknown_field(self, place: Place) -> None: ...


class Reader:
    """Reads values of one schema. The base class returns them unchanged: RawExtension, FieldsV1.

    `passes` is a type whose values need no check, which saves a call for most fields of an object.
    """

    passes: type | None = None

    def read(self, value: Any, place: Place | None, notes: Notes) -> Any:
        """The value as Go holds it; a zero value where it could not be decoded."""
        del place, notes
        return value


class _ScalarReader(Reader):
    def __init__(self, schema: Schema, go_type: str) -> None:
        self._kind = schema["type"]
        self._is_base64 = schema.get("format") == "byte"
        self._span = _RANGES.get(schema.get("format", "int32"), _RANGES["int64"])
        self._go_type = go_type
        if self._kind == "boolean":
            self.passes = bool
        elif self._kind == "string" and not self._is_base64:
            self.passes = str

    def read(self, value: Any, place: Place | None, notes: Notes) -> Any:
        if not self._fits(value):
            notes.add_type_error(value, place, self._go_type)
            return _ZEROS[self._kind]
        if self._is_base64:
            problem = find_base64_problem(value)
            if problem:
                notes.add_problem(place, problem)
                return ""
        return value

    def _fits(self, value: Any) -> bool:
        if self._kind == "string":
            return isinstance(value, str)
        if isinstance(value, bool):
            return bool(self._kind == "boolean")
        if self._kind == "integer":
            return isinstance(value, int) and value in self._span
        return self._kind == "number" and isinstance(value, (int, float))


class _SpecialReader(Reader):
    """Types that read themselves: quantities, times."""

    def __init__(self, name: str) -> None:
        self._read = SPECIAL_READERS[name]
        self._zero = SPECIAL_ZEROS[name]

    def read(self, value: Any, place: Place | None, notes: Notes) -> Any:
        outcome = self._read(value)
        if isinstance(outcome, NotConverted):
            notes.add_problem(place, outcome.text, ends_decoding=True)
            return self._zero
        return outcome


class _ListReader(Reader):
    def __init__(self, schema: Schema, owner: str) -> None:
        self._items: Schema = schema.get("items", {})
        self._item = _build_reader(self._items, owner, go_types.get_item_type(schema, owner))
        self._go_type = go_types.get_field_type(schema, owner)

    def read(self, value: Any, place: Place | None, notes: Notes) -> Any:
        if not isinstance(value, list):
            notes.add_type_error(value, place, self._go_type)
            return []
        read = self._item.read
        return [
            build_zero_value(self._items) if item is None else read(item, (place, "", position), notes)
            for position, item in enumerate(value)
        ]


class _MapReader(Reader):
    def __init__(self, schema: Schema, owner: str) -> None:
        self._values: Schema = schema["additionalProperties"]
        self._value = _build_reader(self._values, owner, go_types.get_item_type(schema, owner))
        self._go_type = go_types.get_field_type(schema, owner)

    def read(self, value: Any, place: Place | None, notes: Notes) -> Any:
        if not isinstance(value, dict):
            notes.add_type_error(value, place, self._go_type)
            return {}
        read, passes = self._value.read, self._value.passes
        return {
            key: item
            if type(item) is passes
            else build_zero_value(self._values)
            if item is None
            else read(item, (place, "", key), notes)
            for key, item in value.items()
        }


class _StructReader(Reader):
    def __init__(self, component: str) -> None:
        self._component = component
        self._name = go_types.get_struct_name(component)
        self._go_type = go_types.qualify(component)

    @cached_property
    def _fields(self) -> dict[str, Reader]:
        # Compiled with the first value, because JSONSchemaProps refers to itself.
        properties: dict[str, Schema] = openapi.load_component(self._component).get("properties", {})
        return {name: _build_reader(schema, f"{self._name}.{name}") for name, schema in properties.items()}

    def read(self, value: Any, place: Place | None, notes: Notes) -> Any:
        if not isinstance(value, dict):
            notes.add_type_error(value, place, self._go_type)
            return {}
        fields, struct = self._fields, self._name
        decoded: Json = {}
        for key, item in value.items():
            reader = fields.get(key)
            if reader is None:
                notes.add_unknown_field((place, struct, key))
            elif type(item) is reader.passes:
                decoded[key] = item
            elif item is not None:
                decoded[key] = reader.read(item, (place, struct, key), notes)
        return decoded


@cache
def build_struct_reader(component: str) -> Reader:
    """The reader of a component as a struct, even if it has no fields."""
    return _StructReader(component)


@cache
def _build_reference_reader(component: str) -> Reader:
    name = go_types.get_struct_name(component)
    if name in SPECIAL_READERS:
        return _SpecialReader(name)
    return build_struct_reader(component) if "properties" in openapi.load_component(component) else Reader()


def _build_reader(schema: Schema, owner: str, go_type: str = "") -> Reader:
    """`owner` is the field ("PodSpec.volumes") that contains the value; only elements have a `go_type`."""
    component = openapi.find_reference(schema)
    if component is not None:
        return _build_reference_reader(component)
    kind = schema.get("type")
    if kind == "array":
        return _ListReader(schema, owner)
    if kind == "object" and "additionalProperties" in schema:
        return _MapReader(schema, owner)
    if kind in _ZEROS:
        return _ScalarReader(schema, go_type or go_types.get_field_type(schema, owner))
    return Reader()


def build_zero_value(schema: Schema) -> Any:
    """Go's zero value of a type, which is what a null element of a list or map becomes."""
    name = openapi.find_reference(schema)
    if name is not None:
        return SPECIAL_ZEROS.get(go_types.get_struct_name(name), {})
    kind = schema.get("type", "")
    if kind == "array":
        return []
    return {} if kind == "object" else _ZEROS.get(kind)


def format_path(place: Place | None) -> str:
    """The path as a user writes it: `spec.containers[0].name`."""
    steps: list[str] = []
    while place is not None:
        place, struct, step = place
        steps.append(f".{step}" if struct else f"[{step}]")
    return "".join(reversed(steps)).removeprefix(".")


def format_go_path(place: Place | None) -> str:
    """The path as Go reports it: the struct that holds the field, and the fields above it. Elements do not count."""
    holder, names = "", []
    while place is not None:
        place, struct, step = place
        if struct:
            holder = holder or struct
            names.append(str(step))
    return f"{holder}.{'.'.join(reversed(names))}" if holder else ""
