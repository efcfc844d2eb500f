"""Numbers of rules without the surprises of binary fractions: 0.8 is four fifths.

What comes from a file or from Prometheus is taken as the decimal it was written as. Still a measured value may be off
by its own rounding, so everything within a billionth counts as equal: equal to a threshold is neither above nor below.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Final

TOLERANCE: Final = Fraction(1, 10**9)


def exact(number: float) -> Fraction:
    """The decimal that is printed for it. The number must be finite."""
    return Fraction(repr(number))


def is_above(number: Fraction, limit: Fraction) -> bool:
    return number - limit > TOLERANCE


def is_below(number: Fraction, limit: Fraction) -> bool:
    return limit - number > TOLERANCE


def least_above(number: Fraction) -> int:
    """The least whole number that is greater: of 2.4 and of 2 it is 3. What is all but whole counts as whole."""
    nearest = round(number)
    return (nearest if abs(number - nearest) <= TOLERANCE else floor(number)) + 1


def shown(number: Fraction) -> float:
    """For facts of a reason: six digits are enough to follow an argument."""
    return round(float(number), 6)
