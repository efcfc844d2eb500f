"""Packing into bins of many types at once: the first solution, within milliseconds.

The work grows with classes and types, not with items. The solution is about one percent above the optimum from ten
thousand items on, always valid, never proven: `bounds` measures it, `column_generation` improves it.

The method and its measurements: docs/design/performance.md 3, steps 3 and 4.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from plimsoll.solver.knapsack.item_values import (
    build_capped_first_values,
    build_item_values,
    compute_least_cost,
    compute_value_vectors,
)
from plimsoll.solver.knapsack.lp_knapsack import ItemValues
from plimsoll.solver.layout import Demand, Layout, build_layout
from plimsoll.solver.packing.greedy_kernel import OpenBins, build_open_bins, open_bins
from plimsoll.solver.packing.local_search import (
    ItemValueSets,
    PatternRow,
    build_pool,
    downsize,
    improve_bins,
    list_pattern_rows,
    list_rows,
)
from plimsoll.solver.problem import BinPattern, Effort, Floats, Ints, Packing, PackingProblem

RELEASED_BINS: Final = 48
"""The number of bins that local search repacks."""
TRIES_TIMES_BINS: Final = 2_000
"""The limit of attempts times bins of local search."""
MOST_TRIES: Final = 100
FEWEST_TRIES: Final = 16
PATIENCE: Final = 30
BOOSTS: Final = 3


def pack_mixed(problem: PackingProblem, effort: Effort, *, values: Floats | None = None) -> Packing:
    """Pack all that can be placed: fewest items left, then cheapest, of several runs.

    `values`: one per class, such as the duals of a linear program; with them, the built-in portfolio is not tried.
    """
    layout = build_layout(problem)
    if not layout.classes.size:
        return Packing(patterns=(), left=problem.counts.astype(np.int64), cost=0.0)
    runs = _Runs(layout, effort, None if values is None else values[layout.classes])
    best = runs.choose_best(_Plan(build_open_bins(0, 0), layout.demand, 0.0), runs.iterate_portfolio())
    if best.left.any():
        best = runs.choose_best(best, runs.iterate_limit_prices())
        for _ in range(BOOSTS):
            best = runs.choose_best(best, runs.iterate_favouring(best.left))
    return _build_packing(problem, layout, runs.polish(best))


@dataclass(frozen=True, slots=True)
class _Plan:
    opened: OpenBins
    demand: Demand
    cost: float

    @property
    def left(self) -> Ints:
        return self.demand.left

    @property
    def rank(self) -> tuple[int, float]:
        """The smaller, the better."""
        return int(self.left.sum()), self.cost


class _RunInput(NamedTuple):
    """What one run of the greedy assumes."""

    values: ItemValues
    prices: Floats
    """[T]: the prices of bins."""


class _Runs:
    """Several runs over one problem, with different item values and bin prices."""

    def __init__(self, layout: Layout, effort: Effort, values: Floats | None) -> None:
        self.layout = layout
        self.effort = effort
        self.least = compute_least_cost(layout.instance, layout.demand.left)
        self.bound = math.fsum(self.least * layout.demand.left)
        vectors = [values] if values is not None else compute_value_vectors(layout.instance, self.least)
        few = slice(max(effort.value_vectors, 1))
        self.item_values = [build_item_values(vector, self.least) for vector in vectors[few]]
        self.first = (
            []
            if values is not None
            else build_capped_first_values(layout.instance, layout.demand.left, self.least)[few]
        )

    def iterate_portfolio(self) -> Iterator[_RunInput]:
        return (_RunInput(item_values, self.layout.instance.price) for item_values in (*self.first, *self.item_values))

    def iterate_limit_prices(self) -> Iterator[_RunInput]:
        """Prices of bins that include their use of the limits; items are valued by price or equally."""
        instance, room = self.layout.instance, self.layout.demand.room
        if not room.size:
            return
        scarce = (instance.use / np.maximum(room, 1)).max(axis=1)
        money = instance.price / instance.price.max()
        equal_values = build_item_values(np.ones(self.least.size), self.least)
        for share in (0.5, 1.0):
            price = np.maximum((1.0 - share) * money + share * scarce / max(float(scarce.max()), 1e-12), 1e-9)
            yield _RunInput(self.item_values[0], price)
            yield _RunInput(equal_values, price)

    def iterate_favouring(self, left: Ints) -> Iterator[_RunInput]:
        """Raise the values of items that were left in the last run."""
        values = self.item_values[0].values * np.where(left > 0, 4.0, 1.0)
        self.item_values[0] = build_item_values(values, self.least)
        yield _RunInput(self.item_values[0], self.layout.instance.price)

    def choose_best(self, best: _Plan, runs: Iterator[_RunInput]) -> _Plan:
        """The best of the given plan and of these runs, which stop once a plan is good enough."""
        for item_values, price in runs:
            if self._is_good_enough(best):
                break
            ceiling = math.inf if best.left.any() else best.cost
            demand = Demand(*(part.copy() for part in self.layout.demand))
            opened, cost = open_bins(
                self.layout.instance, item_values, price, demand, build_open_bins(64, 1024), ceiling
            )
            best = min(best, _Plan(opened, demand, cost), key=lambda plan: plan.rank)
        return best

    def polish(self, plan: _Plan) -> list[PatternRow]:
        """Cheaper bins for the same content, then other contents for the emptiest bins."""
        instance, demand = self.layout.instance, plan.demand
        plan = _Plan(plan.opened, demand, plan.cost - downsize(instance, demand, plan.opened))
        rows = list_pattern_rows(plan.opened)
        tries = min(TRIES_TIMES_BINS // max(sum(row.bins for row in rows), 1), MOST_TRIES)
        if not rows or self._is_good_enough(plan) or tries < FEWEST_TRIES:
            return rows
        pool, untouched = build_pool(rows, instance, self.least, RELEASED_BINS)
        value_sets = ItemValueSets(
            np.array([item_values.values for item_values in self.item_values]), self.least[None, :]
        )
        improve_bins(instance, demand, pool, value_sets, tries=tries, patience=PATIENCE)
        return untouched + list_rows(pool)

    def _is_good_enough(self, plan: _Plan) -> bool:
        return not plan.left.any() and plan.cost <= (1.0 + self.effort.gap) * self.bound


def _build_packing(problem: PackingProblem, layout: Layout, rows: list[PatternRow]) -> Packing:
    """The packing in the numbers of the problem: equal patterns joined, ordered by type and content."""
    left = problem.counts.astype(np.int64)
    bins: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {}
    for row in rows:
        classes = layout.classes[row.classes]
        order = np.argsort(classes)
        key = int(layout.types[row.type]), tuple(classes[order].tolist()), tuple(row.items[order].tolist())
        bins[key] = bins.get(key, 0) + row.bins
        left[classes] -= row.bins * row.items
    fillings = tuple(
        BinPattern(type=type_, bins=count, classes=classes, items=items)
        for (type_, classes, items), count in sorted(bins.items())
    )
    cost = math.fsum(filling.bins * float(problem.price[filling.type]) for filling in fillings)
    return Packing(patterns=fillings, left=left, cost=cost)
