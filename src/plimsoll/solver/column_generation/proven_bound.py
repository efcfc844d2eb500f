"""A lower bound over whole contents of bins: column generation with exact knapsacks, for `plimsoll plan --prove`.

The master program proposes what classes are worth; exact knapsacks bound what a bin of each type can hold of that; weak
duality (Farley) makes it a bound, whatever was proposed. So it relies on no solver and is valid at whichever round the
counted effort ends. `bound_from_values` does the same for known item values, within milliseconds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.bounds.lower_bound import SAFETY, find_reachable_sum
from plimsoll.solver.bounds.relaxation import find_undominated_types
from plimsoll.solver.column_generation.generator import find_best_contents
from plimsoll.solver.column_generation.master import MasterProgram
from plimsoll.solver.knapsack.branch_and_bound import solve_content_exactly
from plimsoll.solver.knapsack.item_values import (
    build_item_values,
    compute_cost_alone,
    compute_least_cost,
    compute_value_vectors,
)
from plimsoll.solver.layout import build_layout, compute_max_per_bin

if TYPE_CHECKING:
    from plimsoll.solver.column_generation.master import MasterSolution
    from plimsoll.solver.knapsack.lp_knapsack import ItemValues
    from plimsoll.solver.problem import Effort, Floats, Ints, PackingProblem

CLASSES: Final = 500
"""The largest number of classes for a master program; beyond it the bound of `bounds` is used."""
KEYS: Final = 8
"""The number of keys that count, those with the most items first; ignoring the others only lowers the bound."""
BRANCHES: Final = 5
"""This part of the effort's branches is for knapsacks: one over it."""
AT_ONCE: Final = 100
"""Branches of one knapsack, at first."""
BETTER: Final = 1e-7
CLOSE: Final = 1e-5
"""Relative: nearer to the master's cost no bound is sought."""
CENTRE: Final = 0.5
"""The weight of the dual values with the best bound so far: those of a master oscillate."""


def prove_bound(problem: PackingProblem, effort: Effort, *, known: float, enough: float) -> float:
    """Never above the cost of any packing of all items that fit some type, and never below `known`, which is a bound.

    It ends if it cannot exceed `known`, or has reached `enough`.
    """
    reduced, _ = _reduce_problem(problem)
    if not 0 < len(reduced.counts) <= CLASSES:
        return known
    best = _Proof(reduced, effort).compute_bound(known=known, enough=enough) * (1 - SAFETY)
    return max(known, find_reachable_sum(reduced.price, best) * (1 - SAFETY)) if best > known else known


def bound_from_values(problem: PackingProblem, item_values: Floats) -> float:
    """The bound that these item values prove: a valid bound wherever they come from, and a good one if they are good.

    No bin holds items worth more than `highest` times its price, so that all cost their value over it at least.
    """
    reduced, classes = _reduce_problem(problem)
    layout = build_layout(reduced)
    values = item_values[classes][layout.classes]
    if not values.any():
        return 0.0
    types, scaled = np.arange(len(layout.types)), build_item_values(values)
    contents = np.zeros((len(types), len(values)), dtype=np.int64)
    highest = float(
        (find_best_contents(layout.instance, scaled, layout.demand.left, types, contents) / layout.instance.price).max()
    )
    best = float(layout.demand.left @ scaled.values) / highest * (1 - SAFETY)
    return find_reachable_sum(reduced.price, best) * (1 - SAFETY)


def _reduce_problem(problem: PackingProblem) -> tuple[PackingProblem, Ints]:
    """Without classes that need no bin that costs, types that others beat, limits on bins; keys become resources.

    And [C] the classes that are left.
    """
    fit = compute_max_per_bin(problem)
    closed = (problem.available <= 0) | (problem.use > problem.room[None, :]).any(axis=1)
    fit[closed] = 0
    for_nothing = (fit[problem.price <= 0] > 0).any(axis=0)
    types = np.flatnonzero((problem.price > 0) & ~closed & fit.any(axis=1))
    classes = np.flatnonzero((problem.counts > 0) & ~for_nothing & (fit[types] > 0).any(axis=0))
    types = types[
        find_undominated_types(problem.capacity[types], problem.price[types], fit[np.ix_(types, classes)] > 0)
    ]
    keys = problem.exclusive[classes]
    shared = np.flatnonzero(keys.sum(axis=0) > 1)
    chosen = shared[np.argsort(-(problem.counts[classes] @ keys[:, shared]), kind="stable")[:KEYS]]
    alone = keys.any(axis=1)
    reduced = replace(
        problem,
        requests=np.concatenate([problem.requests[classes], keys[:, chosen].astype(np.int64)], axis=1),
        counts=problem.counts[classes],
        capacity=np.concatenate([problem.capacity[types], np.ones((len(types), len(chosen)), dtype=np.int64)], axis=1),
        price=problem.price[types],
        allowed=problem.allowed[np.ix_(types, classes)],
        per_bin=np.where(alone, 1, problem.per_bin[classes]),
        exclusive=np.zeros((len(classes), 0), dtype=np.bool_),
        available=np.full(len(types), int(problem.counts.sum()) + 1, dtype=np.int64),
        use=np.zeros((len(types), 0), dtype=np.int64),
        room=np.zeros(0, dtype=np.int64),
    )
    return reduced, classes


