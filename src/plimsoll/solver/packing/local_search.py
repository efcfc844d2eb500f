"""Local search over the last bins of a packing: a few bins are emptied and their items packed into cheaper ones.

In a small packing the last, half-empty bins are a good part of the cost. Sets of two to four bins are packed again with
perturbed item values, and the result is kept if it costs no more. Attempts are counted and the perturbation is
arithmetic, so the result is reproducible.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plimsoll.solver.kernels import FloatMatrix, IntMatrix, IntVector, kernel
from plimsoll.solver.knapsack.lp_knapsack import TINY, ItemValues, PackingInstance, sort_falling
from plimsoll.solver.layout import Demand
from plimsoll.solver.packing.greedy_kernel import (
    OpenBins,
    build_open_bins,
    count_openable,
    holds_all,
    open_bins,
    sum_takes,
    take,
)
from plimsoll.solver.problem import Floats, Ints


class BinPool(NamedTuple):
    """Single bins that are open to change."""

    length: IntVector
    """[1]: how many there are; the arrays have space for more."""
    types: IntVector
    contents: IntMatrix


class ItemValueSets(NamedTuple):
    """What items are worth when bins are repacked."""

    values: FloatMatrix
    """[V, C]: taken in turn."""
    least: FloatMatrix
    """[1, C]: what an item costs at least."""


@dataclass(frozen=True, slots=True)
class PatternRow:
    """A filling outside of kernels."""

    type: int
    bins: int
    classes: Ints
    items: Ints


def list_pattern_rows(opened: OpenBins) -> list[PatternRow]:
    spans = zip(opened.starts, opened.starts[1 : opened.length[0] + 1], strict=False)
    return [
        PatternRow(int(opened.types[f]), int(opened.bins[f]), opened.classes[start:end], opened.items[start:end])
        for f, (start, end) in enumerate(spans)
    ]


def build_pool(
    rows: list[PatternRow], instance: PackingInstance, least: Floats, bins: int
) -> tuple[BinPool, list[PatternRow]]:
    """So many single bins, those first that cost most above what their content must; and the rows without them."""
    waste = [
        1.0 - float(np.cumsum(least[row.classes] * row.items)[-1]) / float(instance.price[row.type]) for row in rows
    ]
    pool = BinPool(
        np.zeros(1, dtype=np.int64),
        np.zeros(2 * bins, dtype=np.int64),
        np.zeros((2 * bins, instance.fit.shape[1]), dtype=np.int64),
    )
    kept = list(rows)
    free = bins
    for f in sorted(range(len(rows)), key=lambda f: (-waste[f], f)):
        row = rows[f]
        taken = min(row.bins, free)
        free -= taken
        kept[f] = PatternRow(row.type, row.bins - taken, row.classes, row.items)
        for position in range(pool.length[0], pool.length[0] + taken):
            pool.types[position] = row.type
            pool.contents[position, row.classes] = row.items
        pool.length[0] += taken
    return pool, [row for row in kept if row.bins]


def list_rows(pool: BinPool) -> list[PatternRow]:
    found = []
    for b in range(pool.length[0]):
        classes = np.flatnonzero(pool.contents[b])
        found.append(PatternRow(int(pool.types[b]), 1, classes, pool.contents[b, classes]))
    return found


@kernel()
def downsize(instance: PackingInstance, demand: Demand, opened: OpenBins) -> float:
    """Give each filling the cheapest type that holds its content; what that saves."""
    saved = 0.0
    cheapest_first = sort_falling(-instance.price)
    content = np.zeros(demand.left.size, dtype=np.int64)
    nothing = np.zeros(demand.left.size, dtype=np.int64)
    for f in range(opened.length[0]):
        bins, now = opened.bins[f], opened.types[f]
        present = opened.classes[opened.starts[f] : opened.starts[f + 1]]
        content[present] = opened.items[opened.starts[f] : opened.starts[f + 1]]
        take(instance, demand, now, -bins, nothing)
        wanted = sum_takes(instance, content, present)
        for t in cheapest_first:
            if instance.price[t] >= instance.price[now]:
                break
            if holds_all(instance, t, content, present, wanted) and count_openable(instance, demand, t) >= bins:
                saved += bins * (instance.price[now] - instance.price[t])
                now = t
                break
        take(instance, demand, now, bins, nothing)
        opened.types[f] = now
        content[present] = 0
    return saved


def improve_bins(
    instance: PackingInstance, demand: Demand, pool: BinPool, value_sets: ItemValueSets, *, tries: int, patience: int
) -> None:
    """Take sets of bins apart and repack them, so many times, unless so many in a row brought nothing."""
    seed, idle = 12345, 0
    for attempt in range(tries):
        chosen, seed = choose_bins(int(pool.length[0]), seed)
        saved = repack(instance, demand, pool, value_sets, chosen, attempt)
        idle = 0 if saved > TINY else idle + 1
        if idle == patience:
            break


@kernel()
def advance_seed(seed: int) -> int:
    return (seed * 1103515245 + 12345) % 2147483648


@kernel()
def choose_bins(count: int, seed: int) -> tuple[IntVector, int]:
    """Two to four of so many bins, ascending."""
    seed = advance_seed(seed)
    wanted = min(count, 2 + (seed >> 16) % 3)
    marks = np.zeros(count, dtype=np.bool_)
    found = 0
    while found < wanted:
        seed = advance_seed(seed)
        bin_ = (seed >> 8) % count
        if not marks[bin_]:
            marks[bin_] = True
            found += 1
    return np.nonzero(marks)[0], seed


@kernel()
def repack(
    instance: PackingInstance, demand: Demand, pool: BinPool, value_sets: ItemValueSets, chosen: IntVector, attempt: int
) -> float:
    """Repack the items of the chosen bins; keep it if it is not more expensive. Returns what that saves."""
    items = np.zeros(instance.fit.shape[1], dtype=np.int64)
    cost = 0.0
    nothing = np.zeros(items.size, dtype=np.int64)
    for b in chosen:
        items += pool.contents[b]
        cost += instance.price[pool.types[b]]
        take(instance, demand, pool.types[b], -1, nothing)
    classes = np.nonzero(items)[0]
    types = np.nonzero(instance.price <= cost)[0]
    part = restrict(instance, types, classes)
    item_values = perturb_values(value_sets, classes, attempt)
    own = Demand(items[classes], demand.available[types], demand.room.copy())
    opened, new_cost = open_bins(
        part, item_values, part.price, own, build_open_bins(16, 16 * classes.size), cost + TINY
    )
    bins = 0
    for f in range(opened.length[0]):
        bins += opened.bins[f]
    better = new_cost <= cost and not np.any(own.left > 0)
    if not better or pool.length[0] - chosen.size + bins > pool.types.size:
        for b in chosen:
            take(instance, demand, pool.types[b], 1, nothing)
        return 0.0
    replace_bins(pool, chosen, opened, types, classes)
    demand.available[types] = own.available
    demand.room[:] = own.room
    return cost - new_cost


@kernel()
def restrict(instance: PackingInstance, types: IntVector, classes: IntVector) -> PackingInstance:
    """The same shelf, with these types and classes only."""
    return PackingInstance(
        np.ascontiguousarray(instance.takes[:, classes]),
        np.ascontiguousarray(instance.sizes[:, classes]),
        instance.capacity[types],
        instance.spaces[types],
        np.ascontiguousarray(instance.fit[types][:, classes]),
        instance.keys[classes],
        instance.keyed[classes],
        instance.price[types],
        instance.use[types],
    )


@kernel()
def perturb_values(value_sets: ItemValueSets, classes: IntVector, attempt: int) -> ItemValues:
    """Values of these classes, each moved by up to a quarter; every fourth try takes them as they are."""
    values = value_sets.values[attempt % value_sets.values.shape[0]][classes]
    seed = advance_seed(attempt + 1)
    if attempt % 4 > 0:
        for i in range(values.size):
            seed = advance_seed(seed)
            values[i] *= 0.75 + 0.5 * ((seed >> 8) % 65536) / 65536.0
    values /= np.max(values)
    return ItemValues(values, sort_falling(values), value_sets.least[0][classes], values)


@kernel()
def replace_bins(pool: BinPool, chosen: IntVector, opened: OpenBins, types: IntVector, classes: IntVector) -> None:
    """Put the new bins where the chosen ones were."""
    kept = 0
    gone = 0
    for b in range(pool.length[0]):
        if gone < chosen.size and chosen[gone] == b:
            gone += 1
            continue
        if gone > 0:
            pool.types[kept] = pool.types[b]
            pool.contents[kept] = pool.contents[b]
        kept += 1
    for f in range(opened.length[0]):
        for _ in range(opened.bins[f]):
            pool.types[kept] = types[opened.types[f]]
            pool.contents[kept] = 0
            for entry in range(opened.starts[f], opened.starts[f + 1]):
                pool.contents[kept, classes[opened.classes[entry]]] = opened.items[entry]
            kept += 1
    pool.length[0] = kept
