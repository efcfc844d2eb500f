"""When two values are equal: numbers across types, lists as the schema wants them, objects field by field.

Without recursion for plain data, because a preserved unknown field may be nested as deeply as JSON allows. Every
comparison counts the values it looked at, and the caller charges them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.values.numbers import UInt, is_number
from plimsoll.objects.cel.values.optionals import CelOptional
from plimsoll.objects.cel.values.values import is_list, is_map
from plimsoll.objects.cel.values.views import ListView

_DEEPEST_SET_ELEMENT = 64


# Classes without parts, whose values need no look into: asking a class is much cheaper than asking an abstract one.
_SCALARS = frozenset({str, int, float, bool, bytes, UInt, type(None)})


def equal(left: object, right: object) -> tuple[bool, int]:
    """Whether they are equal, and how many values had to be looked at (text counts a tenth a character)."""
    pending: list[tuple[object, object]] = [(left, right)]
    looked_at = 0
    while pending:
        one, other = pending.pop()
        looked_at += 1
        pairs: list[tuple[object, object]] | None
        if type(one) in _SCALARS and type(other) in _SCALARS:
            if not _scalars_equal(one, other):
                return False, looked_at
            looked_at += len(one) // 10 if isinstance(one, str | bytes) else 0
            continue
        if is_list(one) and is_list(other):
            looked_at += len(one)
            pairs = _list_pairs(one, other)
        elif is_map(one) and is_map(other):
            pairs = _map_pairs(one, other)
        elif isinstance(one, CelOptional) and isinstance(other, CelOptional):
            pairs = _optional_pairs(one, other)
        else:
            pairs = [] if _scalars_equal(one, other) else None
        if pairs is None:
            return False, looked_at
        pending.extend(pairs)
    return True, looked_at


def contains(items: Sequence[object], wanted: object) -> tuple[bool, int]:
    """Whether the list has such an element, and the cost of finding out."""
    total = 0
    plain = type(wanted) in _SCALARS
    for item in items:
        if plain and type(item) in _SCALARS:
            total += 1
            if _scalars_equal(item, wanted):
                return True, total
            continue
        found, looked_at = equal(item, wanted)
        total += looked_at
        if found:
            return True, total
    return False, total


def union(left: ListView, right: Sequence[object]) -> ListView:
    """`+` of a list of type set or map: elements stay where they are, equal keys are overwritten, new ones follow."""
    merged: dict[Hashable, object] = {}
    for element in [*left, *right]:
        merged[frozen(element) if left.kind == "set" else frozen(left.key_of(element))] = element
    return left.joined(list(merged.values()))


def frozen(value: object, depth: int = 0) -> Hashable:
    """A hashable stand-in: equal values have equal ones. For elements and keys of lists of type set and map."""
    if depth > _DEEPEST_SET_ELEMENT:
        raise CelEvaluationError("value is nested too deeply to be compared as an element of a set")
    if type(value) is str:
        return value
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, Mapping):
        return frozenset((key, frozen(item, depth + 1)) for key, item in value.items())
    if is_list(value):
        return tuple(frozen(item, depth + 1) for item in value)
    assert isinstance(value, Hashable)
    return value


def _scalars_equal(one: object, other: object) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if is_number(one) != is_number(other):
        return False
    return one == other


def _list_pairs(one: Sequence[object], other: Sequence[object]) -> list[tuple[object, object]] | None:
    if len(one) != len(other):
        return None
    kind = one.kind if isinstance(one, ListView) else "atomic"
    if kind == "set":
        return [] if {frozen(item) for item in one} == {frozen(item) for item in other} else None
    if kind == "map" and isinstance(one, ListView):
        mine = {frozen(one.key_of(item)): item for item in one}
        theirs = {frozen(one.key_of(item)): item for item in other}
        return [(item, theirs[key]) for key, item in mine.items()] if mine.keys() == theirs.keys() else None
    return list(zip(one, other, strict=True))


def _map_pairs(one: Mapping[object, object], other: Mapping[object, object]) -> list[tuple[object, object]] | None:
    if len(one) != len(other) or any(key not in other for key in one):
        return None
    return [(one[key], other[key]) for key in one]


def _optional_pairs(one: CelOptional, other: CelOptional) -> list[tuple[object, object]] | None:
    if one.has_value != other.has_value:
        return None
    return [(one.value, other.value)] if one.has_value else []
