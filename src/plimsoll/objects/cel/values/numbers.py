"""CEL's numbers: 64-bit int and uint, which fail where they would overflow, and double.

An int is a Python int, a double a float; a uint is a `UInt`, which Python's own equality and order already treat as the
number it is, so that comparing numbers across types needs no code.
"""

from __future__ import annotations

import math

from plimsoll.objects.cel.errors import CelEvaluationError

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1


class UInt(int):
    """An unsigned number. Arithmetic on it returns plain ints, which `check_int64` converts back."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


def is_number(value: object) -> bool:
    """Python thinks that true is 1; CEL does not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_int64(value: int, *, unsigned: bool) -> int:
    """`value` if it fits into 64 bits."""
    if unsigned:
        if not 0 <= value <= UINT_MAX:
            raise CelEvaluationError("unsigned integer overflow")
        return UInt(value)
    if not INT_MIN <= value <= INT_MAX:
        raise CelEvaluationError("integer overflow")
    return value


def divide(left: int, right: int, *, unsigned: bool) -> int:
    """Towards zero, as the processor does it."""
    if right == 0:
        raise CelEvaluationError("divide by zero")
    quotient = abs(left) // abs(right)
    return check_int64(quotient if (left < 0) == (right < 0) else -quotient, unsigned=unsigned)


def compute_modulo(left: int, right: int, *, unsigned: bool) -> int:
    """The sign of the result is the sign of `left`."""
    if right == 0:
        raise CelEvaluationError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise CelEvaluationError("integer overflow")
    rest = abs(left) % abs(right)
    return check_int64(-rest if left < 0 else rest, unsigned=unsigned)


def divide_double(left: float, right: float) -> float:
    """Division by zero is infinite, not an error."""
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def convert_double_to_int(value: float) -> int:
    """Cut off towards zero; CEL refuses the outermost values too, because they are not exact."""
    if not math.isfinite(value) or not float(INT_MIN) < value < float(INT_MAX):
        raise CelEvaluationError("integer overflow")
    return int(value)


def convert_double_to_uint(value: float) -> UInt:
    if not math.isfinite(value) or not 0 <= value < float(UINT_MAX):
        raise CelEvaluationError("unsigned integer overflow")
    return UInt(int(value))
