"""Which bins to open, one kind of filling after the other: the loop of the mixed packing.

Each turn opens the type whose best content is worth most for its price, as often as the items last. Types are asked
lazily: what a type promised when more items were left it cannot exceed now, and a content it found stays good while
there are items for it. So only types are asked again whose old promise, kept as well as they kept it last time, beats
the best content at hand; and before that the promise is renewed, for the items left, at the resource prices of then.
"""

from typing import Final, NamedTuple

import numpy as np

from plimsoll.solver.kernels import FlagVector, FloatMatrix, FloatVector, IntMatrix, IntVector, kernel
from plimsoll.solver.knapsack.lp_knapsack import TINY, ItemSizes, ItemValues, best_content, ceiling, worth_of

WORTH_ASKING: Final = 1.005
"""A type is asked again when it may be better than the best at hand by this factor."""


class Demand(NamedTuple):
    """What is still to be packed, and what may still be opened. Kernels count it down."""

    left: IntVector
    """[C]."""
    available: IntVector
    """[T]."""
    room: IntVector
    """[L]."""


class OpenBins(NamedTuple):
    """Fillings in the order they were made; it is replaced by a longer one when full."""

    length: IntVector
    """[2]: fillings, and entries of all their contents."""
    types: IntVector
    bins: IntVector
    starts: IntVector
    """Where the entries of a filling begin; one more than there are fillings."""
    classes: IntVector
    items: IntVector


class Offers(NamedTuple):
    """What each type has to offer, as far as it was asked."""

    ratio: FloatVector
    """[T]: value for price of the content at hand; -1 without one."""
    promise: FloatVector
    """[T]: no content is better than this, value for price; -1 when no bin can be opened."""
    kept: FloatVector
    """[T]: which part of its promise the type kept when it was asked last."""
    fresh: FlagVector
    """[T]: asked since the last opening."""
    renewed: FlagVector
    """[T]: its promise is for the items that are left now."""
    prices: FloatMatrix
    """[T, R]: of resources, when the type was asked last; those of a type never asked promise nothing less."""
    contents: IntMatrix
    """[T, C]."""


@kernel()
def empty_ledger(fillings: int, entries: int) -> OpenBins:
    return OpenBins(
        np.zeros(2, dtype=np.int64),
        np.zeros(fillings, dtype=np.int64),
        np.zeros(fillings, dtype=np.int64),
        np.zeros(fillings + 1, dtype=np.int64),
        np.zeros(entries, dtype=np.int64),
        np.zeros(entries, dtype=np.int64),
    )


@kernel()
def noted(ledger: OpenBins, type_: int, bins: int, content: IntVector) -> OpenBins:
    """The ledger with one filling more."""
    fillings, entries = ledger.length[0], ledger.length[1]
    if fillings == ledger.types.size or entries + content.size > ledger.classes.size:
        longer = empty_ledger(2 * fillings + 16, 2 * entries + 2 * content.size)
        longer.length[:] = ledger.length
        longer.types[:fillings] = ledger.types[:fillings]
        longer.bins[:fillings] = ledger.bins[:fillings]
        longer.starts[: fillings + 1] = ledger.starts[: fillings + 1]
        longer.classes[:entries] = ledger.classes[:entries]
        longer.items[:entries] = ledger.items[:entries]
        ledger = longer
    ledger.types[fillings] = type_
    ledger.bins[fillings] = bins
    for c in np.nonzero(content)[0]:
        ledger.classes[entries] = c
        ledger.items[entries] = content[c]
        entries += 1
    ledger.starts[fillings + 1] = entries
    ledger.length[0] = fillings + 1
    ledger.length[1] = entries
    return ledger


