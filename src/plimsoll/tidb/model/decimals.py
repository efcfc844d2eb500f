"""Exact numbers for rules: 0.8 is four fifths.

Numbers from files and from Prometheus are read as the decimals they were written as. Measured values may still be
rounded, so values within a billionth are equal, and a value equal to a threshold is neither above nor below it.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Final

_LARGEST_FACT: Final = Fraction(10**300)
TOLERANCE: Final = Fraction(1, 10**9)


def to_exact(number: float) -> Fraction:
    """The decimal that is printed for a number, which must be finite."""
    return Fraction(repr(number))


def is_above(number: Fraction, limit: Fraction) -> bool:
    return number - limit > TOLERANCE


def is_below(number: Fraction, limit: Fraction) -> bool:
    return limit - number > TOLERANCE


def round_above(number: Fraction) -> int:
    """The smallest greater integer: 3 for 2.4 and for 2.

    A number within the tolerance of an integer counts as that integer.
    """
    nearest = round(number)
    return (nearest if abs(number - nearest) <= TOLERANCE else floor(number)) + 1


def round_fact(number: Fraction) -> float:
    """The number with six digits, for the facts of a reason. It is limited to what a float can hold."""
    return round(float(min(max(number, -_LARGEST_FACT), _LARGEST_FACT)), 6)
