"""Operators, `size`, and `in`: the part of the standard functions every expression uses.

`&&`, `||`, `?:` and the comprehension's helper are declared here for the checker; the evaluator has its own code for
them, because they do not evaluate all their operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.types.signatures import Library
from plimsoll.objects.cel.values import equality
from plimsoll.objects.cel.values.numbers import UInt, check_int64, compute_modulo, divide, divide_double, is_number
from plimsoll.objects.cel.values.optionals import CelOptional
from plimsoll.objects.cel.values.values import Duration, Timestamp, is_int, is_list, raise_no_such_overload
from plimsoll.objects.cel.values.views import ListView, ObjectView

LIBRARY = Library()

_ORDERED = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_NUMBERS = ("int", "uint", "double")
_ACROSS = [(number, other) for number in _NUMBERS for other in _NUMBERS if number != other]


def _build_same_type_signatures(operator: str, kinds: Sequence[str], result: str = "") -> list[str]:
    return [f"{operator}({kind}, {kind}) -> {result or kind}" for kind in kinds]


def _build_relation_signatures(operator: str) -> list[str]:
    across = [f"{operator}({left}, {other}) -> bool" for left, other in _ACROSS]
    return _build_same_type_signatures(operator, _ORDERED, "bool") + across


def _are_same_integers(left: int, right: int) -> bool:
    """Both int or both uint: arithmetic does not mix them, and Python's bools are none."""
    return type(left) is type(right) and not isinstance(left, bool)


@LIBRARY.function(
    *_build_same_type_signatures("_+_", [*_NUMBERS, "string", "bytes", "list(A)", "duration"]),
    "_+_(timestamp, duration) -> timestamp",
    "_+_(duration, timestamp) -> timestamp",
)
def add(left: object, right: object) -> object:
    if isinstance(left, int) and isinstance(right, int) and _are_same_integers(left, right):
        return check_int64(int(left) + int(right), unsigned=isinstance(left, UInt))
    match left, right:
        case (float(), float()) | (str(), str()) | (bytes(), bytes()):
            return left + right  # type: ignore[operator]  # of one kind, as matched
        case (Duration(), Duration()):
            return Duration(left.nanos + right.nanos)
        case (Timestamp(), Duration()):
            return Timestamp(left.nanos + right.nanos)
        case (Duration(), Timestamp()):
            return Timestamp(left.nanos + right.nanos)
    if is_list(left) and is_list(right):
        if isinstance(left, ListView) and left.kind != "atomic":
            return equality.merge_lists(left, right)
        return [*left, *right]
    return raise_no_such_overload("_+_")


@LIBRARY.function(
    *_build_same_type_signatures("_-_", [*_NUMBERS, "duration"]),
    "_-_(timestamp, duration) -> timestamp",
    "_-_(timestamp, timestamp) -> duration",
)
def subtract(left: object, right: object) -> object:
    if isinstance(left, int) and isinstance(right, int) and _are_same_integers(left, right):
        return check_int64(int(left) - int(right), unsigned=isinstance(left, UInt))
    match left, right:
        case (float(), float()):
            return left - right
        case (Timestamp(), Timestamp()):
            return Duration(left.nanos - right.nanos)
        case (Duration(), Duration()):
            return Duration(left.nanos - right.nanos)
        case (Timestamp(), Duration()):
            return Timestamp(left.nanos - right.nanos)
    return raise_no_such_overload("_-_")


@LIBRARY.function(*_build_same_type_signatures("_*_", _NUMBERS))
def multiply(left: object, right: object) -> object:
    if isinstance(left, int) and isinstance(right, int) and _are_same_integers(left, right):
        return check_int64(int(left) * int(right), unsigned=isinstance(left, UInt))
    if isinstance(left, float) and isinstance(right, float):
        return left * right
    return raise_no_such_overload("_*_")


@LIBRARY.function(*_build_same_type_signatures("_/_", _NUMBERS))
def quotient(left: object, right: object) -> object:
    if isinstance(left, int) and isinstance(right, int) and _are_same_integers(left, right):
        return divide(left, right, unsigned=isinstance(left, UInt))
    if isinstance(left, float) and isinstance(right, float):
        return divide_double(left, right)
    return raise_no_such_overload("_/_")


@LIBRARY.function(*_build_same_type_signatures("_%_", ("int", "uint")))
def remainder(left: object, right: object) -> object:
    if isinstance(left, int) and isinstance(right, int) and _are_same_integers(left, right):
        return compute_modulo(left, right, unsigned=isinstance(left, UInt))
    return raise_no_such_overload("_%_")


@LIBRARY.function("-_(int) -> int", "-_(double) -> double")
def negate(value: object) -> object:
    if isinstance(value, float):
        return -value
    if isinstance(value, int) and is_int(value):
        return check_int64(-value, unsigned=False)
    return raise_no_such_overload("-_")


@LIBRARY.function("!_(bool) -> bool")
def logical_not(value: object) -> bool:
    return not value if isinstance(value, bool) else raise_no_such_overload("!_")


@LIBRARY.function(
    "_&&_(bool, bool) -> bool",
    "_||_(bool, bool) -> bool",
    "_?_:_(bool, A, A) -> A",
    "@not_strictly_false(bool) -> bool",
    "cel.@mapInsert(map(A, B), A, B) -> map(A, B)",
    "cel.@mapInsert(map(A, B), map(A, B)) -> map(A, B)",
)
def refuse_direct_call(*_: object) -> object:
    raise AssertionError("the evaluator handles these itself")


