"""`pack`: the entry point of the solver. Chooses the methods for a packing problem and reports a bound.

Few classes are packed mixed, thousands in cells; no result costs more than first fit decreasing with one type. A
packing that is further from its bound than `Effort.gap` is tried in cells and by column generation; small problems are
solved by an integer program. All effort is counted, so the same problem gets the same packing on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.bounds.lower_bound import compute_bound
from plimsoll.solver.cells.packing import CLASSES as FEW_CLASSES
from plimsoll.solver.cells.packing import pack_in_cells
from plimsoll.solver.column_generation.generator import improve
from plimsoll.solver.exact.pattern_milp import is_small, pack_cheapest
from plimsoll.solver.packing.exchange import exchange_items
from plimsoll.solver.packing.first_fit import estimate
from plimsoll.solver.packing.mixed import pack_mixed
from plimsoll.solver.packing.solution import Solution, is_valid, join_patterns
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from plimsoll.solver.bounds.lower_bound import Bound
    from plimsoll.solver.problem import Effort, Ints, Packing, PackingProblem

MIXED_CLASSES: Final = 500
"""The largest number of classes that is packed mixed; more are packed in cells."""
COLUMN_CLASSES: Final = 500
"""The largest number of classes for a master program."""


FEW_ITEMS: Final = 50_000
"""More fill so many bins that column generation loses little by rounding, while cells fill them one by one."""
CELL_ITEMS: Final = 200_000
SINGLE_PAIRS: Final = 10_000
"""Up to this number of classes times types, each type is tried alone."""
CHEAPER: Final = 1e-9
"""The relative difference below which costs are equal."""


@dataclass(frozen=True, slots=True)
class _BoundedPacking:
    """A packing, and the bound for the items that it places."""

    packing: Packing
    bound: Bound

    def is_within(self, gap: float) -> bool:
        return self.packing.cost <= self.bound.cost * (1 + gap)


def pack(problem: PackingProblem, effort: Effort) -> Solution:
    """A cheap packing of all items that fit. The bound is for the placed items and never above the cost."""
    classes = int(np.count_nonzero(problem.counts))
    packed = pack_mixed(problem, effort) if classes <= MIXED_CLASSES else pack_in_cells(problem, effort)
    bound = _compute_bound(problem, packed, effort)
    if classes * len(problem.price) <= SINGLE_PAIRS and packed.cost > bound.cost * (1 + CHEAPER):
        packed = _try_one_type(problem, packed)
    best = _BoundedPacking(packed, bound)
    if effort.rounds and classes <= COLUMN_CLASSES:
        few = problem.counts.sum() <= FEW_ITEMS
        for improve_by in (_try_cells, _try_columns, _try_exact) if few else (_try_columns, _try_cells):
            if not best.is_within(effort.gap):
                best = improve_by(problem, best, effort)
    return Solution(
        packing=best.packing, bound=min(best.bound.cost, best.packing.cost), item_values=best.bound.item_values
    )


def pack_with_keys(problem: PackingProblem, effort: Effort) -> Solution:
    """A cheap packing where keys force many bins open: measured by the quickest bound, improved by exchanges of items.

    The program behind the bound of `pack` takes longer there than everything else, and says little.
    """
    # Exchanges make up for a poor start, but not for items that were left.
    packed = pack_mixed(problem, replace(effort, value_vectors=1))
    if packed.left.any():
        packed = pack_mixed(problem, effort)
    served = replace(problem, counts=problem.counts - packed.left)
    bound = compute_bound(served, effort=effort, enough=0.0)
    if packed.cost > bound.cost * (1 + effort.gap):
        packed = exchange_items(problem, packed)
    return Solution(packing=packed, bound=min(bound.cost, packed.cost), item_values=bound.item_values)


def _try_one_type(problem: PackingProblem, packed: Packing) -> Packing:
    """The packing, or one with bins of a single type if that is cheaper."""
    served = replace(problem, counts=problem.counts - packed.left)
    best = packed
    fewest = _count_fewest_bins(served)
    for type_ in np.flatnonzero(fewest <= served.available).tolist():
        if fewest[type_] * served.price[type_] >= best.cost * (1 - CHEAPER):
            continue
        found = join_patterns(served, estimate(served, type_, nodes=int(served.available[type_])).fillings)
        if not found.left.any() and found.cost < best.cost * (1 - CHEAPER) and is_valid(served, found):
            best = replace(found, left=packed.left)
    return best


def _count_fewest_bins(problem: PackingProblem) -> Ints:
    """[T]: the fewest bins of each type by volume alone; `UNBOUNDED + 1` where some item does not fit the type."""
    volume = problem.counts @ problem.requests
    bins = np.where(volume > 0, -(-volume // np.maximum(problem.capacity, 1)), 0).max(axis=1, initial=0)
    wanted = problem.counts > 0
    takes = (problem.requests[None, wanted] <= problem.capacity[:, None]).all(axis=2) & problem.allowed[:, wanted]
    return np.asarray(np.where(takes.all(axis=1), bins, UNBOUNDED + 1), dtype=np.int64)


def _try_cells(problem: PackingProblem, best: _BoundedPacking, effort: Effort) -> _BoundedPacking:
    """The packing in cells, if it leaves no more items and costs less; else `best`."""
    if np.count_nonzero(problem.counts) <= FEW_CLASSES or problem.counts.sum() > CELL_ITEMS:
        return best
    packed, found = best.packing, pack_in_cells(problem, effort)
    if (int(found.left.sum()), found.cost) >= (int(packed.left.sum()), packed.cost):
        return best
    same = bool((found.left == packed.left).all())
    return _BoundedPacking(found, best.bound if same else _compute_bound(problem, found, effort))


def _try_columns(problem: PackingProblem, best: _BoundedPacking, effort: Effort) -> _BoundedPacking:
    return replace(best, packing=improve(problem, best.packing, effort, bound=best.bound))


def _try_exact(problem: PackingProblem, best: _BoundedPacking, effort: Effort) -> _BoundedPacking:
    return replace(best, packing=pack_cheapest(problem, best.packing, effort)) if is_small(problem) else best


def _compute_bound(problem: PackingProblem, packed: Packing, effort: Effort) -> Bound:
    served = replace(problem, counts=problem.counts - packed.left)
    # Where nothing is improved, any bound will do: the quickest.
    return compute_bound(served, effort=effort, enough=packed.cost / (1 + effort.gap) if effort.rounds else 0.0)
