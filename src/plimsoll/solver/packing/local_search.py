"""The last percents of a packing: open a few bins again and fill their items into cheaper ones.

The bulk of a large packing needs none of this. In a small one the last bins, half empty, are a good part of the cost:
there, sets of two to four bins are taken apart and packed anew by values that are shaken a little, many times over,
and kept when they came out no dearer. Tries are counted and the shaking is arithmetic: the same packing comes out each
time.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plimsoll.solver.kernels import FloatMatrix, IntMatrix, IntVector, kernel
from plimsoll.solver.knapsack.lp_knapsack import TINY, ItemSizes, ItemValues, falling
from plimsoll.solver.packing.greedy_kernel import (
    Demand,
    OpenBins,
    empty_ledger,
    open_bins,
    openable,
    take,
    takes_all,
    together,
)
from plimsoll.solver.problem import Floats, Ints


class Pool(NamedTuple):
    """Single bins that are open to change."""

    length: IntVector
    """[1]: how many there are; the arrays have space for more."""
    types: IntVector
    contents: IntMatrix


class Neighbourhood(NamedTuple):
    """What items are worth when bins are packed anew."""

    values: FloatMatrix
    """[V, C]: taken in turn."""
    least: FloatMatrix
    """[1, C]: what an item costs at least."""


@dataclass(frozen=True, slots=True)
class Row:
    """A filling outside of kernels."""

    type: int
    bins: int
    classes: Ints
    items: Ints


def rows_of(ledger: OpenBins) -> list[Row]:
    spans = zip(ledger.starts, ledger.starts[1 : ledger.length[0] + 1], strict=False)
    return [
        Row(int(ledger.types[f]), int(ledger.bins[f]), ledger.classes[start:end], ledger.items[start:end])
        for f, (start, end) in enumerate(spans)
    ]


def pool_of(rows: list[Row], shelf: ItemSizes, least: Floats, bins: int) -> tuple[Pool, list[Row]]:
    """So many single bins, those first that cost most above what their content must; and the rows without them."""
    waste = [1.0 - float(np.cumsum(least[row.classes] * row.items)[-1]) / float(shelf.price[row.type]) for row in rows]
    pool = Pool(
        np.zeros(1, dtype=np.int64),
        np.zeros(2 * bins, dtype=np.int64),
        np.zeros((2 * bins, shelf.fit.shape[1]), dtype=np.int64),
    )
    kept = list(rows)
    free = bins
    for f in sorted(range(len(rows)), key=lambda f: (-waste[f], f)):
        row = rows[f]
        taken = min(row.bins, free)
        free -= taken
        kept[f] = Row(row.type, row.bins - taken, row.classes, row.items)
        for position in range(pool.length[0], pool.length[0] + taken):
            pool.types[position] = row.type
            pool.contents[position, row.classes] = row.items
        pool.length[0] += taken
    return pool, [row for row in kept if row.bins]


def pool_rows(pool: Pool) -> list[Row]:
    found = []
    for b in range(pool.length[0]):
        classes = np.flatnonzero(pool.contents[b])
        found.append(Row(int(pool.types[b]), 1, classes, pool.contents[b, classes]))
    return found


@kernel()
def downsize(shelf: ItemSizes, needs: Demand, ledger: OpenBins) -> float:
    """Give each filling the cheapest type that holds its content; what that saves."""
    saved = 0.0
    cheapest_first = falling(-shelf.price)
    content = np.zeros(needs.left.size, dtype=np.int64)
    nothing = np.zeros(needs.left.size, dtype=np.int64)
    for f in range(ledger.length[0]):
        bins, now = ledger.bins[f], ledger.types[f]
        present = ledger.classes[ledger.starts[f] : ledger.starts[f + 1]]
        content[present] = ledger.items[ledger.starts[f] : ledger.starts[f + 1]]
        take(shelf, needs, now, -bins, nothing)
        wanted = together(shelf, content, present)
        for t in cheapest_first:
            if shelf.price[t] >= shelf.price[now]:
                break
            if takes_all(shelf, t, content, present, wanted) and openable(shelf, needs, t) >= bins:
                saved += bins * (shelf.price[now] - shelf.price[t])
                now = t
                break
        take(shelf, needs, now, bins, nothing)
        ledger.types[f] = now
        content[present] = 0
    return saved


def shake(shelf: ItemSizes, needs: Demand, pool: Pool, shaking: Neighbourhood, *, tries: int, patience: int) -> None:
    """Take sets of bins apart and pack them anew, so many times, unless so many in a row brought nothing."""
    seed, idle = 12345, 0
    for attempt in range(tries):
        chosen, seed = some_bins(int(pool.length[0]), seed)
        saved = repack(shelf, needs, pool, shaking, chosen, attempt)
        idle = 0 if saved > TINY else idle + 1
        if idle == patience:
            break


@kernel()
def next_seed(seed: int) -> int:
    return (seed * 1103515245 + 12345) % 2147483648


@kernel()
def some_bins(count: int, seed: int) -> tuple[IntVector, int]:
    """Two to four of so many bins, ascending."""
    seed = next_seed(seed)
    wanted = min(count, 2 + (seed >> 16) % 3)
    marks = np.zeros(count, dtype=np.bool_)
    found = 0
    while found < wanted:
        seed = next_seed(seed)
        bin_ = (seed >> 8) % count
        if not marks[bin_]:
            marks[bin_] = True
            found += 1
    return np.nonzero(marks)[0], seed


@kernel()
def repack(
    shelf: ItemSizes, needs: Demand, pool: Pool, shaking: Neighbourhood, chosen: IntVector, attempt: int
) -> float:
    """Pack the items of the chosen bins anew; keep it if it is no dearer. What that saves."""
    items = np.zeros(shelf.fit.shape[1], dtype=np.int64)
    cost = 0.0
    nothing = np.zeros(items.size, dtype=np.int64)
    for b in chosen:
        items += pool.contents[b]
        cost += shelf.price[pool.types[b]]
        take(shelf, needs, pool.types[b], -1, nothing)
    classes = np.nonzero(items)[0]
    types = np.nonzero(shelf.price <= cost)[0]
    part = part_of(shelf, types, classes)
    worth = shaken(shaking, classes, attempt)
    own = Demand(items[classes], needs.available[types], needs.room.copy())
    ledger, anew = open_bins(part, worth, part.price, own, empty_ledger(16, 16 * classes.size), cost + TINY)
    bins = 0
    for f in range(ledger.length[0]):
        bins += ledger.bins[f]
    better = anew <= cost and not np.any(own.left > 0)
    if not better or pool.length[0] - chosen.size + bins > pool.types.size:
        for b in chosen:
            take(shelf, needs, pool.types[b], 1, nothing)
        return 0.0
    replace(pool, chosen, ledger, types, classes)
    needs.available[types] = own.available
    needs.room[:] = own.room
    return cost - anew


@kernel()
def part_of(shelf: ItemSizes, types: IntVector, classes: IntVector) -> ItemSizes:
    """The same shelf, with these types and classes only."""
    return ItemSizes(
        np.ascontiguousarray(shelf.takes[:, classes]),
        np.ascontiguousarray(shelf.sizes[:, classes]),
        shelf.capacity[types],
        shelf.spaces[types],
        np.ascontiguousarray(shelf.fit[types][:, classes]),
        shelf.keys[classes],
        shelf.keyed[classes],
        shelf.price[types],
        shelf.use[types],
    )


@kernel()
def shaken(shaking: Neighbourhood, classes: IntVector, attempt: int) -> ItemValues:
    """Values of these classes, each moved by up to a quarter; every fourth try takes them as they are."""
    values = shaking.values[attempt % shaking.values.shape[0]][classes]
    seed = next_seed(attempt + 1)
    if attempt % 4 > 0:
        for i in range(values.size):
            seed = next_seed(seed)
            values[i] *= 0.75 + 0.5 * ((seed >> 8) % 65536) / 65536.0
    values /= np.max(values)
    return ItemValues(values, falling(values), shaking.least[0][classes], values)


@kernel()
def replace(pool: Pool, chosen: IntVector, ledger: OpenBins, types: IntVector, classes: IntVector) -> None:
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
    for f in range(ledger.length[0]):
        for _ in range(ledger.bins[f]):
            pool.types[kept] = types[ledger.types[f]]
            pool.contents[kept] = 0
            for entry in range(ledger.starts[f], ledger.starts[f + 1]):
                pool.contents[kept, classes[ledger.classes[entry]]] = ledger.items[entry]
            kept += 1
    pool.length[0] = kept
