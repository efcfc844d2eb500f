"""Packing into bins of many types at once, each type where it pays: the planner's first answer, in milliseconds.

Items come in classes and bins in types, so the work grows with these and not with the number of items. The answer is
good (about a percent above what is possible from ten thousand items on), always valid, never proven: `bounds` says how
good it is, `columns` makes it better.

performance.md, section 3, steps 3 and 4, tells the method and what it was measured against.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from plimsoll.solver.knapsack.item_values import capped_first, least_cost, value_vectors, worth_from
from plimsoll.solver.knapsack.lp_knapsack import ItemValues
from plimsoll.solver.packing.greedy_kernel import Demand, OpenBins, empty_ledger, open_bins
from plimsoll.solver.packing.layout import Layout, prepare
from plimsoll.solver.packing.local_search import Neighbourhood, Row, downsize, pool_of, pool_rows, rows_of, shake
from plimsoll.solver.problem import BinPattern, Effort, Floats, Ints, Packing, PackingProblem

SHAKEN_BINS: Final = 48
"""So many bins are opened again at most."""
TRIES_TIMES_BINS: Final = 2_000
"""Tries are worth less the more bins there are."""
MOST_TRIES: Final = 100
FEWEST_TRIES: Final = 16
PATIENCE: Final = 30
BOOSTS: Final = 3


def pack_mixed(problem: PackingProblem, effort: Effort, *, values: Floats | None = None) -> Packing:
    """Pack all that can be placed: fewest items left, then cheapest, of several runs.

    `values` (one a class; the duals of a linear program, say) take the place of the built-in portfolio.
    """
    laid = prepare(problem)
    if not laid.classes.size:
        return Packing(fillings=(), left=problem.counts.astype(np.int64), cost=0.0)
    runs = _Runs(laid, effort, None if values is None else values[laid.classes])
    best = runs.best_of(_Plan(empty_ledger(0, 0), laid.needs, 0.0), runs.portfolio())
    if best.left.any():
        best = runs.best_of(best, runs.under_limits())
        for _ in range(BOOSTS):
            best = runs.best_of(best, runs.favouring(best.left))
    return _answer(problem, laid, runs.polished(best))


@dataclass(frozen=True, slots=True)
class _Plan:
    ledger: OpenBins
    needs: Demand
    cost: float

    @property
    def left(self) -> Ints:
        return self.needs.left

    @property
    def rank(self) -> tuple[int, float]:
        """The smaller, the better."""
        return int(self.left.sum()), self.cost


class _Runs:
    """Several runs over one packing, which differ in what items are worth and what bins are said to cost."""

    def __init__(self, laid: Layout, effort: Effort, values: Floats | None) -> None:
        self.laid = laid
        self.effort = effort
        self.least = least_cost(laid.shelf, laid.needs.left)
        self.bound = math.fsum(self.least * laid.needs.left)
        vectors = [values] if values is not None else value_vectors(laid.shelf, self.least)
        few = slice(max(effort.value_vectors, 1))
        self.worths = [worth_from(vector, self.least) for vector in vectors[few]]
        self.first = [] if values is not None else capped_first(laid.shelf, laid.needs.left, self.least)[few]

    def portfolio(self) -> Iterator[tuple[ItemValues, Floats]]:
        return ((worth, self.laid.shelf.price) for worth in (*self.first, *self.worths))

    def under_limits(self) -> Iterator[tuple[ItemValues, Floats]]:
        """Bins cost, in part or altogether, what they take of the room; items are worth their price, or one each."""
        shelf, room = self.laid.shelf, self.laid.needs.room
        if not room.size:
            return
        scarce = (shelf.use / np.maximum(room, 1)).max(axis=1)
        money = shelf.price / shelf.price.max()
        each_alike = worth_from(np.ones(self.least.size), self.least)
        for share in (0.5, 1.0):
            price = np.maximum((1.0 - share) * money + share * scarce / max(float(scarce.max()), 1e-12), 1e-9)
            yield self.worths[0], price
            yield each_alike, price

    def favouring(self, left: Ints) -> Iterator[tuple[ItemValues, Floats]]:
        """What was left behind last time is worth more next time."""
        values = self.worths[0].values * np.where(left > 0, 4.0, 1.0)
        self.worths[0] = worth_from(values, self.least)
        yield self.worths[0], self.laid.shelf.price

    def best_of(self, best: _Plan, runs: Iterator[tuple[ItemValues, Floats]]) -> _Plan:
        """Run until it is good enough; the best of these and the one there was."""
        for worth, price in runs:
            if self._good_enough(best):
                break
            ceiling = math.inf if best.left.any() else best.cost
            needs = Demand(*(part.copy() for part in self.laid.needs))
            ledger, cost = open_bins(self.laid.shelf, worth, price, needs, empty_ledger(64, 1024), ceiling)
            best = min(best, _Plan(ledger, needs, cost), key=lambda plan: plan.rank)
        return best

    def polished(self, plan: _Plan) -> list[Row]:
        """Cheaper bins for the same content, then other contents for the emptiest bins."""
        shelf, needs = self.laid.shelf, plan.needs
        plan = _Plan(plan.ledger, needs, plan.cost - downsize(shelf, needs, plan.ledger))
        rows = rows_of(plan.ledger)
        tries = min(TRIES_TIMES_BINS // max(sum(row.bins for row in rows), 1), MOST_TRIES)
        if not rows or self._good_enough(plan) or tries < FEWEST_TRIES:
            return rows
        pool, untouched = pool_of(rows, shelf, self.least, SHAKEN_BINS)
        shaking = Neighbourhood(np.array([worth.values for worth in self.worths]), self.least[None, :])
        shake(shelf, needs, pool, shaking, tries=tries, patience=PATIENCE)
        return untouched + pool_rows(pool)

    def _good_enough(self, plan: _Plan) -> bool:
        return not plan.left.any() and plan.cost <= (1.0 + self.effort.gap) * self.bound


def _answer(problem: PackingProblem, laid: Layout, rows: list[Row]) -> Packing:
    """In the words of the question: equal fillings joined, in the order of types and contents."""
    left = problem.counts.astype(np.int64)
    bins: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {}
    for row in rows:
        classes = laid.classes[row.classes]
        order = np.argsort(classes)
        key = int(laid.types[row.type]), tuple(classes[order].tolist()), tuple(row.items[order].tolist())
        bins[key] = bins.get(key, 0) + row.bins
        left[classes] -= row.bins * row.items
    fillings = tuple(
        BinPattern(type=type_, bins=count, classes=classes, items=items)
        for (type_, classes, items), count in sorted(bins.items())
    )
    cost = math.fsum(filling.bins * float(problem.price[filling.type]) for filling in fillings)
    return Packing(fillings=fillings, left=left, cost=cost)
