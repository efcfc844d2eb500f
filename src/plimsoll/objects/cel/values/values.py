"""Values that JSON does not have (timestamps, durations, types), and the CEL types of values.

All other values are those of JSON (None, bool, int, float, str, list, dict), `UInt`, `CelOptional`, the views of
`plimsoll.objects.cel.values.views`, and the values of the function libraries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeGuard

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.values.numbers import INT_MAX, INT_MIN, UInt
from plimsoll.objects.cel.values.optionals import CelOptional

NANOS = 1_000_000_000
# 0001-01-01T00:00:00Z and the last nanosecond of year 9999, in seconds since 1970.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time, in nanoseconds since 1970 UTC."""

    nanos: int

    def __post_init__(self) -> None:
        if not _FIRST_SECOND <= self.nanos // NANOS <= _LAST_SECOND:
            raise CelEvaluationError("timestamp overflow")


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in nanoseconds."""

    nanos: int

    def __post_init__(self) -> None:
        if not INT_MIN <= self.nanos <= INT_MAX:
            raise CelEvaluationError("duration overflow")


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: the result of `type(x)`, or `int` used as a value."""

    name: str


class Opaque:
    """Base of the values of function libraries (quantities, addresses, …); `get_type_name` is their CEL type."""

    __slots__ = ()
    type_name = ""


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    return type(value) is list or (isinstance(value, Sequence) and not isinstance(value, str | bytes))


def is_map(value: object) -> TypeGuard[Mapping[object, object]]:
    return type(value) is dict or isinstance(value, Mapping)


def is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool | UInt)


_BY_CLASS: dict[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    dict: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    CelOptional: "optional_type",
}


def get_type_name(value: object) -> str:
    """The name of a value's type, as `type(x)` returns it."""
    known = _BY_CLASS.get(type(value))
    if known is not None:
        return known
    if isinstance(value, Opaque):
        return value.type_name
    return "list" if is_list(value) else "map"


def raise_no_such_overload(function: str = "") -> NoReturn:
    raise CelEvaluationError(f"no such overload: {function}" if function else "no such overload")
