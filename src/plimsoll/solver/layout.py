"""A packing problem prepared for kernels: irrelevant parts removed, amounts scaled, classes and types sorted.

The order depends on the content (sizes, counts, prices, allowed types), not on the positions in the problem. Ties are
broken by index, so that the same problem in another order gets a packing of the same cost.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plimsoll.solver.kernels import IntVector
from plimsoll.solver.knapsack.lp_knapsack import PackingInstance
from plimsoll.solver.problem import Floats, Ints, PackingProblem

Fingerprints = NDArray[np.uint64]


class Demand(NamedTuple):
    """Items left to pack and bins left to open. Kernels decrease it."""

    left: IntVector
    """[C]."""
    available: IntVector
    """[T]."""
    room: IntVector
    """[L]."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The feasible part of a packing problem, with the original numbers of its classes and types.

    Resources that no class takes are left out.
    """

    instance: PackingInstance
    demand: Demand
    classes: Ints
    types: Ints


def build_layout(problem: PackingProblem) -> Layout:
    fit = compute_max_per_bin(problem)
    open_ = (problem.available > 0) & (problem.use <= problem.room).all(axis=1)
    fit[~open_] = 0
    types = np.flatnonzero(fit.any(axis=1))
    classes = np.flatnonzero(fit.any(axis=0))
    types, classes = _sort_by_content(problem, types, classes)
    taken = np.flatnonzero(problem.requests[classes].any(axis=0))
    taken = taken if taken.size else np.zeros(1, dtype=np.int64)
    capacity = np.maximum(problem.capacity[np.ix_(types, taken)], 0)
    takes = np.ascontiguousarray(problem.requests[np.ix_(classes, taken)].T)
    unit = np.maximum(capacity.max(axis=0, initial=1), 1).astype(np.float64)
    keys = problem.exclusive[classes]
    instance = PackingInstance(
        takes=takes,
        sizes=takes / unit[:, None],
        capacity=capacity,
        spaces=capacity / unit,
        fit=np.ascontiguousarray(fit[types][:, classes]),
        keys=keys,
        keyed=np.asarray(keys.any(axis=1), dtype=np.bool_),
        price=_raise_above_zero(problem.price[types]),
        use=problem.use[types],
    )
    demand = Demand(problem.counts[classes], problem.available[types], problem.room.copy())
    return Layout(instance, demand, classes, types)


def compute_max_per_bin(problem: PackingProblem) -> Ints:
    """[T, C]: the largest number of items of a class in one bin of a type; 0 if none fits."""
    alone = np.where(problem.exclusive.any(axis=1), 1, problem.per_bin)
    fit = np.where(problem.allowed, np.maximum(np.minimum(problem.counts, alone), 0), 0)
    for takes, capacity in zip(problem.requests.T, problem.capacity.T, strict=True):
        taking = np.flatnonzero(takes > 0)
        fit[:, taking] = np.minimum(fit[:, taking], np.maximum(capacity, 0)[:, None] // takes[taking])
    return fit


def _raise_above_zero(price: Floats) -> Floats:
    """Prices above 0, so that free bins can be divided by."""
    return np.maximum(price.astype(np.float64), 1e-9 * max(float(price.max(initial=0.0)), 1e-3))


def _sort_by_content(problem: PackingProblem, types: Ints, classes: Ints) -> tuple[Ints, Ints]:
    """Types from dear to cheap (of equal types the larger bin wins, which needs fewer), classes by their content."""
    allowed = problem.allowed[np.ix_(types, classes)]
    keys = problem.exclusive[classes]
    price = np.ascontiguousarray(problem.price[types], dtype=np.float64)
    class_prints = _compute_fingerprints(problem.requests[classes], problem.counts[classes], problem.per_bin[classes])
    type_prints = _compute_fingerprints(
        problem.capacity[types], problem.available[types], problem.use[types], price.view(np.int64)
    )
    type_prints += _mix_bits(_sum_members(allowed, class_prints))
    class_prints += _mix_bits(_sum_members(allowed.T, type_prints))
    class_prints += _mix_bits(_sum_members(keys, _mix_bits(_sum_members(keys.T, class_prints))))
    return types[np.lexsort((type_prints, -price))], classes[np.argsort(class_prints, kind="stable")]


def _compute_fingerprints(*columns: Ints) -> Fingerprints:
    """[N]: a hash per row; in practice only equal rows share it."""
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in np.column_stack(columns).astype(np.int64).T:
        found = _mix_bits(found * np.uint64(0x9E3779B97F4A7C15) + column.view(np.uint64))
    return found


def _mix_bits(numbers: Fingerprints) -> Fingerprints:
    """Spread each number over all bits (the finaliser of splitmix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _sum_members(member: NDArray[np.bool_], prints: Fingerprints) -> Fingerprints:
    """[N]: the sum, which no order changes, of the prints that belong to each row."""
    return np.asarray((member * prints).sum(axis=1, dtype=np.uint64), dtype=np.uint64)
