"""What Go's JSON decoder says about an object of a built-in kind, and the object as Go would hold it afterwards.

`checking` calls it before any validation: an API server answers 400 with the first of these sentences and validates
nothing. People want all of them, each with the path of its field, so all are returned, in document order. The decoded
value has no nulls, no unknown fields, and canonical quantities; validation and defaulting may trust its types.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.quantity import Quantity
from plimsoll.core.values import Value
from plimsoll.objects.builtin import go_times, go_types, openapi

if TYPE_CHECKING:
    from plimsoll.objects.builtin.openapi import Schema

# Go's strict decoder stops collecting there; more would only be noise.
MOST_PROBLEMS: Final = 100

_QUANTITY_TEXTS: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    "unable to parse numeric part of quantity",
    "unable to parse quantity's suffix",
)
_RANGES: Final = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}
_BASE64: Final = re.compile(rb"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_NOT_BASE64: Final = re.compile(rb"[^A-Za-z0-9+/\r\n]")


class DecodeProblem(Value):
    """A field that cannot be decoded: where, and Go's sentence. `ends_decoding`: Go stops there and says only that."""

    path: str
    text: str
    ends_decoding: bool = False


class Decoded(Value):
    """The object as Go holds it, and what was wrong with it."""

    value: dict[str, Any]
    problems: list[DecodeProblem] = []
    unknown_fields: list[str] = []


def decode(value: dict[str, Any], component: str) -> Decoded:
    """Walk `value` (taken over, see `schema.json_values`) beside the schema called `component`."""
    walk = _Walk()
    decoded = walk.struct(component, value, _Place("", "", "", ""))
    return Decoded(value=decoded, problems=walk.problems, unknown_fields=list(walk.unknown))


def go_error(problems: list[DecodeProblem]) -> str | None:
    """The one sentence Go returns: what ended its decoding, else the first thing it noted."""
    for problem in problems:
        if problem.ends_decoding:
            return problem.text
    return problems[0].text if problems else None


class _Place(NamedTuple):
    """Where we are: for people (`path`), and for Go (`struct` that holds the field, dotted `stack`, `owner` field)."""

    path: str
    struct: str
    stack: str
    owner: str

    def field(self, struct: str, name: str) -> _Place:
        return _Place(
            f"{self.path}.{name}" if self.path else name,
            struct,
            f"{self.stack}.{name}" if self.stack else name,
            f"{struct}.{name}",
        )

    def inside(self, suffix: str) -> _Place:
        """An element of a list or map: Go's decoder does not count it as a step."""
        return self._replace(path=self.path + suffix)


class _Walk:
    def __init__(self) -> None:
        self.problems: list[DecodeProblem] = []
        self.unknown: dict[str, None] = {}

    def value(self, schema: Schema, value: Any, place: _Place, go_type: str = "") -> Any:
        """The decoded value; a zero value where it could not be decoded."""
        name = openapi.reference(schema)
        if name is not None:
            return self._referenced(name, value, place)
        expected = schema.get("type")
        if expected == "array":
            return self._list(schema, value, place)
        if expected == "object" and "additionalProperties" in schema:
            return self._map(schema, value, place)
        if expected in _SCALAR_READERS:
            return self._scalar(schema, value, place, go_type=go_type)
        return value

    def struct(self, component: str, value: Any, place: _Place) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._mistyped(value, place, go_types.qualified(component))
            return {}
        properties = openapi.component(component).get("properties", {})
        name = go_types.struct_name(component)
        decoded: dict[str, Any] = {}
        for key, item in value.items():
            schema = properties.get(key)
            if schema is None:
                self._unknown_field(f"{place.path}.{key}" if place.path else key)
            elif item is not None:
                decoded[key] = self.value(schema, item, place.field(name, key))
        return decoded

    def _referenced(self, component: str, value: Any, place: _Place) -> Any:
        reader = _SPECIAL_READERS.get(go_types.struct_name(component))
        if reader is not None:
            outcome = reader(value)
            if isinstance(outcome, _Failed):
                self._note(DecodeProblem(path=place.path, text=outcome.text, ends_decoding=True))
                return _SPECIAL_ZEROS[go_types.struct_name(component)]
            return outcome
        if "properties" not in openapi.component(component):
            return value  # RawExtension, FieldsV1: kept as bytes
        return self.struct(component, value, place)

    def _list(self, schema: Schema, value: Any, place: _Place) -> list[Any]:
        if not isinstance(value, list):
            self._mistyped(value, place, go_types.field_type(schema, place.owner))
            return []
        items = schema.get("items", {})
        go_type = go_types.item_type(schema, place.owner)
        return [
            zero(items) if item is None else self.value(items, item, place.inside(f"[{position}]"), go_type)
            for position, item in enumerate(value)
        ]

    def _map(self, schema: Schema, value: Any, place: _Place) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._mistyped(value, place, go_types.field_type(schema, place.owner))
            return {}
        values = schema["additionalProperties"]
        go_type = go_types.item_type(schema, place.owner)
        return {
            key: zero(values) if item is None else self.value(values, item, place.inside(f"[{key}]"), go_type)
            for key, item in value.items()
        }

    def _scalar(self, schema: Schema, value: Any, place: _Place, *, go_type: str) -> Any:
        if _SCALAR_READERS[schema["type"]](value) and not _is_misfit(schema, value):
            if schema.get("format") == "byte":
                problem = base64_problem(value)
                if problem:
                    self._note(DecodeProblem(path=place.path, text=problem))
                    return ""
            return value
        self._mistyped(value, place, go_type or go_types.field_type(schema, place.owner))
        return zero(schema)

    def _mistyped(self, value: Any, place: _Place, go_type: str) -> None:
        where = f"Go struct field {place.struct}.{place.stack}" if place.struct else "Go value"
        text = f"json: cannot unmarshal {_json_kind(value, go_type)} into {where} of type {go_type}"
        self._note(DecodeProblem(path=place.path, text=text))

    def _note(self, problem: DecodeProblem) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def _unknown_field(self, path: str) -> None:
        if len(self.unknown) < MOST_PROBLEMS:
            self.unknown[path] = None


