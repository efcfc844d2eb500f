"""Equality of values: numbers across types, lists by the list type of the schema, objects field by field.

It does not recurse into plain data, because a preserved unknown field may be nested as deeply as JSON allows. Every
comparison counts the compared values, and the caller charges them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.values.numbers import UInt, is_number
from plimsoll.objects.cel.values.optionals import CelOptional
from plimsoll.objects.cel.values.values import is_list, is_map
from plimsoll.objects.cel.values.views import ListView

_DEEPEST_SET_ELEMENT = 64


# Classes without elements. Comparing the class is much cheaper than a check against an abstract class.
_SCALARS = frozenset({str, int, float, bool, bytes, UInt, type(None)})


def compare_values(left: object, right: object) -> tuple[bool, int]:
    """Whether they are equal, and the number of compared values (strings count a tenth per character)."""
    pending: list[tuple[object, object]] = [(left, right)]
    compared = 0
    while pending:
        first, second = pending.pop()
        compared += 1
        pairs: list[tuple[object, object]] | None
        if type(first) in _SCALARS and type(second) in _SCALARS:
            if not _are_scalars_equal(first, second):
                return False, compared
            compared += len(first) // 10 if isinstance(first, str | bytes) else 0
            continue
        if is_list(first) and is_list(second):
            compared += len(first)
            pairs = _list_pairs(first, second)
        elif is_map(first) and is_map(second):
            pairs = _map_pairs(first, second)
        elif isinstance(first, CelOptional) and isinstance(second, CelOptional):
            pairs = _pair_optionals(first, second)
        else:
            pairs = [] if _are_scalars_equal(first, second) else None
        if pairs is None:
            return False, compared
        pending.extend(pairs)
    return True, compared


def contains(items: Sequence[object], wanted: object) -> tuple[bool, int]:
    """Whether the list has such an element, and the cost of the search."""
    total = 0
    plain = type(wanted) in _SCALARS
    for item in items:
        if plain and type(item) in _SCALARS:
            total += 1
            if _are_scalars_equal(item, wanted):
                return True, total
            continue
        found, compared = compare_values(item, wanted)
        total += compared
        if found:
            return True, total
    return False, total


def merge_lists(left: ListView, right: Sequence[object]) -> ListView:
    """`+` of a list of type set or map: elements stay where they are, equal keys are overwritten, new ones follow."""
    merged: dict[Hashable, object] = {}
    for element in [*left, *right]:
        merged[freeze(element) if left.kind == "set" else freeze(left.get_key(element))] = element
    return left.join(list(merged.values()))


def freeze(value: object, depth: int = 0) -> Hashable:
    """A hashable stand-in: equal values have equal ones. For elements and keys of lists of type set and map."""
    if depth > _DEEPEST_SET_ELEMENT:
        raise CelEvaluationError("value is nested too deeply to be compared as an element of a set")
    if type(value) is str:
        return value
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, Mapping):
        return frozenset((key, freeze(item, depth + 1)) for key, item in value.items())
    if is_list(value):
        return tuple(freeze(item, depth + 1) for item in value)
    assert isinstance(value, Hashable)
    return value


def _are_scalars_equal(left: object, right: object) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if is_number(left) != is_number(right):
        return False
    return left == right


def _list_pairs(left: Sequence[object], right: Sequence[object]) -> list[tuple[object, object]] | None:
    if len(left) != len(right):
        return None
    kind = left.kind if isinstance(left, ListView) else "atomic"
    if kind == "set":
        return [] if {freeze(item) for item in left} == {freeze(item) for item in right} else None
    if kind == "map" and isinstance(left, ListView):
        left_items = {freeze(left.get_key(item)): item for item in left}
        right_items = {freeze(left.get_key(item)): item for item in right}
        return (
            [(item, right_items[key]) for key, item in left_items.items()]
            if left_items.keys() == right_items.keys()
            else None
        )
    return list(zip(left, right, strict=True))


def _map_pairs(left: Mapping[object, object], right: Mapping[object, object]) -> list[tuple[object, object]] | None:
    if len(left) != len(right) or any(key not in right for key in left):
        return None
    return [(left[key], right[key]) for key in left]


def _pair_optionals(left: CelOptional, right: CelOptional) -> list[tuple[object, object]] | None:
    if left.has_value != right.has_value:
        return None
    return [(left.value, right.value)] if left.has_value else []
