"""Evaluation functions, one per kind of syntax node: they evaluate operands in a frame and charge their cost.

Errors of CEL are exceptions. `&&`, `||` and the comprehensions built from them catch them, because a later operand may
decide the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.eval.frames import Failed
from plimsoll.objects.cel.library.operators import has, is_key, select, select_optional
from plimsoll.objects.cel.values import equality
from plimsoll.objects.cel.values.optionals import CelOptional
from plimsoll.objects.cel.values.values import is_list, raise_no_such_overload

if TYPE_CHECKING:
    from plimsoll.objects.cel.eval.frames import Frame, Run


def iterate_singles(source: object) -> Iterable[tuple[object, object]]:
    if isinstance(source, Mapping) or (is_list(source)):
        return ((item, None) for item in source)
    return raise_no_such_overload()


def iterate_pairs(source: object) -> Iterable[tuple[object, object]]:
    if isinstance(source, Mapping):
        return ((key, source[key]) for key in source)
    if is_list(source):
        return enumerate(source)
    return raise_no_such_overload()


def insert(entries: dict[object, object], key: object, value: object) -> None:
    if not is_key(key):
        raise CelEvaluationError("unsupported key type")
    if key in entries:
        raise CelEvaluationError(f"insert failed: key {key} already exists")
    entries[key] = value


def build_constant(value: object) -> Run:
    return lambda _frame: value


def build_local(slot: int) -> Run:
    def run(frame: Frame) -> object:
        frame.charge(1)
        value = frame.local[slot]
        if type(value) is Failed:
            raise value.error
        return value

    return run


def build_variable(name: str) -> Run:
    def run(frame: Frame) -> object:
        frame.charge(1)
        return frame.get_variable(name)

    return run


def build_selection(operand: Run, name: str, *, test_only: bool) -> Run:
    if test_only:
        return lambda frame: has(operand(frame), name)

    def run(frame: Frame) -> object:
        frame.charge(1)
        return select(operand(frame), name)

    return run


def build_optional_selection(operand: Run, name: str) -> Run:
    def run(frame: Frame) -> object:
        frame.charge(1)
        return select_optional(operand(frame), name)

    return run


def build_logical(left: Run, right: Run, *, decides: bool) -> Run:
    """`decides` is the value of an operand that decides the result alone: true for ||, false for &&."""

    def run(frame: Frame) -> object:
        failed: CelEvaluationError | None = None
        try:
            first = left(frame)
            if first is decides:
                return decides
            if first is not (not decides):
                raise_no_such_overload()
        except CelEvaluationError as error:
            failed = error
        second = right(frame)
        if second is decides:
            return decides
        if failed is not None:
            raise failed
        return second if second is (not decides) else raise_no_such_overload()

    return run


def build_conditional(condition: Run, chosen: Run, otherwise: Run) -> Run:
    def run(frame: Frame) -> object:
        decision = condition(frame)
        if decision is True:
            return chosen(frame)
        return otherwise(frame) if decision is False else raise_no_such_overload()

    return run


def build_not_strictly_false(operand: Run) -> Run:
    def run(frame: Frame) -> object:
        frame.charge(1)
        try:
            return operand(frame) is not False
        except CelEvaluationError:
            return True

    return run


def build_equality_test(left: Run, right: Run, *, wanted: bool) -> Run:
    def run(frame: Frame) -> object:
        same, looked_at = equality.compare_values(left(frame), right(frame))
        frame.charge(looked_at)
        return same is wanted

    return run


def build_membership(wanted: Run, container: Run) -> Run:
    def run(frame: Frame) -> object:
        value, within = wanted(frame), container(frame)
        if isinstance(within, Mapping):
            frame.charge(1)
            return is_key(value) and value in within
        if not is_list(within):
            return raise_no_such_overload("@in")
        found, looked_at = equality.contains(within, value)
        frame.charge(1 + looked_at)
        return found

    return run


def build_list(elements: list[Run], optional: frozenset[int]) -> Run:
    def run(frame: Frame) -> object:
        frame.charge(10)
        if not optional:
            return [element(frame) for element in elements]
        items: list[object] = []
        for place, element in enumerate(elements):
            value = element(frame)
            if place not in optional:
                items.append(value)
            elif not isinstance(value, CelOptional):
                raise_no_such_overload()
            elif value.has_value:
                items.append(value.value)
        return items

    return run


def build_map(entries: list[tuple[Run, Run, bool]]) -> Run:
    def run(frame: Frame) -> object:
        frame.charge(30)
        result: dict[object, object] = {}
        for key_of, value_of, optional in entries:
            key, value = key_of(frame), value_of(frame)
            if optional:
                if not isinstance(value, CelOptional):
                    raise_no_such_overload()
                if not value.has_value:
                    continue
                value = value.value
            if not is_key(key) or isinstance(key, float):
                raise CelEvaluationError("unsupported key type")
            if key in result:
                raise CelEvaluationError(f"Failed with repeated key: {key}")
            result[key] = value
        return result

    return run
