"""Functions on lists (Kubernetes' own) and sets (cel-go's extension), and those of optional values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.library.operators import add, at_most, greater, less
from plimsoll.objects.cel.types.signatures import Library
from plimsoll.objects.cel.values import equality
from plimsoll.objects.cel.values.numbers import UInt
from plimsoll.objects.cel.values.optionals import CelOptional
from plimsoll.objects.cel.values.values import Duration

LIBRARY = Library()

_COMPARABLE = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_SUMMABLE: dict[str, object] = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}


@LIBRARY.function(*(f"<list({kind})>.isSorted() -> bool" for kind in _COMPARABLE))
def is_sorted(items: Sequence[object]) -> bool:
    return all(at_most(items[place - 1], items[place]) for place in range(1, len(items)))


@LIBRARY.function(*(f"<list({kind})>.min() -> {kind}" for kind in _COMPARABLE))
def smallest(items: Sequence[object]) -> object:
    if not items:
        raise CelEvaluationError("min called on empty list")
    best = items[0]
    for item in items:
        best = item if less(item, best) else best
    return best


@LIBRARY.function(*(f"<list({kind})>.max() -> {kind}" for kind in _COMPARABLE))
def largest(items: Sequence[object]) -> object:
    if not items:
        raise CelEvaluationError("max called on empty list")
    best = items[0]
    for item in items:
        best = item if greater(item, best) else best
    return best


def _declare_sum(kind: str, zero: object) -> None:
    @LIBRARY.function(f"<list({kind})>.sum() -> {kind}")
    def total(items: Sequence[object]) -> object:
        # The element type of a dyn list is known from its elements only, so this zero is for empty lists.
        result = items[0] if items else zero
        for item in items[1:]:
            result = add(result, item)
        return result


for _kind, _zero in _SUMMABLE.items():
    _declare_sum(_kind, _zero)


@LIBRARY.function("<list(A)>.indexOf(A) -> int")
def index_of(items: Sequence[object], wanted: object) -> int:
    return next((place for place, item in enumerate(items) if equality.compare_values(item, wanted)[0]), -1)


@LIBRARY.function("<list(A)>.lastIndexOf(A) -> int")
def last_index_of(items: Sequence[object], wanted: object) -> int:
    return next(
        (place for place in reversed(range(len(items))) if equality.compare_values(items[place], wanted)[0]), -1
    )


@LIBRARY.function("sets.contains(list(A), list(A)) -> bool")
def set_contains(items: Sequence[object], wanted: Sequence[object]) -> bool:
    return all(equality.contains(items, item)[0] for item in wanted)


@LIBRARY.function("sets.equivalent(list(A), list(A)) -> bool")
def set_equivalent(left: Sequence[object], right: Sequence[object]) -> bool:
    return set_contains(left, right) and set_contains(right, left)


@LIBRARY.function("sets.intersects(list(A), list(A)) -> bool")
def set_intersects(left: Sequence[object], right: Sequence[object]) -> bool:
    return any(equality.contains(right, item)[0] for item in left)


@LIBRARY.function("optional.of(A) -> optional(A)")
def optional_of(value: object) -> CelOptional:
    return CelOptional.of(value)


@LIBRARY.function("optional.none() -> optional(A)")
def optional_none() -> CelOptional:
    return CelOptional.none()


@LIBRARY.function("optional.ofNonZeroValue(A) -> optional(A)")
def optional_of_non_zero(value: Any) -> CelOptional:
    return CelOptional.none() if is_zero(value) else CelOptional.of(value)


def is_zero(value: object) -> bool:
    if isinstance(value, CelOptional):
        return not value.has_value
    if isinstance(value, Duration):
        return value.nanos == 0
    if value is None or isinstance(value, bool | int | float):
        return not value
    return isinstance(value, str | bytes | Mapping | Sequence) and len(value) == 0


@LIBRARY.function("<optional(A)>.hasValue() -> bool")
def has_value(value: CelOptional) -> bool:
    return value.has_value


@LIBRARY.function("<optional(A)>.value() -> A")
def value_of(value: CelOptional) -> object:
    if not value.has_value:
        raise CelEvaluationError("optional.none() dereference")
    return value.value


@LIBRARY.function("<optional(A)>.or(optional(A)) -> optional(A)")
def or_optional(value: CelOptional, otherwise: CelOptional) -> CelOptional:
    return value if value.has_value else otherwise


@LIBRARY.function("<optional(A)>.orValue(A) -> A")
def or_value(value: CelOptional, otherwise: object) -> object:
    return value.value if value.has_value else otherwise
