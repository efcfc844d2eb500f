"""Packings assembled from patterns, the problem that they leave, and their validation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.solver.problem import BinPattern, Packing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.solver.problem import Floats, Ints, PackingProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A packing, and what packing the items it places costs at least."""

    packing: Packing
    bound: float
    item_values: Floats
    """[C]: what items are worth by the reckoning that shows the bound; a hint, as `proofs.bound_from_values` takes it.
    """


def join_patterns(problem: PackingProblem, fillings: Iterable[BinPattern]) -> Packing:
    """Equal fillings become one, in the order of types, classes and items; items without a bin are left."""
    bins: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {}
    for pattern in fillings:
        key = (pattern.type, pattern.classes, pattern.items)
        bins[key] = bins.get(key, 0) + pattern.bins
    whole = tuple(
        BinPattern(type=type_, bins=bins[type_, classes, items], classes=classes, items=items)
        for type_, classes, items in sorted(bins)
    )
    opened = count_bins_by_type(problem, whole)
    return Packing(
        patterns=whole, left=problem.counts - count_placed_items(problem, whole), cost=float(opened @ problem.price)
    )


def count_placed_items(problem: PackingProblem, fillings: Iterable[BinPattern]) -> Ints:
    """[C]: items that have a bin."""
    items = np.zeros(len(problem.counts), dtype=np.int64)
    for pattern in fillings:
        items[list(pattern.classes)] += pattern.bins * np.array(pattern.items, dtype=np.int64)
    return items


def count_bins_by_type(problem: PackingProblem, fillings: Iterable[BinPattern]) -> Ints:
    opened = np.zeros(len(problem.price), dtype=np.int64)
    for pattern in fillings:
        opened[pattern.type] += pattern.bins
    return opened


def build_remaining_problem(problem: PackingProblem, fillings: Iterable[BinPattern]) -> PackingProblem:
    """What is to be packed, and may be opened, once these bins are there."""
    fillings = tuple(fillings)
    opened = count_bins_by_type(problem, fillings)
    return replace(
        problem,
        counts=problem.counts - count_placed_items(problem, fillings),
        available=problem.available - opened,
        room=problem.room - opened @ problem.use,
    )


def is_valid(problem: PackingProblem, packed: Packing) -> bool:
    """Whether all guarantees of a `Packing` hold, in integers."""
    opened = count_bins_by_type(problem, packed.patterns)
    return (
        bool((packed.left >= 0).all())
        and bool((packed.left + count_placed_items(problem, packed.patterns) == problem.counts).all())
        and bool((opened <= problem.available).all())
        and bool((opened @ problem.use <= problem.room).all())
        and all(_is_filling(problem, pattern) for pattern in packed.patterns)
    )


def _is_filling(problem: PackingProblem, filling: BinPattern) -> bool:
    classes, items = list(filling.classes), np.array(filling.items, dtype=np.int64)
    return (
        filling.bins > 0
        and bool((items > 0).all())
        and bool((items @ problem.requests[classes] <= problem.capacity[filling.type]).all())
        and bool(problem.allowed[filling.type, classes].all())
        and bool((items <= problem.per_bin[classes]).all())
        and bool((items @ problem.exclusive[classes].astype(np.int64) <= 1).all())
    )
