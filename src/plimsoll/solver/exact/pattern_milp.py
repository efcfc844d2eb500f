"""Small packings at the least cost: an integer program over all contents that a bin can have.

For a handful of items one bin more is a third of the cost, and rounding finds the best by luck. Contents are counted
while they are listed; a problem with too many of them is left as it is. HiGHS only proposes: its solution is filled in
and validated with integers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import highspy
import numpy as np

from plimsoll.solver.bounds.relaxation import find_undominated_types
from plimsoll.solver.highs import build_solver, run_solver
from plimsoll.solver.layout import compute_max_per_bin
from plimsoll.solver.packing.solution import is_valid, join_patterns
from plimsoll.solver.problem import UNBOUNDED, BinPattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.solver.problem import Effort, Ints, Packing, PackingProblem

ITEMS: Final = 40
CLASSES: Final = 12
CONTENTS: Final = 1_000
"""The largest number of contents, which become columns."""
BRANCHES: Final = 100
"""This part of the effort's branches is for the program: one over it."""
STEPS: Final = 10_000
"""The number of complete and partial contents that are visited."""
CHEAPER: Final = 1e-6
"""The relative difference below which costs are equal."""


def is_small(problem: PackingProblem) -> bool:
    wanted = problem.counts[problem.counts > 0]
    return len(wanted) <= CLASSES and int(wanted.sum()) <= ITEMS


def pack_cheapest(problem: PackingProblem, incumbent: Packing, effort: Effort) -> Packing:
    """The cheapest packing of the items of the incumbent; the incumbent itself if nothing cheaper is found.

    In that case nothing cheaper exists, unless there were too many contents or the effort was used up.
    """
    served = replace(problem, counts=problem.counts - incumbent.left)
    listed = _list_contents(served)
    if listed is None:
        return incumbent
    found = join_patterns(
        served, _fill_bins(served.counts, listed, _solve_times(served, listed, incumbent.cost, effort))
    )
    if found.left.any() or found.cost >= incumbent.cost or not is_valid(served, found):
        return incumbent
    return replace(found, left=incumbent.left)


@dataclass(frozen=True, slots=True)
class _Listed:
    types: Ints
    """[N]"""
    contents: Ints
    """[N, C]"""


def _list_contents(problem: PackingProblem) -> _Listed | None:
    """All contents of bins that leave no room for another item; None when there are too many."""
    fit = compute_max_per_bin(problem)
    endless = bool((problem.available >= problem.counts.sum()).all()) and not problem.room.size
    types = (
        find_undominated_types(problem.capacity, problem.price, fit > 0) if endless else np.flatnonzero(fit.any(axis=1))
    )
    found: list[tuple[int, list[int]]] = []
    steps = STEPS
    for type_ in types.tolist():
        bin_ = _Bin(problem, type_, fit[type_].tolist(), steps)
        found += [(type_, content) for content in bin_.iterate_contents()]
        steps = bin_.steps
        if steps <= 0 or len(found) > CONTENTS:
            return None
    if not found:
        return None
    return _Listed(np.array([type_ for type_, _ in found]), np.array([content for _, content in found]))


