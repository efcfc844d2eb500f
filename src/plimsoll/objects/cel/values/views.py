"""JSON converted by its declared type on demand: timestamps parsed, integers to doubles, field names unescaped.

A rule on a 3 MiB object usually reads three fields, so nothing is converted before it is read. Adapters (`Adapt`) are
built once per program, lazily along the paths that the rule reads. Values whose type needs no conversion are returned
unchanged: a list of strings stays the list from JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.names import unescape_field
from plimsoll.objects.cel.types.types import (
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    TIMESTAMP,
    UINT,
    CelType,
    ListKind,
    ListType,
    MapType,
    ObjectType,
    OptionalType,
)
from plimsoll.objects.cel.values.numbers import UInt
from plimsoll.objects.cel.values.optionals import CelOptional
from plimsoll.objects.cel.values.times import parse_date_or_timestamp, parse_duration

Adapt = Callable[[object], object]


def find_adapter(declared: CelType) -> Adapt | None:
    """The function that converts a JSON value to a CEL value of this type; None if no conversion is needed."""
    if isinstance(declared, OptionalType):
        return _build_optional_adapter(find_adapter(declared.of))
    if isinstance(declared, ListType):
        element = find_adapter(declared.element)
        plain = element is None and declared.kind == "atomic"
        return _expect_list if plain else _ListAdapter(declared, element)
    if isinstance(declared, MapType):
        value = find_adapter(declared.value)
        return _expect_map if value is None else _MapAdapter(value)
    if isinstance(declared, ObjectType):
        return ObjectAdapter(declared)
    return _SCALARS.get(declared)


def _build_optional_adapter(of: Adapt | None) -> Adapt | None:
    if of is None:
        return None

    def adapt(raw: object) -> object:
        if isinstance(raw, CelOptional) and raw.has_value:
            return CelOptional.of(of(raw.value))
        return raw

    return adapt


def _expect_list(raw: object) -> object:
    if raw is not None and not isinstance(raw, list):
        raise CelEvaluationError("invalid data, expected an array for the provided schema with type=array")
    return raw


def _expect_map(raw: object) -> object:
    if raw is not None and not isinstance(raw, dict):
        raise CelEvaluationError("invalid data, expected a map for the provided schema with type=object")
    return raw


def _to_int(raw: object) -> object:
    return int(raw) if isinstance(raw, float) and raw.is_integer() else raw


def _to_uint(raw: object) -> object:
    return UInt(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw


def _to_double(raw: object) -> object:
    if not isinstance(raw, int) or isinstance(raw, bool):
        return raw
    try:
        return float(raw)
    except OverflowError:
        raise CelEvaluationError("invalid data, expected a number that a double can hold") from None


def _to_bytes(raw: object) -> object:
    if not isinstance(raw, str):
        return raw
    try:
        return base64.b64decode(raw, validate=True)
    except ValueError as error:  # binascii.Error, and plainly this for text that is not ASCII
        raise CelEvaluationError(f"failed to convert byte formatted string to bytes: {error}") from None


def _to_timestamp(raw: object) -> object:
    return parse_date_or_timestamp(raw) if isinstance(raw, str) else raw


def _to_duration(raw: object) -> object:
    return parse_duration(raw) if isinstance(raw, str) else raw


_SCALARS: dict[CelType, Adapt] = {
    INT: _to_int,
    UINT: _to_uint,
    DOUBLE: _to_double,
    BYTES: _to_bytes,
    TIMESTAMP: _to_timestamp,
    DURATION: _to_duration,
}


class ListView(Sequence[object]):
    """A list whose elements are adapted when they are read. Its list type decides how it is compared and joined."""

    __slots__ = ("_element", "_raw", "kind", "map_keys")

    def __init__(
        self, raw: Sequence[object], *, element: Adapt | None, kind: ListKind, map_keys: tuple[str, ...]
    ) -> None:
        self._raw = raw
        self._element = element
        self.kind = kind
        self.map_keys = map_keys

    def __len__(self) -> int:
        return len(self._raw)

    @overload
    def __getitem__(self, index: int) -> object: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[object]: ...
    def __getitem__(self, index: int | slice) -> object:
        if isinstance(index, slice):
            return list(self)[index]
        return self._raw[index] if self._element is None else self._element(self._raw[index])

    def __iter__(self) -> Iterator[object]:
        return iter(self._raw) if self._element is None else map(self._element, self._raw)

    def join(self, values: Sequence[object]) -> ListView:
        """A list of the same kind with these (adapted) values."""
        return ListView(values, element=None, kind=self.kind, map_keys=self.map_keys)

    def get_key(self, element: object) -> tuple[object, ...]:
        """The keys that identify an element of a list of type map; a key may be absent."""
        if not isinstance(element, Mapping):
            return ()
        return tuple(element.get(key) for key in self.map_keys)


class _ListAdapter:
    __slots__ = ("_declared", "_element")

    def __init__(self, declared: ListType, element: Adapt | None) -> None:
        self._declared = declared
        self._element = element

    def __call__(self, raw: object) -> object:
        if raw is None:
            return None
        if not isinstance(raw, list):
            return _expect_list(raw)
        return ListView(raw, element=self._element, kind=self._declared.kind, map_keys=self._declared.map_keys)


class MapView(Mapping[object, object]):
    """A map whose values are adapted when they are read."""

    __slots__ = ("_raw", "_value")

    def __init__(self, raw: dict[object, object], value: Adapt) -> None:
        self._raw = raw
        self._value = value

    def __len__(self) -> int:
        return len(self._raw)

    def __iter__(self) -> Iterator[object]:
        return iter(self._raw)

    def __contains__(self, key: object) -> bool:
        return key in self._raw

    def __getitem__(self, key: object) -> object:
        return self._value(self._raw[key])


class _MapAdapter:
    __slots__ = ("_value",)

    def __init__(self, value: Adapt) -> None:
        self._value = value

    def __call__(self, raw: object) -> object:
        return MapView(raw, self._value) if isinstance(raw, dict) else _expect_map(raw)


class ObjectAdapter:
    """Builds the adapters of an object's fields when a rule first touches them."""

    __slots__ = ("_declared", "_fields")

    def __init__(self, declared: ObjectType) -> None:
        self._declared = declared
        self._fields: dict[str, Adapt | None] = {}

    def __call__(self, raw: object) -> object:
        return ObjectView(raw, self) if isinstance(raw, dict) else _expect_map(raw)

    def get_field(self, name: str, raw: object) -> object:
        """The value of the property `name` (as in JSON)."""
        try:
            adapt = self._fields[name]
        except KeyError:
            declared = self._declared.fields.get(name)
            adapt = self._fields[name] = find_adapter(declared) if declared is not None else None
        return raw if adapt is None else adapt(raw)


class ObjectView(Mapping[object, object]):
    """An object with declared fields. As a mapping it has JSON names; `select` takes escaped names.

    A null field counts as absent, as in Kubernetes; an element of a list or a value of a map may be null.
    """

    __slots__ = ("_adapter", "_raw")

    def __init__(self, raw: dict[str, object], adapter_of_fields: ObjectAdapter) -> None:
        self._raw = raw
        self._adapter = adapter_of_fields

    def __len__(self) -> int:
        return len(self._raw)

    def __iter__(self) -> Iterator[object]:
        return iter(self._raw)

    def __contains__(self, name: object) -> bool:
        return name in self._raw

    def __getitem__(self, name: object) -> object:
        if not isinstance(name, str):
            raise KeyError(name)
        return self._adapter.get_field(name, self._raw[name])

    def select(self, escaped: str) -> object:
        """The field an expression calls `escaped`; KeyError if the object does not have it."""
        name = unescape_field(escaped)
        if name is None or self._raw.get(name) is None:
            raise KeyError(escaped)
        return self[name]

    def has(self, escaped: str) -> bool:
        name = unescape_field(escaped)
        return name is not None and self._raw.get(name) is not None
