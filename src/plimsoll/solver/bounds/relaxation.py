"""The fractional relaxation of a packing problem, on which lower bounds are computed.

Everything left out makes the optimum smaller, never larger: limits on bins and room, dominated types, classes that fit
nowhere or that a free bin takes. The rest is as tight as fractions can be: a bin holds no more of a class than whole
items fit, than `per_bin` says, or than there are; a key of which a bin takes one item is one more resource.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.layout import compute_max_per_bin
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from plimsoll.solver.problem import Flags, Floats, Ints, PackingProblem

SHARED_KEYS: Final = 8
"""The number of keys that count as resources, those with the most items first; bounds ignore the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """Amounts are floats here, each resource in units of the largest bin."""

    classes: Ints
    """[C]: the class numbers of the problem."""
    sizes: Floats
    """[C, R]"""
    counts: Floats
    """[C]"""
    capacity: Floats
    """[T, R]"""
    price: Floats
    """[T]"""
    fit: Floats
    """[T, C]: the largest number of items of one class in one bin; 0 if they are not allowed."""


def relax(problem: PackingProblem) -> Relaxation | None:
    """The relaxation; None if no item needs a bin."""
    fit = compute_max_per_bin(problem)
    fit[_find_closed_types(problem)] = 0
    free = (fit[problem.price <= 0] > 0).any(axis=0)
    fit[:, free] = 0
    classes = np.flatnonzero((problem.counts > 0) & (fit > 0).any(axis=0))
    if not len(classes):
        return None
    requests, capacity = _add_key_resources(problem, classes)
    used = np.flatnonzero(requests.max(axis=0) > 0)
    used = used if len(used) else np.array([0])
    requests, capacity = requests[:, used], capacity[:, used]
    fit = fit[:, classes]
    types = find_undominated_types(capacity, problem.price, fit > 0)
    unit = np.maximum(capacity[types].max(axis=0, initial=1), 1).astype(np.float64)
    return Relaxation(
        classes=classes,
        sizes=requests / unit,
        counts=problem.counts[classes].astype(np.float64),
        capacity=np.maximum(capacity[types], 0) / unit,
        price=problem.price[types],
        fit=fit[types].astype(np.float64),
    )


def number_rows(flags: Flags) -> Ints:
    """[rows]: a number for each distinct row, from 0 without gaps."""
    packed = np.ascontiguousarray(np.packbits(flags, axis=1))
    words = (
        packed.view(np.dtype((np.void, max(packed.shape[1], 1)))).ravel() if packed.shape[1] else np.zeros(len(flags))
    )
    kinds: Ints = np.unique(words, return_inverse=True)[1].astype(np.int64).ravel()
    return kinds


def merge_equal_classes(problem: PackingProblem, item_values: Floats) -> tuple[PackingProblem, Floats]:
    """The same problem with one class for all that take and may use the same, and the mean value of its items.

    Classes that are kept apart only from themselves stay apart: together they would exclude each other.
    """
    keyed = problem.exclusive.any(axis=1)
    apart = np.where((problem.per_bin < UNBOUNDED) & ~keyed, np.arange(1, len(problem.counts) + 1), 0)
    columns = (
        problem.requests,
        problem.exclusive.astype(np.int64),
        np.column_stack((apart, problem.per_bin, number_rows(np.ascontiguousarray(problem.allowed.T)))),
    )
    _, first, group = np.unique(np.hstack(columns), axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    counts = np.zeros(len(first), dtype=np.int64)
    np.add.at(counts, group, problem.counts)
    worth = np.zeros(len(first))
    np.add.at(worth, group, item_values * problem.counts)
    merged = replace(
        problem,
        requests=problem.requests[first],
        counts=counts,
        allowed=np.ascontiguousarray(problem.allowed[:, first]),
        per_bin=problem.per_bin[first],
        exclusive=problem.exclusive[first],
    )
    return merged, worth / np.maximum(counts, 1)


def _find_closed_types(problem: PackingProblem) -> Flags:
    """Types of which not a single bin may be opened."""
    closed: Flags = (problem.available <= 0) | (problem.use > problem.room[None, :]).any(axis=1)
    return closed


def _add_key_resources(problem: PackingProblem, classes: Ints) -> tuple[Ints, Ints]:
    """Keys that several classes share, as resources of which a bin has one; for one class `fit` is enough."""
    requests, capacity = problem.requests[classes], problem.capacity
    keys = problem.exclusive[classes]
    shared = np.flatnonzero(keys.sum(axis=0) > 1)
    if len(shared):
        weight = problem.counts[classes] @ keys[:, shared]
        chosen = shared[np.argsort(-weight, kind="stable")[:SHARED_KEYS]]
        requests = np.concatenate([requests, keys[:, chosen].astype(np.int64)], axis=1)
        capacity = np.concatenate([capacity, np.ones((len(capacity), len(chosen)), dtype=np.int64)], axis=1)
    return requests, capacity


def find_undominated_types(capacity: Ints, price: Floats, takes: Flags) -> Ints:
    """Types that no other type dominates in price, capacity and accepted classes. Of equal types the first stays."""
    useful = np.flatnonzero(takes.any(axis=1))
    capacity, price = capacity[useful], price[useful]
    kind = number_rows(takes[useful])
    kinds = takes[useful][np.unique(kind, return_index=True)[1]].astype(np.float32)
    covers = (1 - kinds) @ kinds.T == 0
    better = covers[kind[:, None], kind[None, :]] & (price[:, None] <= price[None, :])
    for resource in range(capacity.shape[1]):
        better &= capacity[:, None, resource] >= capacity[None, :, resource]
    earlier = np.arange(len(useful))[:, None] < np.arange(len(useful))[None, :]
    beaten = (better & (~better.T | earlier)).any(axis=0)
    kept: Ints = useful[~beaten]
    return kept
