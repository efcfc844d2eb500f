"""Lower bounds on the cost of packing everything: reported with plans, and used to stop improving them.

No bound relies on a solver. Linear programs only propose what a class and a unit of each resource are worth; `_certify`
turns any proposal into a valid bound by weak duality: if no bin can hold items worth more than `largest` times its
price, then everything costs at least its value divided by `largest` (Farley).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.bounds.assignment_lp import AssignmentProgram, Proposal
from plimsoll.solver.bounds.relaxation import Relaxation, number_rows, relax
from plimsoll.solver.cell_split import split_into_cells
from plimsoll.solver.knapsack.item_values import solve_resource_prices
from plimsoll.solver.linear_program import INFINITE, LinearProgram, Sparse

if TYPE_CHECKING:
    from plimsoll.solver.linear_program import Solved
    from plimsoll.solver.problem import Effort, Floats, Ints, PackingProblem

SAFETY: Final = 1e-9
"""Relative: far above what sums of floats lose, far below the precision needed of a bound."""
CLOSE: Final = 1e-3
"""The relative gap at which a quick bound stops; with `PROVING` rounds or more it is `EXACT`."""
EXACT: Final = 1e-6
PROVING: Final = 100
CLASSES: Final = 500
"""The number of classes in the assignment program; more are merged into `CELLS`."""
CELLS: Final = 128
FIRST_TYPES: Final = 6
TYPES_AT_ONCE: Final = 8
SUMS: Final = 200
"""The number of sums of prices that are checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A lower bound of the cost, and the item values that prove it."""

    cost: float
    item_values: Floats
    """[C]: 0 for items that fit nowhere or cost nothing; a hint without any guarantee."""


def compute_lower_bound(problem: PackingProblem, *, effort: Effort, enough: float = math.inf) -> float:
    """Never above the cost of any packing of all items that fit some type; 0 when there are none.

    A bound that has reached `enough` is not improved.
    """
    return compute_bound(problem, effort=effort, enough=enough).cost


def compute_bound(problem: PackingProblem, *, effort: Effort, enough: float = math.inf) -> Bound:
    """The bound with its item values, which are close to those of the best packing."""
    item_values = np.zeros(len(problem.counts))
    relaxation = relax(problem)
    if relaxation is None:
        return Bound(cost=0.0, item_values=item_values)
    volume, item_values[relaxation.classes] = _bound_by_volume(relaxation, effort, enough)
    best = max(_bound_by_costliest_item(relaxation), volume) * (1 - SAFETY)
    return Bound(cost=find_reachable_sum(relaxation.price, best) * (1 - SAFETY), item_values=item_values)


def _bound_by_costliest_item(relaxation: Relaxation) -> float:
    """The price of one bin of a type that takes the most demanding item."""
    return float(np.where(relaxation.fit > 0, relaxation.price[:, None], np.inf).min(axis=0).max())


def _bound_by_volume(relaxation: Relaxation, effort: Effort, enough: float) -> tuple[float, Floats]:
    """One value per resource for all bins; if that is not enough, one per resource and type."""
    uniform = solve_resource_prices(relaxation.counts @ relaxation.sizes, relaxation.capacity, relaxation.price)[
        None, :
    ]
    item_values = relaxation.sizes @ uniform[0]
    bound, _ = _certify(relaxation, Proposal(types=(), item_values=item_values, resource=uniform))
    if bound >= enough:
        return bound, item_values
    few = _merge_classes(relaxation)
    support = np.flatnonzero(relaxation.capacity @ uniform[0] >= relaxation.price * (1 - EXACT))
    better, finer = _bound_by_assignment(relaxation, few, _choose_first_types(few, support), effort, enough)
    return (better, finer) if better > bound else (bound, item_values)


def solve_volume_values(volume: Floats, capacity: Floats, price: Floats, effort: Effort) -> Solved | None:
    """Resource values that maximize the value of the volume while no empty bin is worth more than its price."""
    program = LinearProgram(iterations=effort.simplex_iterations)
    program.add_columns(-volume / max(float(volume.max()), SAFETY))
    program.add_rows(np.full(len(price), -INFINITE), price, Sparse.from_dense(capacity))
    return program.solve()


def _bound_by_assignment(
    relaxation: Relaxation, few: Relaxation, types: Ints, effort: Effort, enough: float
) -> tuple[float, Floats]:
    """The best bound of the program while it is extended by the types that its dual values make too attractive."""
    program, inside = AssignmentProgram(few, effort), np.zeros(len(relaxation.price), dtype=np.bool_)
    slack = EXACT if effort.rounds >= PROVING else CLOSE
    best, item_values = 0.0, np.zeros(len(relaxation.counts))
    for _ in range(2 + effort.rounds // 4):
        program.add_types(types)
        inside[types] = True
        # Caps improve the bound of cells, but not of their classes.
        proposal = program.propose(rounds=2 + effort.rounds // 8 if few is relaxation else 0)
        if proposal is None:
            break
        lifted = proposal if few is relaxation else _lift(relaxation, proposal)
        bound, value_ratio = _certify(relaxation, lifted)
        if bound > best:
            best, item_values = bound, lifted.item_values
        if best >= min(enough, proposal.compute_total(few) * (1 - slack)):
            break
        order = np.argsort(-value_ratio, kind="stable")
        types = order[(value_ratio[order] > 1 + slack / 4) & ~inside[order]][:TYPES_AT_ONCE]
        if not len(types):
            break
    return best, item_values


def _certify(relaxation: Relaxation, proposal: Proposal) -> tuple[float, Floats]:
    """A valid bound; and per type, the largest value that a bin can hold, divided by its price.

    For any values u of resources, items worth v in a bin of capacity a are worth at most u.a plus, for each class,
    as many as fit times what v exceeds u times their size. Every u that is at hand is tried on every type.
    """
    excess = np.maximum(proposal.item_values[None, :] - proposal.resource @ relaxation.sizes.T, 0)
    ceiling = relaxation.capacity @ proposal.resource.T + relaxation.fit @ excess.T
    value_ratio = ceiling.min(axis=1) / relaxation.price
    largest = float(value_ratio.max())
    return (float(relaxation.counts @ proposal.item_values) / largest if largest > 0 else 0.0), value_ratio


def _lift(relaxation: Relaxation, proposal: Proposal) -> Proposal:
    """Values of cells as values of classes: what the cheapest type that takes a class asks for its resources."""
    takes = relaxation.fit[list(proposal.types)] > 0
    item_values = np.where(takes, proposal.resource @ relaxation.sizes.T, np.inf).min(axis=0)
    return Proposal(
        types=proposal.types, item_values=np.where(np.isfinite(item_values), item_values, 0), resource=proposal.resource
    )


def _merge_classes(relaxation: Relaxation) -> Relaxation:
    """The relaxation itself, or its classes merged into cells: good enough to propose values, but no bound."""
    if len(relaxation.counts) <= CLASSES:
        return relaxation
    kinds = number_rows((relaxation.fit > 0).T)
    cell = split_into_cells(relaxation.sizes, relaxation.counts, kinds, CELLS)
    counts: Floats = np.bincount(cell, weights=relaxation.counts).astype(np.float64)

    def compute_mean(amounts: Floats) -> Floats:
        """The mean over the items of each cell; amounts and means are [any, classes or cells]."""
        sums = [np.bincount(cell, weights=row * relaxation.counts) for row in amounts]
        return np.array(sums) / counts

    return Relaxation(
        classes=np.arange(len(counts)),
        sizes=compute_mean(relaxation.sizes.T).T.copy(),
        counts=counts,
        capacity=relaxation.capacity,
        price=relaxation.price,
        fit=compute_mean(relaxation.fit),
    )


def _choose_first_types(relaxation: Relaxation, support: Ints) -> Ints:
    """Types of the volume bound, types that much demand would choose alone, and at least one per class."""
    alone = np.where(relaxation.fit > 0, relaxation.price[:, None] / np.maximum(relaxation.fit, SAFETY), np.inf)
    own = alone.argmin(axis=0)
    weight = np.bincount(own, weights=relaxation.counts * alone.min(axis=0), minlength=len(relaxation.price))
    chosen = np.union1d(support, np.argsort(-weight, kind="stable")[:FIRST_TYPES])
    uncovered = ~(relaxation.fit[chosen] > 0).any(axis=0)
    return np.union1d(chosen, own[uncovered])


def find_reachable_sum(price: Floats, bound: float) -> float:
    """The smallest sum of whole bins that is not below the bound; the bound itself where that is hard to compute.

    It is hard if there are too many sums, or if the price of the cheapest bin is tiny compared to the sum.
    """
    prices = np.unique(price)
    if len(prices) == 1:
        return float(prices[0] * math.ceil(bound / prices[0] - SAFETY))
    if prices[0] <= CLOSE * bound:
        return bound
    below, seen, smallest = [0.0], {0.0}, math.inf
    for _ in range(SUMS):
        if not below:
            return max(smallest, bound)
        sums = below.pop() + prices
        at = int(np.searchsorted(sums, bound * (1 - SAFETY)))
        smallest = min(smallest, float(sums[at]) if at < len(sums) else math.inf)
        if smallest <= bound * (1 + CLOSE):
            break
        new = [total for total in sums[:at].tolist() if total not in seen]
        seen.update(new)
        below += new
    return bound
