"""Column generation: makes a packing cheaper by looking at all its bins at once (docs/design/performance.md 3.5).

The master program chooses how often to use each known pattern; its dual values are the item values of the knapsacks
that look for better patterns. Where rounded knapsacks find none, small problems ask exact ones. Diving turns fractions
into whole bins: it fixes whole amounts, rounds up what is nearly whole, and solves again. `mixed` packs the rest.

Never returns a packing that costs more than the incumbent, nor one that was not validated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.bounds.lower_bound import Bound, compute_bound
from plimsoll.solver.column_generation.master import MasterProgram
from plimsoll.solver.kernels import FloatVector, IntMatrix, IntVector, kernel
from plimsoll.solver.knapsack.branch_and_bound import solve_content_exactly
from plimsoll.solver.knapsack.item_values import build_item_values, compute_least_cost
from plimsoll.solver.knapsack.lp_knapsack import ItemValues, PackingInstance, find_best_content
from plimsoll.solver.layout import Demand, Layout, build_layout
from plimsoll.solver.packing.mixed import pack_mixed
from plimsoll.solver.packing.solution import is_valid, join_patterns
from plimsoll.solver.problem import BinPattern, Packing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plimsoll.solver.column_generation.master import MasterSolution
    from plimsoll.solver.problem import Effort, Floats, Ints, PackingProblem


DIVES_AT: Final = ((0.95, 0.5), (0.8, 0.25), (0.6, 0.25))
"""A dive rounds up fractions from the first on, when the master has left no more than the second of the gap."""
NEAR: Final = 3
"""The number of packings near the bound before the first program is solved."""
PERTURBATION: Final = 0.1
GOLDEN: Final = 0.6180339887498949
DIVES: Final = 40
"""Solutions a dive takes at most."""
BETTER: Final = 1e-6
"""A pattern becomes a column if its value exceeds its price by this relative amount."""
CENTRE: Final = 0.5
"""The weight of the best dual values so far: those of a master oscillate and lead to useless patterns."""
QUICK_GAP: Final = 1.0
"""A gap that any packing of a remainder meets: it is improved only with `PROVING` rounds or more."""
PROVING: Final = 100
ALL_TYPES_EVERY: Final = 5
"""The number of rounds between pricing all types; in between only the most promising ones are priced."""
PROMISING: Final = 20
EXACT_PAIRS: Final = 1_000
"""Up to this number of classes times types, exact knapsacks are used if the rounded ones find nothing."""
BRANCHES_AT_ONCE: Final = 200
"""The branches of one exact knapsack; all together have the branches of the effort."""


def improve(problem: PackingProblem, incumbent: Packing, effort: Effort, *, bound: Bound | None = None) -> Packing:
    """A cheaper packing of the items of the incumbent if one is found, else the incumbent."""
    served = replace(problem, counts=problem.counts - incumbent.left)
    if effort.rounds < 1 or not incumbent.patterns:
        return incumbent
    if bound is None:
        bound = compute_bound(served, effort=effort, enough=incumbent.cost)
    enough = bound.cost * (1 + effort.gap)
    generator = _Generator(served, effort)
    best = replace(incumbent, left=np.zeros_like(incumbent.left))
    generator.learn(best.patterns)
    for found in _pack_near_bound(served, effort, generator.layout, bound.item_values):
        best = _choose_better(served, found, best)
        generator.learn(found.patterns)
        if best.cost <= enough:
            break
    for threshold, closeness in DIVES_AT if best.cost > enough else ():
        item_values = generator.generate_columns(bound, close=closeness * effort.gap)
        if item_values is None:
            break
        best = _choose_better(served, join_patterns(served, generator.dive(threshold, item_values)), best)
        if best.cost <= enough:
            break
    return incumbent if best.cost >= incumbent.cost else replace(best, left=incumbent.left)


def _choose_better(problem: PackingProblem, found: Packing, best: Packing) -> Packing:
    """The packing that was found, if it is cheaper, complete and valid."""
    cheaper = found.cost < best.cost * (1 - BETTER)
    return found if cheaper and not found.left.any() and is_valid(problem, found) else best


def _pack_near_bound(problem: PackingProblem, effort: Effort, layout: Layout, item_values: Floats) -> Iterator[Packing]:
    """Packings by the item values of the bound, and by values close to these.

    They are seldom better than the incumbent, but sometimes much better. A master that knows their patterns saves about
    thirty rounds.
    """
    if not item_values.any():
        return
    for round_number in range(NEAR):
        values = item_values.copy()
        values[layout.classes] *= _build_perturbation(len(layout.classes), round_number)
        yield pack_mixed(problem, replace(effort, gap=QUICK_GAP), values=values)


def _build_perturbation(count: int, round_number: int) -> Floats:
    """Factors around 1, evenly distributed, different in each round; all 1 in the first round."""
    steps = np.arange(1, count + 1) * (GOLDEN * round_number)
    factors: Floats = 1 + PERTURBATION * (2 * (steps - np.floor(steps)) - 1) * (round_number > 0)
    return factors


class _Generator:
    """A master program, and the knapsacks that feed it. Classes and types are numbered as they are laid out."""

    def __init__(self, problem: PackingProblem, effort: Effort) -> None:
        self._problem, self._effort = problem, effort
        self.layout: Layout = build_layout(problem)
        self._rounds = effort.rounds
        self._branches = effort.branch_nodes
        self._least = compute_least_cost(self.layout.instance, self.layout.demand.left)
        self._all_types = np.arange(len(self.layout.types))
        self._master = MasterProgram(self.layout, iterations=effort.simplex_iterations)
        self._centre: Floats | None = None
        """The dual values with the highest bound so far."""
        self._bound = 0.0

    def learn(self, fillings: Iterable[BinPattern]) -> None:
        """Add known patterns as columns."""
        instance = self.layout.instance
        class_at = np.full(len(self._problem.counts), -1)
        class_at[self.layout.classes] = np.arange(len(self.layout.classes))
        type_at = np.full(len(self._problem.price), -1)
        type_at[self.layout.types] = np.arange(len(self.layout.types))
        known = list(fillings)
        contents = np.zeros((len(known), instance.fit.shape[1]), dtype=np.int64)
        for row, pattern in zip(contents, known, strict=True):
            row[class_at[list(pattern.classes)]] = pattern.items
        self._master.add(type_at[[bin_pattern.type for bin_pattern in known]], contents)

    def generate_columns(self, bound: Bound, *, close: float) -> Floats | None:
        """Add columns until the master is close to a bound, no pattern is better, or the rounds end.

        Returns the last dual values. Pricing uses values between those of the master and the best known ones, at first
        those of the bound.
        """
        if not self._bound:
            self._bound, self._centre = (
                bound.cost,
                bound.item_values[self.layout.classes] if bound.item_values.any() else None,
            )
        item_values: Floats | None = None
        promising = self._all_types
        for round_number in range(self._rounds + 1):
            solution = self._master.solve(self.layout.demand)
            if solution is None:
                break
            item_values = solution.item_values
            if solution.cost <= self._bound * (1 + close) or not self._rounds:
                break
            self._rounds -= 1
            tried_values = item_values if self._centre is None else CENTRE * self._centre + (1 - CENTRE) * item_values
            if round_number % ALL_TYPES_EVERY and self._price_types(tried_values, solution, promising)[0]:
                continue
            added, value_ratio = self._price_all_types(tried_values, solution)
            if not added and not self._price_exactly(solution, value_ratio):
                break
            promising = np.sort(np.argsort(-value_ratio, kind="stable")[:PROMISING])
        return item_values

    def _price_all_types(self, tried_values: Floats, solution: MasterSolution) -> tuple[bool, Floats]:
        """Price all types, which also gives Farley's bound. If nothing is new, use the dual values of the master."""
        added, value_ratio = self._price_types(tried_values, solution, self._all_types)
        if not added and self._centre is not None:
            tried_values = solution.item_values
            added, value_ratio = self._price_types(tried_values, solution, self._all_types)
        farley = float(self.layout.demand.left @ tried_values) / max(float(value_ratio.max()), 1e-300)
        if farley > self._bound:
            self._centre, self._bound = tried_values, farley
        return added, value_ratio

    def dive(self, threshold: float, item_values: Floats) -> list[BinPattern]:
        """Whole bins of known fillings, then the rest as `mixed` packs it, with the master's values or its own."""
        demand = Demand(*(part.copy() for part in self.layout.demand))
        fillings: list[BinPattern] = []
        for _ in range(DIVES):
            solution = self._master.solve(demand)
            taken = [] if solution is None else self._master.take_whole(solution.amounts, demand, threshold)
            fillings += (self._to_pattern(*pattern) for pattern in taken)
            if not taken or not demand.left.any():
                break
        if demand.left.any():
            fillings += self._pack_rest(demand, item_values)
        return fillings

    def _price_types(self, tried_values: Floats, solution: MasterSolution, types: Ints) -> tuple[bool, Floats]:
        """Add columns from the knapsacks; returns whether there were any, and the largest values per price of bins."""
        instance = self.layout.instance
        contents = np.zeros((len(types), instance.fit.shape[1]), dtype=np.int64)
        ceilings = find_best_contents(
            instance, build_item_values(tried_values, self._least), self.layout.demand.left, types, contents
        )
        better = np.flatnonzero(contents @ solution.item_values > solution.price[types] * (1 + BETTER))
        added = self._master.add(types[better], contents[better])
        return added, ceilings * tried_values.max() / solution.price[types]

    def _price_exactly(self, solution: MasterSolution, value_ratio: Floats) -> bool:
        """New columns for certain, if there are any, as long as branches last; the most promising types first.

        Not where keys exclude items: exact knapsacks do not look at these.
        """
        instance = self.layout.instance
        if instance.fit.size > EXACT_PAIRS or instance.keyed.any():
            return False
        item_values = build_item_values(solution.item_values)
        contents = np.zeros(instance.fit.shape, dtype=np.int64)
        for type_ in np.argsort(-value_ratio, kind="stable").tolist():
            budget = min(self._branches, BRANCHES_AT_ONCE)
            *_, spent = solve_content_exactly(
                instance, item_values, type_, self.layout.demand.left, contents[type_], budget
            )
            self._branches -= spent
        better = np.flatnonzero(contents @ solution.item_values > solution.price * (1 + BETTER))
        return self._master.add(better, contents[better])

    def _pack_rest(self, demand: Demand, item_values: Floats) -> tuple[BinPattern, ...]:
        counts, values = np.zeros_like(self._problem.counts), np.zeros(len(self._problem.counts))
        counts[self.layout.classes], values[self.layout.classes] = demand.left, item_values
        available = np.zeros_like(self._problem.available)
        available[self.layout.types] = demand.available
        rest = replace(self._problem, counts=counts, available=available, room=demand.room)
        effort = self._effort if self._effort.rounds >= PROVING else replace(self._effort, gap=QUICK_GAP)
        packed = [pack_mixed(rest, effort), pack_mixed(rest, effort, values=values)]
        return min(packed, key=lambda packing: (int(packing.left.sum()), packing.cost)).patterns

    def _to_pattern(self, type_: int, bins: int, content: Ints) -> BinPattern:
        """A pattern in the numbers of the problem."""
        classes = self.layout.classes
        order = np.flatnonzero(content)
        order = order[np.argsort(classes[order])]
        return BinPattern(
            type=int(self.layout.types[type_]),
            bins=bins,
            classes=tuple(classes[order].tolist()),
            items=tuple(content[order].tolist()),
        )


@kernel()
def find_best_contents(
    instance: PackingInstance, item_values: ItemValues, left: IntVector, types: IntVector, contents: IntMatrix
) -> FloatVector:
    """Write a content for each of the types; for each, a value that no content exceeds where no keys exclude any."""
    ceilings = np.zeros(types.size)
    prices = np.zeros(instance.takes.shape[0])
    for at in range(types.size):
        _, ceiling = find_best_content(instance, item_values, types[at], left, contents[at], prices)
        ceilings[at] = ceiling
    return ceilings