@kernel(allocates=False)
def openable(shelf: ItemSizes, needs: Demand, type_: int) -> int:
    """How many more bins of a type may be opened."""
    bins = int(needs.available[type_])
    for limit in range(needs.room.size):
        if shelf.use[type_, limit] > 0:
            bins = min(bins, int(needs.room[limit] // shelf.use[type_, limit]))
    return max(bins, 0)


@kernel()
def take(shelf: ItemSizes, needs: Demand, type_: int, bins: int, content: IntVector) -> None:
    """Count down (or, with negative bins, up again) what filling so many bins needs."""
    needs.left[:] -= bins * content
    needs.available[type_] -= bins
    for limit in range(needs.room.size):
        needs.room[limit] -= bins * shelf.use[type_, limit]


@kernel()
def open_bins(
    shelf: ItemSizes, worth: ItemValues, price: FloatVector, needs: Demand, ledger: OpenBins, ceiling: float
) -> tuple[OpenBins, float]:
    """Fill bins until nothing is left that may be placed, or the cost is sure to reach the ceiling.

    `price` decides what is opened; the cost is in money, which is the same thing unless limits bind. On the way it
    looks, each turn, whether one bin takes all the rest, and ends that way if that is the cheapest end.
    """
    offers = no_offers(shelf.fit.shape[0], shelf.fit.shape[1], shelf.takes.shape[0])
    cost = 0.0
    end_cost, end_type, end_length = np.inf, -1, 0
    end = Demand(needs.left.copy(), needs.available.copy(), needs.room.copy())
    while cost + (1.0 - TINY) * worth_of(worth.least, needs.left) < min(ceiling, end_cost):
        refuse_closed(shelf, needs, offers)
        last = cheapest_single(shelf, needs)
        if last >= 0 and cost + shelf.price[last] < end_cost:
            end_cost, end_type, end_length = cost + shelf.price[last], last, ledger.length[0]
            set_needs(end, needs)
        chosen = best_offer(shelf, worth, price, needs, offers)
        if chosen < 0:
            break
        content = offers.contents[chosen]
        bins = openable(shelf, needs, chosen)
        for c in np.nonzero(content)[0]:
            bins = min(bins, needs.left[c] // content[c])
        ledger = noted(ledger, chosen, bins, content)
        take(shelf, needs, chosen, bins, content.copy())
        cost += bins * shelf.price[chosen]
        forget(offers, needs.left, np.nonzero(content)[0])
    if end_type >= 0 and end_cost < ceiling and (end_cost <= cost or np.any(needs.left > 0)):
        ledger.length[0] = end_length
        ledger.length[1] = ledger.starts[end_length]
        ledger = noted(ledger, end_type, 1, end.left)
        take(shelf, end, end_type, 1, end.left.copy())
        set_needs(needs, end)
        cost = end_cost
    return ledger, cost


@kernel()
def no_offers(types: int, classes: int, resources: int) -> Offers:
    """Nobody was asked yet, and everybody may have anything."""
    return Offers(
        np.full(types, -1.0),
        np.full(types, np.inf),
        np.ones(types),
        np.zeros(types, dtype=np.bool_),
        np.zeros(types, dtype=np.bool_),
        np.zeros((types, resources)),
        np.zeros((types, classes), dtype=np.int64),
    )


@kernel()
def set_needs(target: Demand, source: Demand) -> None:
    target.left[:] = source.left
    target.available[:] = source.available
    target.room[:] = source.room


@kernel(allocates=False)
def refuse_closed(shelf: ItemSizes, needs: Demand, offers: Offers) -> None:
    """Types of which no bin may be opened any more offer nothing."""
    for t in range(offers.ratio.size):
        if offers.promise[t] >= 0.0 and openable(shelf, needs, t) == 0:
            offers.ratio[t] = -1.0
            offers.promise[t] = -1.0


@kernel()
def best_offer(shelf: ItemSizes, worth: ItemValues, price: FloatVector, needs: Demand, offers: Offers) -> int:
    """The type with most value for its price, asking those that might beat it; -1 when none has anything."""
    whole = worth_of(worth.values, needs.left)
    for t in range(offers.promise.size):
        offers.promise[t] = min(offers.promise[t], whole / price[t])
    while True:
        best = int(np.argmax(offers.ratio))
        asked, hope = -1, max(offers.ratio[best], 0.0) * WORTH_ASKING
        for t in range(offers.promise.size):
            if not offers.fresh[t] and offers.promise[t] * offers.kept[t] > hope:
                asked, hope = t, offers.promise[t] * offers.kept[t]
        if asked < 0:
            return best if offers.ratio[best] > 0.0 else -1
        if not offers.renewed[asked]:
            offers.renewed[asked] = True
            bound = ceiling(shelf, worth, asked, needs.left, offers.prices[asked])
            offers.promise[asked] = min(offers.promise[asked], bound / price[asked])
            continue
        _, bound = best_content(shelf, worth, asked, needs.left, offers.contents[asked], offers.prices[asked])
        value = worth_of(worth.judged, offers.contents[asked])
        offers.ratio[asked] = value / price[asked]
        offers.promise[asked] = min(offers.promise[asked], bound / price[asked])
        offers.kept[asked] = min(value / max(bound, TINY * TINY), 1.0)
        offers.fresh[asked] = True


@kernel(allocates=False)
def forget(offers: Offers, left: IntVector, changed: IntVector) -> None:
    """After an opening: contents there are no items for any more are void, and every promise is old."""
    offers.fresh[:] = False
    offers.renewed[:] = False
    for c in changed:
        for t in range(offers.ratio.size):
            if offers.contents[t, c] > left[c]:
                offers.ratio[t] = -1.0


@kernel()
def cheapest_single(shelf: ItemSizes, needs: Demand) -> int:
    """The cheapest type of which one bin takes all that is left; -1 when there is none, or nothing left."""
    present = np.nonzero(needs.left)[0]
    best = -1
    if present.size == 0:
        return best
    wanted = together(shelf, needs.left, present)
    for t in range(shelf.price.size):
        cheaper = best < 0 or shelf.price[t] < shelf.price[best]
        if cheaper and takes_all(shelf, t, needs.left, present, wanted) and openable(shelf, needs, t) > 0:
            best = t
    return best


@kernel()
def together(shelf: ItemSizes, items: IntVector, present: IntVector) -> IntVector:
    """[R]: what all these items take."""
    wanted = np.zeros(shelf.takes.shape[0], dtype=np.int64)
    for r in range(wanted.size):
        for c in present:
            wanted[r] += items[c] * shelf.takes[r, c]
    return wanted


@kernel(allocates=False)
def takes_all(shelf: ItemSizes, type_: int, items: IntVector, present: IntVector, wanted: IntVector) -> bool:
    """Whether one bin of the type takes all these items, which together take what is wanted."""
    for r in range(wanted.size):
        if wanted[r] > shelf.capacity[type_, r]:
            return False
    for c in present:
        if items[c] > shelf.fit[type_, c]:
            return False
    for k in range(shelf.keys.shape[1]):
        owners = 0
        for c in present:
            if shelf.keys[c, k]:
                owners += 1
        if owners > 1:
            return False
    return True
