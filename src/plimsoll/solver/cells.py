"""Thousands of classes: packed as a few hundred cells of like ones, then bin by bin with the items there are.

Used by `planner` above the number of classes that `mixed` is quick with (performance.md, section 3.6). Bins planned for
the means of cells never fit real items exactly, so only most of a plan is carried out; what stays over is planned
again, in cells that are finer the fewer items are left, and at last class by class.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.answers import joined, remaining
from plimsoll.solver.bounds import volume_worths
from plimsoll.solver.instances import Bin, Stock, fill_as_planned
from plimsoll.solver.mixed import pack_mixed
from plimsoll.solver.problems import UNBOUNDED, Filling, Packed, Packing
from plimsoll.solver.relaxations import kinds_of
from plimsoll.solver.shelves import most_in_one
from plimsoll.solver.splits import split_alike

if TYPE_CHECKING:
    from plimsoll.solver.problems import Effort, Flags, Floats, Ints

CLASSES: Final = 400
"""So many or fewer are packed as they are."""
CARRIED_OUT: Final = 0.85
"""Of the planned bins; the last ones would have to take what nobody wanted."""
LEVELS: Final = 12


def pack_in_cells(problem: Packing, effort: Effort) -> Packed:
    """Everything that can be placed, as `mixed` places it."""
    fillings: list[Filling] = []
    left = problem
    for _ in range(LEVELS):
        if np.count_nonzero(left.counts) <= CLASSES:
            break
        made = _most_of_a_plan(left, effort)
        if not made:
            break
        fillings += made
        left = remaining(left, made)
    present = np.flatnonzero(left.counts)
    fillings += (_renamed(each, present) for each in pack_mixed(_only(left, present), effort).fillings)
    return joined(problem, fillings)


def _most_of_a_plan(problem: Packing, effort: Effort) -> list[Filling]:
    """Plan in cells, and carry out the bins that are worth most for their price."""
    takes = most_in_one(problem) > 0
    present = np.flatnonzero(takes.any(axis=0))
    few, takes = _only(problem, present), takes[:, present]
    if not len(present):
        return []
    cell = split_alike(_sizes(few), few.counts.astype(np.float64), _kinds(few, takes), effort.cells)
    coarse = _coarse(few, takes, cell)
    stock = _stock(few, cell, effort)
    plan = pack_mixed(coarse, effort).fillings
    worth = np.bincount(cell, weights=stock.values * few.counts) / np.bincount(cell, weights=few.counts)
    gain = [float(worth[list(each.classes)] @ np.array(each.items)) / few.price[each.type] for each in plan]
    bins = int(np.ceil(CARRIED_OUT * sum(each.bins for each in plan)))
    left = few.counts.copy()
    fillings: list[Filling] = []
    for at in np.lexsort((np.arange(len(plan)), -np.round(gain, 9))).tolist():
        each = plan[at]
        fillings += [_instance(few, coarse, stock, each, left) for _ in range(min(each.bins, bins - len(fillings)))]
    return [_renamed(each, present) for each in fillings if each.classes]


def _instance(problem: Packing, coarse: Packing, stock: Stock, planned: Filling, left: Ints) -> Filling:
    """One bin of items instead of cells."""
    cells = np.zeros(len(coarse.counts), dtype=np.int64)
    cells[list(planned.classes)] = planned.items
    keys = np.zeros(problem.exclusive.shape[1], dtype=np.bool_)
    bin_ = Bin(problem.capacity[planned.type].copy(), keys, np.zeros(len(left), dtype=np.int64))
    fill_as_planned(stock, cells, np.ascontiguousarray(coarse.allowed[planned.type]), left, bin_)
    inside = np.flatnonzero(bin_.content)
    items = tuple(bin_.content[inside].tolist())
    return Filling(type=planned.type, bins=1, classes=tuple(inside.tolist()), items=items)


def _coarse(problem: Packing, takes: Flags, cell: Ints) -> Packing:
    """A packing of cells: the mean of what their items ask, rounded up."""
    counts = np.bincount(cell, weights=problem.counts).astype(np.int64)
    sums = [np.bincount(cell, weights=row * problem.counts) for row in problem.requests.T.astype(np.float64)]
    one = np.unique(cell, return_index=True)[1]
    capped = np.minimum(problem.per_bin, problem.counts).astype(np.float64)
    return replace(
        problem,
        requests=np.ceil(np.array(sums).T / counts[:, None] - 1e-9).astype(np.int64),
        counts=counts,
        allowed=takes[:, one],
        per_bin=np.where(problem.per_bin[one] < UNBOUNDED, np.bincount(cell, weights=capped), UNBOUNDED).astype(
            np.int64
        ),
        exclusive=problem.exclusive[one],
    )


def _stock(problem: Packing, cell: Ints, effort: Effort) -> Stock:
    order = np.argsort(cell, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(cell))])
    sizes = _sizes(problem)
    weights = problem.counts / np.bincount(cell, weights=problem.counts)[cell]
    unit = np.maximum(problem.capacity.max(axis=0), 1)
    solved = volume_worths(problem.counts @ sizes, np.maximum(problem.capacity, 0) / unit, problem.price, effort)
    worth = np.ones(len(unit)) if solved is None else np.maximum(solved.primal, 0)
    return Stock(
        requests=np.ascontiguousarray(problem.requests),
        sizes=sizes,
        values=sizes @ worth,
        per_bin=problem.per_bin,
        keys=np.ascontiguousarray(problem.exclusive),
        members=order,
        starts=starts.astype(np.int64),
        means=np.array([np.bincount(cell, weights=row * weights) for row in sizes.T]).T.copy(),
        least=np.minimum.reduceat(problem.requests[order], starts[:-1], axis=0),
    )


def _sizes(problem: Packing) -> Floats:
    """[C, R]: requests in units of the largest bin."""
    sizes: Floats = problem.requests / np.maximum(problem.capacity.max(axis=0), 1)
    return sizes


def _kinds(problem: Packing, takes: Flags) -> Ints:
    """Classes of one kind may lie in the same bins beside the same others."""
    flags = kinds_of(np.concatenate([takes.T, problem.exclusive], axis=1))
    kinds: Ints = np.unique(np.stack([flags, problem.per_bin]), axis=1, return_inverse=True)[1].ravel()
    return kinds


def _only(problem: Packing, classes: Ints) -> Packing:
    return replace(
        problem,
        requests=problem.requests[classes],
        counts=problem.counts[classes],
        allowed=problem.allowed[:, classes],
        per_bin=problem.per_bin[classes],
        exclusive=problem.exclusive[classes],
    )


def _renamed(filling: Filling, classes: Ints) -> Filling:
    return replace(filling, classes=tuple(classes[list(filling.classes)].tolist()))