def zero(schema: Schema) -> Any:
    """Go's zero value of a type, which is what a null element of a list or map becomes."""
    name = openapi.reference(schema)
    if name is not None:
        return _SPECIAL_ZEROS.get(go_types.struct_name(name), {})
    kinds: dict[str | None, Any] = {
        "array": [],
        "object": {},
        "string": "",
        "integer": 0,
        "number": 0,
        "boolean": False,
    }
    return kinds.get(schema.get("type"))


class _Failed(NamedTuple):
    text: str


def _is_misfit(schema: Schema, value: Any) -> bool:
    if schema["type"] != "integer":
        return False
    return value not in _RANGES.get(schema.get("format", "int32"), _RANGES["int64"])


def _json_kind(value: Any, go_type: str) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        if go_type not in ("int32", "int64"):
            return "number"
        return f"number {int(value) if float(value).is_integer() else value}"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _read_quantity(value: Any) -> str | _Failed:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return _Failed(_QUANTITY_TEXTS[0])
    try:
        return str(Quantity.parse(value))
    except InvalidQuantity as refused:
        return _Failed(next((text for text in _QUANTITY_TEXTS if refused.problem.endswith(text)), refused.problem))


def _read_time(value: Any, layout: str = go_times.RFC3339) -> str | _Failed:
    if not isinstance(value, str):
        return _Failed(f"json: cannot unmarshal {_json_kind(value, '')} into Go value of type string")
    problem = go_times.time_problem(value, layout)
    return _Failed(problem) if problem else value


def _read_micro_time(value: Any) -> str | _Failed:
    return _read_time(value, go_times.RFC3339_MICRO)


def _read_int_or_string(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value not in _RANGES["int32"]:
        return _Failed(f"json: cannot unmarshal {_json_kind(value, 'int32')} into Go value of type int32")
    return value


_SPECIAL_READERS: Final = {
    "Quantity": _read_quantity,
    "Time": _read_time,
    "MicroTime": _read_micro_time,
    "IntOrString": _read_int_or_string,
}
_SPECIAL_ZEROS: Final[dict[str, Any]] = {"Quantity": "0", "Time": None, "MicroTime": None, "IntOrString": 0}
_SCALAR_READERS: Final = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
}


def base64_problem(text: str) -> str | None:
    """None, or Go's complaint: standard alphabet, padded, line breaks ignored."""
    data = text.encode("utf-8", "surrogatepass")
    plain = data.replace(b"\r", b"").replace(b"\n", b"")
    if _BASE64.fullmatch(plain):
        return None
    foreign = _NOT_BASE64.search(data)
    if foreign is None:
        return f"illegal base64 data at input byte {len(data) - len(plain) % 4}"
    position = foreign.start()
    in_quantum = len(data[:position].replace(b"\r", b"").replace(b"\n", b"")) % 4
    if data[position : position + 1] == b"=" and in_quantum >= 2:
        return f"illegal base64 data at input byte {_misplaced_padding(data, position, in_quantum)}"
    return f"illegal base64 data at input byte {position}"


def _misplaced_padding(data: bytes, position: int, in_quantum: int) -> int:
    """Padding may only close the text: `xx==` or `xxx=`."""
    following = position + 1
    if in_quantum == 2:
        if following >= len(data):
            return len(data)
        if data[following : following + 1] != b"=":
            return following - 1
        following += 1
    return following
