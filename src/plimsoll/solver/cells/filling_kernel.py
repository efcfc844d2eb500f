"""Fills bins that were planned for cells with items of their classes: the hot loops of cell packing.

Members of a cell differ a little from its mean. A bin gets as many items of each cell as planned, and then exchanges
members for others of the same cell until its sum is near the plan. So every bin takes its share of large and small
items; filling each bin completely would leave the odd ones for the end.
"""

from typing import Final, NamedTuple

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

EXCHANGES: Final = 4
"""The number of exchanges per bin; the first one brings it within a thousandth of the plan."""
OVERFULL: Final = 1000.0
"""The weight of a bin too full by its whole size, against the squared distance from the plan."""


class CellItems(NamedTuple):
    """Classes, cell by cell; the fixed side. Classes of one cell share their keys."""

    takes: IntMatrix
    """[R, C]."""
    sizes: FloatMatrix
    """[R, C]: the same in units of the largest bin."""
    units: FloatVector
    """[R]."""
    weights: FloatVector
    """[R]: the value of a unit of each resource."""
    values: FloatVector
    """[C]: the value of an item at these weights."""
    per_bin: IntVector
    """[C]."""
    keys: FlagMatrix
    """[C, K]: classes that share a key exclude each other."""
    starts: IntVector
    """[cells + 1]: the first class of each cell."""
    means: FloatMatrix
    """[cells, R]: the mean of `sizes` over items."""


class Bin(NamedTuple):
    """The bin that is being filled."""

    free: IntVector
    """[R]."""
    taken: FlagVector
    """[K]: keys in the bin."""
    content: IntVector
    """[C]."""


@kernel()
def fill_as_planned(cell_items: CellItems, planned: IntVector, left: IntVector, bin_: Bin) -> None:
    """Put items into an empty bin, as many of each cell as planned if there are, and fit. Counts down `left`."""
    error = np.zeros(cell_items.units.size)
    cells = np.nonzero(planned)[0]
    for at in range(cells.size):
        cell = int(cells[at])
        for _ in range(planned[cell]):
            chosen = find_closest(cell_items, cell, error, left, bin_)
            if chosen < 0:
                break
            put(cell_items, chosen, 1, left, bin_)
            for r in range(error.size):
                error[r] += cell_items.sizes[r, chosen] - cell_items.means[cell, r]
    for _ in range(EXCHANGES):
        if not exchange(cell_items, cells, error, left, bin_):
            break
    while np.any(bin_.free < 0):
        put(cell_items, find_superfluous(cell_items, bin_), -1, left, bin_)


@kernel()
def find_closest(cell_items: CellItems, cell: int, error: FloatVector, left: IntVector, bin_: Bin) -> int:
    """The member that brings the bin's sum nearest to the plan's, even if it does not fit; -1 when there is none."""
    start, end = cell_items.starts[cell], cell_items.starts[cell + 1]
    if np.any(bin_.taken & cell_items.keys[start]):
        return -1
    distance = np.zeros(end - start)
    for r in range(error.size):
        off = (cell_items.sizes[r, start:end] + (error[r] - cell_items.means[cell, r])) * cell_items.weights[r]
        distance += off * off
    admitted = (left[start:end] > 0) & (bin_.content[start:end] < cell_items.per_bin[start:end])
    distance = np.where(admitted, distance, np.inf)
    best = int(np.argmin(distance))
    return start + best if admitted[best] else -1


@kernel()
def exchange(cell_items: CellItems, cells: IntVector, error: FloatVector, left: IntVector, bin_: Bin) -> bool:
    """Exchange the item of the bin that helps most for another of its cell; False if no exchange helps."""
    least = 0.0
    for r in range(error.size):
        least += (error[r] * cell_items.weights[r]) ** 2 + OVERFULL * max(-bin_.free[r], 0) / cell_items.units[r]
    outgoing, incoming = -1, -1
    for cell in cells:
        start, end = cell_items.starts[cell], cell_items.starts[cell + 1]
        admitted = (left[start:end] > 0) & (bin_.content[start:end] < cell_items.per_bin[start:end])
        if not np.any(admitted):
            continue
        for inside in np.nonzero(bin_.content[start:end])[0]:
            score = np.zeros(end - start)
            for r in range(error.size):
                off = (
                    cell_items.sizes[r, start:end] + (error[r] - cell_items.sizes[r, start + inside])
                ) * cell_items.weights[r]
                over = np.maximum(
                    cell_items.takes[r, start:end] - (bin_.free[r] + cell_items.takes[r, start + inside]), 0
                )
                score += off * off + over * (OVERFULL / cell_items.units[r])
            score = np.where(admitted, score, np.inf)
            best = int(np.argmin(score))
            if score[best] < least:
                least, outgoing, incoming = score[best], start + inside, start + best
    if outgoing < 0:
        return False
    put(cell_items, outgoing, -1, left, bin_)
    put(cell_items, incoming, 1, left, bin_)
    for r in range(error.size):
        error[r] += cell_items.sizes[r, incoming] - cell_items.sizes[r, outgoing]
    return True


@kernel()
def find_superfluous(cell_items: CellItems, bin_: Bin) -> int:
    """The least valuable item whose removal makes an overfull bin fit, or else the most valuable one."""
    least, most = -1, -1
    for inside in np.nonzero(bin_.content)[0]:
        class_ = int(inside)
        enough = True
        for r in range(bin_.free.size):
            enough &= bin_.free[r] + cell_items.takes[r, class_] >= 0
        if enough and (least < 0 or cell_items.values[class_] < cell_items.values[least]):
            least = class_
        if most < 0 or cell_items.values[class_] > cell_items.values[most]:
            most = class_
    return least if least >= 0 else most


@kernel()
def top_up(cell_items: CellItems, classes: IntVector, left: IntVector, bin_: Bin) -> None:
    """Add items of these classes that fit, the most valuable first."""
    while True:
        fits = (left[classes] > 0) & (bin_.content[classes] < cell_items.per_bin[classes])
        for r in range(bin_.free.size):
            fits &= cell_items.takes[r][classes] <= bin_.free[r]
        for k in np.nonzero(bin_.taken)[0]:
            fits &= ~cell_items.keys[:, k][classes]
        if not np.any(fits):
            return
        put(cell_items, int(classes[np.argmax(np.where(fits, cell_items.values[classes], -1.0))]), 1, left, bin_)


@kernel()
def put(cell_items: CellItems, class_: int, items: int, left: IntVector, bin_: Bin) -> None:
    """Put items into the bin, or remove them and release their keys."""
    left[class_] -= items
    bin_.content[class_] += items
    for r in range(bin_.free.size):
        bin_.free[r] -= items * cell_items.takes[r, class_]
    for k in range(bin_.taken.size):
        if cell_items.keys[class_, k]:
            bin_.taken[k] = items > 0
