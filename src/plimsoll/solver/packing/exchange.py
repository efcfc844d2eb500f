"""Makes a packing cheaper by single moves: an item to another bin, or two items of two bins exchanged.

For bins that a rule forces open (one item each of a set that keeps apart), what counts is how well small items fill up
every bin to the size of some type. The number of tries is fixed, and the sequence of moves depends only on the problem.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.packing.exchange_kernel import Bins, Shelf, search
from plimsoll.solver.packing.solution import is_valid
from plimsoll.solver.problem import UNBOUNDED, BinPattern, Packing

if TYPE_CHECKING:
    from plimsoll.solver.problem import Floats, Ints, PackingProblem

TRIES_PER_ITEM: Final = 800
MOST_TRIES: Final = 4_500_000
HEAT: Final = 0.15
"""What a move may cost at first, as a share of the cheapest price."""
_TINY: Final = 1e-9


def exchange_items(problem: PackingProblem, packing: Packing, *, tries: int | None = None) -> Packing:
    """The packing, or a cheaper one of the same items."""
    items = sum(pattern.bins * sum(pattern.items) for pattern in packing.patterns)
    if not items:
        return packing
    order = np.argsort(problem.price, kind="stable")
    shelf = _build_shelf(problem, order)
    bins = _build_bins(shelf, packing, order)
    search(shelf, bins, min(TRIES_PER_ITEM * items, MOST_TRIES) if tries is None else tries)
    found = _collect(bins, packing, order, problem.price)
    served = replace(problem, counts=problem.counts - packing.left)
    cheaper = found.cost < packing.cost * (1 - _TINY)
    return found if cheaper and is_valid(served, replace(found, left=np.zeros_like(packing.left))) else packing


def _build_shelf(problem: PackingProblem, order: Ints) -> Shelf:
    # A cap is one more resource, of which each item of the class takes one.
    capped = np.flatnonzero(problem.per_bin < UNBOUNDED)
    own = np.eye(len(problem.counts), dtype=np.int64)[:, capped]
    caps = np.tile(problem.per_bin[capped], (len(order), 1))
    patterns, kind = np.unique(problem.allowed[order].T, axis=0, return_inverse=True)
    return Shelf(
        takes=np.ascontiguousarray(np.hstack((problem.requests, own)), dtype=np.int64),
        capacity=np.ascontiguousarray(np.hstack((problem.capacity[order], caps)), dtype=np.int64),
        price=np.ascontiguousarray(problem.price[order], dtype=np.float64),
        kind=np.ascontiguousarray(kind.reshape(-1), dtype=np.int64),
        allowed=np.ascontiguousarray(patterns, dtype=np.bool_),
        keys=np.ascontiguousarray(problem.exclusive, dtype=np.bool_),
        heat=HEAT * float(problem.price.min()),
    )


def _build_bins(shelf: Shelf, packing: Packing, order: Ints) -> Bins:
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    types: list[int] = []
    item_class: list[int] = []
    item_bin: list[int] = []
    for pattern in packing.patterns:
        content = [number for number, many in zip(pattern.classes, pattern.items, strict=True) for _ in range(many)]
        for _ in range(pattern.bins):
            item_class += content
            item_bin += [len(types)] * len(content)
            types.append(int(rank[pattern.type]))
    classes, inside = np.array(item_class, dtype=np.int64), np.array(item_bin, dtype=np.int64)
    used = np.zeros((len(types), shelf.takes.shape[1]), dtype=np.int64)
    np.add.at(used, inside, shelf.takes[classes])
    kinds = np.zeros((len(types), len(shelf.allowed)), dtype=np.int64)
    np.add.at(kinds, (inside, shelf.kind[classes]), 1)
    keyed = np.zeros((len(types), shelf.keys.shape[1]), dtype=np.int64)
    np.add.at(keyed, inside, shelf.keys[classes])
    return Bins(classes, inside, np.array(types, dtype=np.int64), used, kinds, keyed)


def _collect(bins: Bins, packing: Packing, order: Ints, price: Floats) -> Packing:
    contents: dict[int, Counter[int]] = {}
    for bin_, number in zip(bins.item_bin.tolist(), bins.item_class.tolist(), strict=True):
        contents.setdefault(bin_, Counter())[number] += 1
    found: Counter[tuple[int, tuple[tuple[int, int], ...]]] = Counter()
    for bin_ in sorted(contents):
        found[int(order[bins.type[bin_]]), tuple(sorted(contents[bin_].items()))] += 1
    patterns = tuple(
        BinPattern(type=type_, bins=many, classes=tuple(dict(content)), items=tuple(dict(content).values()))
        for (type_, content), many in found.items()
    )
    cost = sum(float(price[pattern.type]) * pattern.bins for pattern in patterns)
    return Packing(patterns=patterns, left=packing.left, cost=cost)
