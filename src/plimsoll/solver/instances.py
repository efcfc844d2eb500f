"""A bin planned for cells, filled with items of their classes: the hot loops of `cells`.

Members of a cell differ a little from its mean. Of each cell those are taken that keep the sum over the bin where the
plan had it; then whatever still fits goes in, the most valuable first.
"""

from typing import NamedTuple

import numpy as np

from plimsoll.solver.kernels import (
    FlagMatrix,
    FlagVector,
    FloatMatrix,
    FloatVector,
    IntMatrix,
    IntVector,
    kernel,
)


class Stock(NamedTuple):
    """Classes in cells; the fixed side."""

    requests: IntMatrix
    """[C, R]."""
    sizes: FloatMatrix
    """[C, R]: the same in units of the largest bin."""
    values: FloatVector
    """[C]."""
    per_bin: IntVector
    """[C]."""
    keys: FlagMatrix
    """[C, K]: classes that share a key exclude each other."""
    members: IntVector
    """[C]: classes, cell by cell."""
    starts: IntVector
    """[cells + 1]: where a cell's members begin."""
    means: FloatMatrix
    """[cells, R]: of `sizes`, by item."""
    least: IntMatrix
    """[cells, R]: component by component, of `requests`."""


class Bin(NamedTuple):
    """What is being filled."""

    free: IntVector
    """[R]."""
    taken: FlagVector
    """[K]: keys."""
    content: IntVector
    """[C]."""


@kernel()
def fill_as_planned(stock: Stock, planned: IntVector, allowed: FlagVector, left: IntVector, bin_: Bin) -> None:
    """Put items into an empty bin: of each cell as planned if they fit, then what else fits. Counts down `left`."""
    error = np.zeros(stock.sizes.shape[1])
    for cell in range(planned.size):
        for _ in range(planned[cell]):
            chosen = closest(stock, cell, error, left, bin_)
            if chosen < 0:
                break
            put(stock, chosen, left, bin_)
            error += stock.sizes[chosen] - stock.means[cell]
    top_up(stock, allowed, left, bin_)


@kernel()
def closest(stock: Stock, cell: int, error: FloatVector, left: IntVector, bin_: Bin) -> int:
    """The member that brings the bin's sum nearest to the plan's; -1 when none fits."""
    best = -1
    smallest = np.inf
    for at in range(stock.starts[cell], stock.starts[cell + 1]):
        class_ = stock.members[at]
        if left[class_] == 0 or not fits(stock, class_, bin_):
            continue
        distance = 0.0
        for r in range(error.size):
            off = error[r] + stock.sizes[class_, r] - stock.means[cell, r]
            distance += off * off
        if distance < smallest:
            best, smallest = class_, distance
    return best


@kernel()
def top_up(stock: Stock, allowed: FlagVector, left: IntVector, bin_: Bin) -> None:
    """Whatever fits, the most valuable first."""
    while True:
        best = -1
        for cell in range(allowed.size):
            if not allowed[cell] or np.any(stock.least[cell] > bin_.free):
                continue
            for at in range(stock.starts[cell], stock.starts[cell + 1]):
                class_ = stock.members[at]
                if left[class_] == 0 or (best >= 0 and stock.values[class_] <= stock.values[best]):
                    continue
                if fits(stock, class_, bin_):
                    best = class_
        if best < 0:
            return
        put(stock, best, left, bin_)


@kernel()
def fits(stock: Stock, class_: int, bin_: Bin) -> bool:
    """Whether the bin takes one more of the class, if it takes any."""
    if bin_.content[class_] >= stock.per_bin[class_]:
        return False
    for r in range(bin_.free.size):
        if stock.requests[class_, r] > bin_.free[r]:
            return False
    excluded = False
    for k in range(bin_.taken.size):
        excluded |= bin_.taken[k] and stock.keys[class_, k]
    return not excluded


@kernel()
def put(stock: Stock, class_: int, left: IntVector, bin_: Bin) -> None:
    left[class_] -= 1
    bin_.content[class_] += 1
    for r in range(bin_.free.size):
        bin_.free[r] -= stock.requests[class_, r]
    for k in range(bin_.taken.size):
        if stock.keys[class_, k]:
            bin_.taken[k] = True