@LIBRARY.function("_==_(A, A) -> bool")
def equals(left: object, right: object) -> bool:
    return equality.compare_values(left, right)[0]


@LIBRARY.function("_!=_(A, A) -> bool")
def differs(left: object, right: object) -> bool:
    return not equality.compare_values(left, right)[0]


@LIBRARY.function(*_build_relation_signatures("_<_"))
def less(left: object, right: object) -> bool:
    _require_comparable(left, right, "_<_")
    return bool(left < right)  # type: ignore[operator]  # comparable


@LIBRARY.function(*_build_relation_signatures("_<=_"))
def at_most(left: object, right: object) -> bool:
    _require_comparable(left, right, "_<=_")
    return bool(left <= right)  # type: ignore[operator]  # comparable


@LIBRARY.function(*_build_relation_signatures("_>_"))
def greater(left: object, right: object) -> bool:
    _require_comparable(left, right, "_>_")
    return bool(left > right)  # type: ignore[operator]  # comparable


@LIBRARY.function(*_build_relation_signatures("_>=_"))
def at_least(left: object, right: object) -> bool:
    _require_comparable(left, right, "_>=_")
    return bool(left >= right)  # type: ignore[operator]  # comparable


def _require_comparable(left: object, right: object, operator: str) -> None:
    if is_number(left) and is_number(right):
        return
    if type(left) is not type(right) or not isinstance(left, bool | str | bytes | Timestamp | Duration):
        raise_no_such_overload(operator)


@LIBRARY.function("@in(A, list(A)) -> bool", "@in(A, map(A, B)) -> bool")
def is_in(wanted: object, container: object) -> bool:
    if isinstance(container, Mapping):
        return is_key(wanted) and wanted in container
    if is_list(container):
        return equality.contains(container, wanted)[0]
    return raise_no_such_overload("@in")


def is_key(value: object) -> bool:
    return isinstance(value, str | int | float)


@LIBRARY.function(
    "_[_](list(A), int) -> A",
    "_[_](map(A, B), A) -> B",
    "_[_](optional(list(A)), int) -> optional(A)",
    "_[_](optional(map(A, B)), A) -> optional(B)",
)
def index(container: object, key: object) -> object:
    if isinstance(container, CelOptional):
        return optional_index(container, key)
    if isinstance(container, Mapping):
        if not is_key(key) or key not in container:
            raise CelEvaluationError(f"no such key: {_format_key(key)}")
        return container[key]
    if is_list(container):
        position = _as_position(key)
        if not 0 <= position < len(container):
            raise CelEvaluationError(f"index out of bounds: {position}")
        return container[position]
    return raise_no_such_overload("_[_]")


@LIBRARY.function(
    "_[?_](list(A), int) -> optional(A)",
    "_[?_](map(A, B), A) -> optional(B)",
    "_[?_](optional(list(A)), int) -> optional(A)",
    "_[?_](optional(map(A, B)), A) -> optional(B)",
)
def optional_index(container: object, key: object) -> CelOptional:
    if isinstance(container, CelOptional):
        return optional_index(container.value, key) if container.has_value else container
    if isinstance(container, Mapping):
        return CelOptional.of(container[key]) if is_key(key) and key in container else CelOptional.none()
    if is_list(container):
        position = _as_position(key)
        return CelOptional.of(container[position]) if 0 <= position < len(container) else CelOptional.none()
    return raise_no_such_overload("_[?_]")


def _as_position(key: object) -> int:
    if isinstance(key, float) and key.is_integer():
        return int(key)
    if not isinstance(key, int) or isinstance(key, bool):
        raise CelEvaluationError("unsupported index type in list")
    return key


def _format_key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(int(key) if isinstance(key, UInt) else key)


def select(operand: object, name: str) -> object:
    """`operand.name`; an optional stays optional."""
    if isinstance(operand, CelOptional):
        return select_optional(operand, name)
    try:
        if isinstance(operand, ObjectView):
            return operand.select(name)
        if isinstance(operand, Mapping):
            return operand[name]
    except KeyError:
        raise CelEvaluationError(f"no such key: {name}") from None
    return raise_no_such_overload()


def has(operand: object, name: str) -> bool:
    if isinstance(operand, CelOptional):
        return operand.has_value and has(operand.value, name)
    if isinstance(operand, ObjectView):
        return operand.has(name)
    return name in operand if isinstance(operand, Mapping) else raise_no_such_overload()


def select_optional(operand: object, name: str) -> CelOptional:
    """`operand.?name`."""
    if isinstance(operand, CelOptional):
        return select_optional(operand.value, name) if operand.has_value else operand
    return CelOptional.of(select(operand, name)) if has(operand, name) else CelOptional.none()


@LIBRARY.function(
    *(f"size({kind}) -> int" for kind in ("string", "bytes", "list(A)", "map(A, B)")),
    *(f"<{kind}>.size() -> int" for kind in ("string", "bytes", "list(A)", "map(A, B)")),
)
def size(value: object) -> int:
    if isinstance(value, str | bytes | Sequence | Mapping):
        return len(value)
    return raise_no_such_overload("size")
