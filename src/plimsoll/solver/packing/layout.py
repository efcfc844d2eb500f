"""A packing laid out for kernels: what cannot matter left out, amounts scaled, classes and types in their own order.

The order comes from the contents (sizes, counts, prices, who goes where), not from the positions in the question. Ties
end at an index; so the same question asked in another order gets an answer of the same cost.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plimsoll.solver.knapsack.lp_knapsack import ItemSizes
from plimsoll.solver.packing.greedy_kernel import Demand
from plimsoll.solver.problem import Floats, Ints, PackingProblem

Prints = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Layout:
    """The part of a packing that can be done, and where its classes and types stand in the whole.

    Resources that no class takes are left out.
    """

    shelf: ItemSizes
    needs: Demand
    classes: Ints
    types: Ints


def prepare(problem: PackingProblem) -> Layout:
    fit = most_in_one(problem)
    open_ = (problem.available > 0) & (problem.use <= problem.room).all(axis=1)
    fit[~open_] = 0
    types = np.flatnonzero(fit.any(axis=1))
    classes = np.flatnonzero(fit.any(axis=0))
    types, classes = _in_order(problem, types, classes)
    taken = np.flatnonzero(problem.requests[classes].any(axis=0))
    taken = taken if taken.size else np.zeros(1, dtype=np.int64)
    capacity = np.maximum(problem.capacity[np.ix_(types, taken)], 0)
    takes = np.ascontiguousarray(problem.requests[np.ix_(classes, taken)].T)
    unit = np.maximum(capacity.max(axis=0, initial=1), 1).astype(np.float64)
    keys = problem.exclusive[classes]
    shelf = ItemSizes(
        takes=takes,
        sizes=takes / unit[:, None],
        capacity=capacity,
        spaces=capacity / unit,
        fit=np.ascontiguousarray(fit[types][:, classes]),
        keys=keys,
        keyed=np.asarray(keys.any(axis=1), dtype=np.bool_),
        price=_above_zero(problem.price[types]),
        use=problem.use[types],
    )
    needs = Demand(problem.counts[classes], problem.available[types], problem.room.copy())
    return Layout(shelf, needs, classes, types)


def most_in_one(problem: PackingProblem) -> Ints:
    """[T, C]: most items of a class in one bin of a type; 0 where none goes."""
    alone = np.where(problem.exclusive.any(axis=1), 1, problem.per_bin)
    fit = np.where(problem.allowed, np.maximum(np.minimum(problem.counts, alone), 0), 0)
    for takes, capacity in zip(problem.requests.T, problem.capacity.T, strict=True):
        taking = np.flatnonzero(takes > 0)
        fit[:, taking] = np.minimum(fit[:, taking], np.maximum(capacity, 0)[:, None] // takes[taking])
    return fit


def _above_zero(price: Floats) -> Floats:
    """Bins for nothing are worth as much as can be said; dividing by 0 says nothing."""
    return np.maximum(price.astype(np.float64), 1e-9 * max(float(price.max(initial=0.0)), 1e-3))


def _in_order(problem: PackingProblem, types: Ints, classes: Ints) -> tuple[Ints, Ints]:
    """Types from dear to cheap (of equal offers the larger bin wins, which makes fewer), classes by their content."""
    allowed = problem.allowed[np.ix_(types, classes)]
    keys = problem.exclusive[classes]
    price = np.ascontiguousarray(problem.price[types], dtype=np.float64)
    class_prints = _prints(problem.requests[classes], problem.counts[classes], problem.per_bin[classes])
    type_prints = _prints(problem.capacity[types], problem.available[types], problem.use[types], price.view(np.int64))
    type_prints += _mixed(_summed(allowed, class_prints))
    class_prints += _mixed(_summed(allowed.T, type_prints))
    class_prints += _mixed(_summed(keys, _mixed(_summed(keys.T, class_prints))))
    return types[np.lexsort((type_prints, -price))], classes[np.argsort(class_prints, kind="stable")]


def _prints(*columns: Ints) -> Prints:
    """[N]: a number for each row that only equal rows share, for all we need."""
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in np.column_stack(columns).astype(np.int64).T:
        found = _mixed(found * np.uint64(0x9E3779B97F4A7C15) + column.view(np.uint64))
    return found


def _mixed(numbers: Prints) -> Prints:
    """Spread each number over all bits (the finaliser of splitmix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _summed(member: NDArray[np.bool_], prints: Prints) -> Prints:
    """[N]: the sum, which no order changes, of the prints that belong to each row."""
    return np.asarray((member * prints).sum(axis=1, dtype=np.uint64), dtype=np.uint64)