class _Proof:
    """Column generation in which rounding asks first, and exact knapsacks when rounding finds nothing more."""

    def __init__(self, problem: PackingProblem, effort: Effort) -> None:
        self._effort = effort
        self._laid = build_layout(problem)
        self._instance, self._left = self._laid.instance, self._laid.demand.left
        self._types = np.arange(len(self._laid.types))
        self._branches = effort.branch_nodes // BRANCHES
        self._at_once = AT_ONCE
        self._master = MasterProgram(self._laid, iterations=effort.simplex_iterations)
        self._begin()

    def compute_bound(self, *, known: float, enough: float) -> float:
        best, centre = 0.0, None
        for _ in range(self._effort.rounds // 2):
            solution = self._master.solve(self._laid.demand)
            # With all columns a master costs no more than with some: nothing above its cost can be proven.
            if solution is None or max(best, known) >= min(enough, solution.cost * (1 - CLOSE)):
                break
            tried = (
                [solution.item_values]
                if centre is None
                else [CENTRE * centre + (1 - CENTRE) * solution.item_values, solution.item_values]
            )
            for tried_values in tried:
                added, found = self._round(tried_values, solution)
                if found > best:
                    best, centre = found, tried_values
                if added:
                    break
            else:
                if self._at_once >= self._branches:
                    break
                # No better content was found; only exact knapsacks show whether one exists.
                self._at_once *= 4
        return best

    def _begin(self) -> None:
        """Initial columns with which all items have a bin: each class alone, and packings by the usual item values."""
        own = np.where(
            self._instance.fit > 0, self._instance.price[:, None] / np.maximum(self._instance.fit, 1), np.inf
        )
        types = own.argmin(axis=0)
        self._master.add(types, np.diag(self._instance.fit[types, np.arange(len(types))]))
        for values in compute_value_vectors(self._instance, compute_least_cost(self._instance, self._left)):
            contents, _ = self._round_contents(
                build_item_values(np.maximum(values, 1e-9 * compute_cost_alone(self._instance)))
            )
            self._master.add(self._types, contents)

    def _round(self, tried_values: Floats, solution: MasterSolution) -> tuple[bool, float]:
        """Whether there are new columns, and the bound that these values prove."""
        item_values = build_item_values(tried_values)
        contents, ceilings = self._round_contents(item_values)
        value_ratio = ceilings / self._instance.price
        proven = self._compute_bound(item_values, float(value_ratio.max()))
        if self._add_columns(self._types, contents, solution):
            return True, proven
        contents, highest = self._solve_contents(item_values, contents, value_ratio)
        return self._add_columns(self._types, contents, solution), max(
            proven, self._compute_bound(item_values, highest)
        )

    def _round_contents(self, item_values: ItemValues) -> tuple[Ints, Floats]:
        contents = np.zeros((len(self._types), len(self._left)), dtype=np.int64)
        return contents, find_best_contents(self._instance, item_values, self._left, self._types, contents)

    def _solve_contents(self, item_values: ItemValues, contents: Ints, value_ratio: Floats) -> tuple[Ints, float]:
        """Contents of types that matter, exactly, and the most that a bin holds over its price.

        Types that could not even by their fractions be dearer than the dearest so far do not matter.
        """
        highest = 0.0
        for type_ in np.argsort(-value_ratio, kind="stable").tolist():
            if value_ratio[type_] <= highest:
                break
            content = contents[type_].copy()
            budget = max(min(self._at_once, self._branches), 0)
            _, ceiling, spent = solve_content_exactly(self._instance, item_values, type_, self._left, content, budget)
            self._branches -= spent
            contents[type_] = content
            highest = max(highest, ceiling / float(self._instance.price[type_]))
        return contents, highest

    def _compute_bound(self, item_values: ItemValues, highest: float) -> float:
        return float(self._left @ item_values.values) / highest if highest > 0 else 0.0

    def _add_columns(self, types: Ints, contents: Ints, solution: MasterSolution) -> bool:
        better = np.flatnonzero(contents @ solution.item_values > self._instance.price * (1 + BETTER))
        return self._master.add(types[better], contents[better])