class _Bin:
    """A bin of one type, filled in all ways that leave no room; larger classes are tried first."""

    def __init__(self, problem: PackingProblem, type_: int, most: list[int], steps: int) -> None:
        self.steps = steps
        """The steps that are left; below 0 the list is not complete."""
        self._capacity: list[int] = problem.capacity[type_].tolist()
        self._most = most
        size = (problem.requests / np.maximum(problem.capacity[type_], 1)).max(axis=1, initial=0)
        wanted = np.flatnonzero(np.array(most) > 0)
        self._order: list[int] = wanted[np.argsort(-size[wanted], kind="stable")].tolist()
        self._takes: list[list[int]] = problem.requests.tolist()
        self._keys = [frozenset(np.flatnonzero(row).tolist()) for row in problem.exclusive]
        self._content = [0] * len(most)
        taken = problem.requests[self._order] * np.array(most)[self._order, None]
        self._later: list[list[int]] = (taken[::-1].cumsum(axis=0)[::-1] - taken).tolist()
        """What all items after a class take, in the order of classes."""

    def iterate_contents(self) -> Iterator[list[int]]:
        return self._descend(0, self._capacity, frozenset())

    def _descend(self, depth: int, free: list[int], keys: frozenset[int]) -> Iterator[list[int]]:
        """All contents with these free resources and these keys in the bin."""
        self.steps -= 1
        if self.steps <= 0:
            return
        if depth == len(self._order):
            if not any(self._takes_one_more(class_, free, keys) for class_ in self._order):
                yield self._content.copy()
            return
        class_ = self._order[depth]
        takes = self._takes[class_]
        top = min((have // amount for have, amount in zip(free, takes, strict=True) if amount > 0), default=UNBOUNDED)
        top = 0 if keys & self._keys[class_] else min(top, self._most[class_])
        for items in range(top, -1, -1):
            if items < top and not self._keys[class_] and self._stays_open(depth, free, items + 1):
                break
            self._content[class_] = items
            rest = [have - items * amount for have, amount in zip(free, takes, strict=True)]
            yield from self._descend(depth + 1, rest, keys | self._keys[class_] if items else keys)

    def _stays_open(self, depth: int, free: list[int], items: int) -> bool:
        """Whether so many of a class still fit when everything that comes after it is in the bin."""
        lines = zip(free, self._takes[self._order[depth]], self._later[depth], strict=True)
        return all(items * amount + later <= have for have, amount, later in lines if amount > 0)

    def _takes_one_more(self, class_: int, free: list[int], keys: frozenset[int]) -> bool:
        if self._content[class_] >= self._most[class_] or keys & self._keys[class_]:
            return False
        return all(amount <= have for have, amount in zip(free, self._takes[class_], strict=True))


def _solve_times(problem: PackingProblem, listed: _Listed, cost: float, effort: Effort) -> Ints:
    """[N]: how often to use each content, so that all items have a bin for less than this; nothing if none is found."""
    types, size = listed.types, len(listed.types)
    short = np.flatnonzero(problem.available < problem.counts.sum())
    limits = np.concatenate([problem.available[short], problem.room]).astype(np.float64)
    matrix = np.column_stack(
        [
            listed.contents,
            types[:, None] == short[None, :],
            problem.use[types],
            problem.price[types] / cost,
        ]
    )
    lower = np.concatenate([problem.counts, np.full(len(limits) + 1, -np.inf)])
    upper = np.concatenate([np.full(len(problem.counts), np.inf), limits, [1 - CHEAPER]])
    columns, rows = np.nonzero(matrix)
    starts = np.searchsorted(columns, np.arange(size)).astype(np.int32)
    highs = build_solver(
        {
            "mip_max_nodes": effort.branch_nodes // BRANCHES,
            "mip_max_stall_nodes": effort.branch_nodes // BRANCHES,
            "mip_rel_gap": 0.0,
        }
    )
    none = np.zeros(0, dtype=np.int32)
    highs.addRows(len(lower), lower, upper, 0, none, none, np.zeros(0))
    most = np.full(size, float(problem.counts.sum()))
    entries = len(rows), starts, rows.astype(np.int32), matrix[columns, rows]
    highs.addCols(size, problem.price[types] / cost, np.zeros(size), most, *entries)
    whole = np.full(size, int(highspy.HighsVarType.kInteger), dtype=np.uint8)
    highs.changeColsIntegrality(size, np.arange(size, dtype=np.int32), whole)
    if not run_solver(highs):
        # HiGHS 1.15 can fail if the cost row is tight to within its tolerance; the caller compares the cost anyway.
        highs.changeRowBounds(len(lower) - 1, -highspy.kHighsInf, highspy.kHighsInf)
        if not run_solver(highs):
            return np.zeros(size, dtype=np.int64)
    # A solution without proof of optimality is good enough.
    if highs.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return np.zeros(size, dtype=np.int64)
    return np.round(np.array(highs.getSolution().col_value)).astype(np.int64)


def _fill_bins(counts: Ints, listed: _Listed, times: Ints) -> list[BinPattern]:
    """Fill bins with the available items; contents together may have room for more."""
    left = counts.copy()
    found = []
    for at in np.flatnonzero(times > 0).tolist():
        for _ in range(int(times[at])):
            items = np.minimum(listed.contents[at], left)
            left -= items
            inside = np.flatnonzero(items)
            if len(inside):
                classes, counts_ = tuple(inside.tolist()), tuple(items[inside].tolist())
                found.append(BinPattern(type=int(listed.types[at]), bins=1, classes=classes, items=counts_))
    return found
