"""Calls the right overload: the checker's if it is unique, else the one that fits the arguments.

Values come from outside and may be null where a string was declared. A function is never called with a value of a
wrong type; the result is then CEL's "no such overload".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from plimsoll.objects.cel.cost.runtime_costs import compute_call_cost
from plimsoll.objects.cel.library import conversions, operators
from plimsoll.objects.cel.library.kubernetes import Format, QuantityValue, Semver
from plimsoll.objects.cel.library.network import Cidr, Ip, Url
from plimsoll.objects.cel.types import types as t
from plimsoll.objects.cel.values.numbers import UInt
from plimsoll.objects.cel.values.optionals import CelOptional
from plimsoll.objects.cel.values.values import Duration, Timestamp, TypeValue, is_int, is_list, raise_no_such_overload

if TYPE_CHECKING:
    from plimsoll.objects.cel.eval.frames import Frame, Run
    from plimsoll.objects.cel.types.signatures import Overload

_CLASSES: dict[t.CelType, type] = {
    t.BOOL: bool,
    t.UINT: UInt,
    t.DOUBLE: float,
    t.STRING: str,
    t.BYTES: bytes,
    t.TIMESTAMP: Timestamp,
    t.DURATION: Duration,
    t.NULL: type(None),
    t.QUANTITY: QuantityValue,
    t.URL: Url,
    t.IP: Ip,
    t.CIDR: Cidr,
    t.SEMVER: Semver,
    t.FORMAT: Format,
}
# These check their arguments themselves: the overloads of an operator share one implementation.
_CAREFUL = frozenset(
    overload.implementation
    for library in (operators.LIBRARY, conversions.LIBRARY)
    for overload in library.overloads
    if not overload.is_method or overload.name == "size"
)


def build_caller(overloads: list[Overload], operands: list[Run]) -> Run:
    """A function that evaluates the operands, charges for the call and makes it."""
    name = overloads[0].name
    call = _build_choice(name, overloads)
    if len(operands) == 1:
        (only,) = operands

        def call_unary(frame: Frame) -> object:
            value = only(frame)
            frame.charge(compute_call_cost(name, (value,)))
            return call(value)

        return call_unary
    if len(operands) == 2:
        left, right = operands

        def call_binary(frame: Frame) -> object:
            one, other = left(frame), right(frame)
            frame.charge(compute_call_cost(name, (one, other)))
            return call(one, other)

        return call_binary

    def call_with_any_number(frame: Frame) -> object:
        values = [operand(frame) for operand in operands]
        frame.charge(compute_call_cost(name, values))
        return call(*values)

    return call_with_any_number


def _build_choice(name: str, overloads: list[Overload]) -> Callable[..., object]:
    first = overloads[0].implementation
    if first in _CAREFUL and all(overload.implementation is first for overload in overloads):
        return first
    candidates = [(overload.parameters, overload.implementation) for overload in overloads]

    def call(*values: object) -> object:
        for parameters, implementation in candidates:
            if all(map(_conforms, parameters, values)):
                return implementation(*values)
        return raise_no_such_overload(name)

    return call


def _conforms(parameter: t.CelType, value: object) -> bool:
    expected = _CLASSES.get(parameter)
    if expected is not None:
        return isinstance(value, expected)
    if parameter == t.INT:
        return is_int(value)
    match parameter:
        case t.ListType():
            return is_list(value)
        case t.MapType():
            return isinstance(value, Mapping)
        case t.OptionalType():
            return isinstance(value, CelOptional)
        case t.TypeType():
            return isinstance(value, TypeValue)
    return True
