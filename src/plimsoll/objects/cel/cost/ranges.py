"""Least and most: the arithmetic of cost estimation, which stops at the largest 64-bit number and never overflows."""

from __future__ import annotations

import math
from typing import NamedTuple

from plimsoll.objects.cel.values.numbers import UINT_MAX

# Traversing a character or element costs a tenth of a step; a character of a pattern counts as a quarter of a state.
TRAVERSAL = 0.1
PATTERN = 0.25


class Range(NamedTuple):
    """A size or a cost between two bounds."""

    least: int
    most: int

    def add(self, other: Range) -> Range:
        return Range(_cap(self.least + other.least), _cap(self.most + other.most))

    def multiply(self, other: Range) -> Range:
        return Range(_cap(self.least * other.least), _cap(self.most * other.most))

    def scale(self, factor: float) -> Range:
        """The range multiplied by a cost factor, rounded up."""
        return Range(_scale(self.least, factor), _scale(self.most, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def build_exact(value: int) -> Range:
    return Range(value, value)


NOTHING = build_exact(0)
ONE = build_exact(1)
UNKNOWN = Range(0, UINT_MAX)


def sum_ranges(costs: list[Range]) -> Range:
    result = NOTHING
    for cost in costs:
        result = result.add(cost)
    return result


def _cap(value: int) -> int:
    return min(value, UINT_MAX)


def _scale(value: int, factor: float) -> int:
    product = float(value) * factor
    return UINT_MAX if product >= float(UINT_MAX) else math.ceil(product)
