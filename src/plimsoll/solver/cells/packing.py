"""Packing of many classes with few items each: as a few dozen cells of similar classes, then bin by bin.

Few cells have many items each, so that column generation gets close to the bound. `filling_kernel` then finds items
that sum up to each planned bin. The last bins have little choice, so only most of a plan is carried out; the rest is
planned again in finer cells, and finally class by class.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.bounds.lower_bound import solve_volume_values
from plimsoll.solver.bounds.relaxation import number_rows
from plimsoll.solver.cell_split import split_into_cells
from plimsoll.solver.cells.filling_kernel import Bin, CellItems, fill_as_planned, top_up
from plimsoll.solver.column_generation.generator import improve
from plimsoll.solver.layout import compute_max_per_bin
from plimsoll.solver.packing.mixed import pack_mixed
from plimsoll.solver.packing.solution import build_remaining_problem, join_patterns
from plimsoll.solver.problem import UNBOUNDED, BinPattern, Packing, PackingProblem

if TYPE_CHECKING:
    from plimsoll.solver.problem import Effort, Flags, Floats, Ints


CLASSES: Final = 100
"""Up to this number of classes, cells are not used."""
FEWEST_CELLS: Final = 64
CLASSES_PER_CELL: Final = 200
"""Fewer cells are planned better and give more members to choose from."""
PLAN_GAP: Final = 0.25
CARRIED_OUT: Final = 0.95
"""The share of planned bins that is carried out; the last ones would have to take the remainder."""
LEVELS: Final = 12


def pack_in_cells(problem: PackingProblem, effort: Effort) -> Packing:
    """A packing of everything that `mixed` can place."""
    fillings: list[BinPattern] = []
    left = problem
    for _ in range(LEVELS):
        if np.count_nonzero(left.counts) <= CLASSES:
            break
        made = _pack_most_of_a_plan(left, effort)
        if not made:
            break
        fillings += made
        left = build_remaining_problem(left, made)
    present = np.flatnonzero(left.counts)
    fillings += (
        _restore_classes(pattern, present) for pattern in pack_mixed(_restrict(left, present), effort).patterns
    )
    return join_patterns(problem, fillings)


def _pack_most_of_a_plan(problem: PackingProblem, effort: Effort) -> list[BinPattern]:
    """Plan in cells, and carry out the bins that are worth most for their price."""
    takes = compute_max_per_bin(problem) > 0
    present = np.flatnonzero(takes.any(axis=0))
    if not len(present):
        return []
    few, takes = _restrict(problem, present), takes[:, present]
    cells = min(effort.cells, max(FEWEST_CELLS, len(present) // CLASSES_PER_CELL))
    cell = split_into_cells(_compute_sizes(few), few.counts.astype(np.float64), _number_kinds(few, takes), cells)
    order = np.argsort(cell, kind="stable")
    few, takes, cell, present = _restrict(few, order), takes[:, order], cell[order], present[order]
    coarse, cell_items = _build_coarse_problem(few, takes, cell), _build_cell_items(few, cell, effort)
    left = few.counts.copy()
    planned = _sort_best_first(coarse, cell_items, _plan(coarse, effort))
    made = [_build_pattern(pattern.type, _fill_bin(few, cell_items, pattern, left)) for pattern in planned]
    made = [_top_up_bin(few, cell_items, pattern, left, takes[pattern.type]) for pattern in made]
    return [_restore_classes(pattern, present) for pattern in made if pattern.classes]


def _plan(coarse: PackingProblem, effort: Effort) -> tuple[BinPattern, ...]:
    """The plan of the cells, with a smaller gap than the whole, because losses here cannot be recovered."""
    packed = pack_mixed(coarse, effort)
    return improve(coarse, packed, replace(effort, gap=effort.gap * PLAN_GAP)).patterns


def _sort_best_first(coarse: PackingProblem, cell_items: CellItems, plan: tuple[BinPattern, ...]) -> list[BinPattern]:
    """The bins to carry out, one by one."""
    values = cell_items.means @ cell_items.weights
    gain = [
        float(values[list(pattern.classes)] @ np.array(pattern.items)) / coarse.price[pattern.type] for pattern in plan
    ]
    order = np.lexsort((np.arange(len(plan)), -np.round(gain, 9)))
    bins = [plan[at] for at in order.tolist() for _ in range(plan[at].bins)]
    return bins[: int(np.ceil(CARRIED_OUT * len(bins)))]


def _fill_bin(problem: PackingProblem, cell_items: CellItems, planned: BinPattern, left: Ints) -> Bin:
    """One bin of items instead of cells."""
    cells = np.zeros(len(cell_items.means), dtype=np.int64)
    cells[list(planned.classes)] = planned.items
    keys = np.zeros(problem.exclusive.shape[1], dtype=np.bool_)
    bin_ = Bin(problem.capacity[planned.type].copy(), keys, np.zeros(len(left), dtype=np.int64))
    fill_as_planned(cell_items, cells, left, bin_)
    return bin_


def _top_up_bin(
    problem: PackingProblem, cell_items: CellItems, made: BinPattern, left: Ints, takes: Flags
) -> BinPattern:
    """The bin with further items that still fit. Bins are stored as patterns, because contents are sparse."""
    inside, items = list(made.classes), np.array(made.items, dtype=np.int64)
    content = np.zeros(len(left), dtype=np.int64)
    content[inside] = items
    free = problem.capacity[made.type] - items @ problem.requests[inside]
    keys: Flags = np.logical_or.reduce(problem.exclusive[inside], axis=0)
    bin_ = Bin(free, keys, content)
    top_up(cell_items, np.flatnonzero((left > 0) & takes), left, bin_)
    return _build_pattern(made.type, bin_)


def _build_pattern(type_: int, bin_: Bin) -> BinPattern:
    inside = np.flatnonzero(bin_.content)
    return BinPattern(type=type_, bins=1, classes=tuple(inside.tolist()), items=tuple(bin_.content[inside].tolist()))


def _build_coarse_problem(problem: PackingProblem, takes: Flags, cell: Ints) -> PackingProblem:
    """The problem of packing cells: the mean of the requests of their items, rounded up."""
    counts = np.bincount(cell, weights=problem.counts).astype(np.int64)
    sums = [np.bincount(cell, weights=row * problem.counts) for row in problem.requests.T.astype(np.float64)]
    samples = np.unique(cell, return_index=True)[1]
    capped = np.minimum(problem.per_bin, problem.counts).astype(np.float64)
    return replace(
        problem,
        requests=np.ceil(np.array(sums).T / counts[:, None] - 1e-9).astype(np.int64),
        counts=counts,
        allowed=takes[:, samples],
        per_bin=np.where(problem.per_bin[samples] < UNBOUNDED, np.bincount(cell, weights=capped), UNBOUNDED).astype(
            np.int64
        ),
        exclusive=problem.exclusive[samples],
    )


def _build_cell_items(problem: PackingProblem, cell: Ints, effort: Effort) -> CellItems:
    """The items of classes in the order of their cells."""
    sizes = _compute_sizes(problem)
    share = problem.counts / np.bincount(cell, weights=problem.counts)[cell]
    unit = np.maximum(problem.capacity.max(axis=0), 1).astype(np.float64)
    solved = solve_volume_values(problem.counts @ sizes, np.maximum(problem.capacity, 0) / unit, problem.price, effort)
    weights = np.ones(len(unit)) if solved is None else np.maximum(solved.primal, 0)
    return CellItems(
        takes=np.ascontiguousarray(problem.requests.T),
        sizes=np.ascontiguousarray(sizes.T),
        units=unit,
        weights=weights,
        values=sizes @ weights,
        per_bin=problem.per_bin,
        keys=np.ascontiguousarray(problem.exclusive),
        starts=np.concatenate([[0], np.cumsum(np.bincount(cell))]).astype(np.int64),
        means=np.array([np.bincount(cell, weights=row * share) for row in sizes.T]).T.copy(),
    )


def _compute_sizes(problem: PackingProblem) -> Floats:
    """[C, R]: requests in units of the largest bin."""
    sizes: Floats = problem.requests / np.maximum(problem.capacity.max(axis=0), 1)
    return sizes


def _number_kinds(problem: PackingProblem, takes: Flags) -> Ints:
    """[C]: kinds of classes. Classes of one kind fit the same bins beside the same other classes."""
    flags = number_rows(np.concatenate([takes.T, problem.exclusive], axis=1))
    kinds: Ints = np.unique(np.stack([flags, problem.per_bin]), axis=1, return_inverse=True)[1].ravel()
    return kinds


def _restrict(problem: PackingProblem, classes: Ints) -> PackingProblem:
    return replace(
        problem,
        requests=problem.requests[classes],
        counts=problem.counts[classes],
        allowed=problem.allowed[:, classes],
        per_bin=problem.per_bin[classes],
        exclusive=problem.exclusive[classes],
    )


def _restore_classes(filling: BinPattern, classes: Ints) -> BinPattern:
    named = classes[list(filling.classes)]
    order = np.argsort(named)
    items = np.array(filling.items)[order]
    return replace(filling, classes=tuple(named[order].tolist()), items=tuple(items.tolist()))
