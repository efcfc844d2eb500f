"""Which bins to open, one pattern after the other: the loop of the mixed packing.

Each step opens the type whose best content has the highest value per price, as often as items last. Types are evaluated
lazily: the upper bound of a type computed with more items left still holds, and a content it found stays good while
there are items for it. A type is evaluated again only if its old bound, scaled by how tight that bound was last time,
beats the best content at hand; before that, the bound is computed again for the items left.
"""

from typing import Final, NamedTuple

import numpy as np

from plimsoll.solver.kernels import FlagVector, FloatMatrix, FloatVector, IntMatrix, IntVector, kernel
from plimsoll.solver.knapsack.lp_knapsack import (
    TINY,
    ItemValues,
    PackingInstance,
    compute_ceiling,
    find_best_content,
    sum_values,
)
from plimsoll.solver.layout import Demand

WORTH_EVALUATING: Final = 1.005
"""A type is asked again when it may be better than the best at hand by this factor."""


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


class TypeCandidates(NamedTuple):
    """The best content found for each type so far."""

    ratio: FloatVector
    """[T]: value for price of the content at hand; -1 without one."""
    upper_bound: FloatVector
    """[T]: no content is better than this, value for price; -1 when no bin can be opened."""
    tightness: FloatVector
    """[T]: the fraction of its estimate that the type reached when it was last solved."""
    evaluated: FlagVector
    """[T]: asked since the last opening."""
    rebounded: FlagVector
    """[T]: whether its estimate is for the items that are left now."""
    prices: FloatMatrix
    """[T, R]: of resources, when the type was asked last; those of a type never asked promise nothing less."""
    contents: IntMatrix
    """[T, C]."""


@kernel()
def build_open_bins(fillings: int, entries: int) -> OpenBins:
    return OpenBins(
        np.zeros(2, dtype=np.int64),
        np.zeros(fillings, dtype=np.int64),
        np.zeros(fillings, dtype=np.int64),
        np.zeros(fillings + 1, dtype=np.int64),
        np.zeros(entries, dtype=np.int64),
        np.zeros(entries, dtype=np.int64),
    )


@kernel()
def add_pattern(opened: OpenBins, type_: int, bins: int, content: IntVector) -> OpenBins:
    """The open bins with one more filling."""
    fillings, entries = opened.length[0], opened.length[1]
    if fillings == opened.types.size or entries + content.size > opened.classes.size:
        longer = build_open_bins(2 * fillings + 16, 2 * entries + 2 * content.size)
        longer.length[:] = opened.length
        longer.types[:fillings] = opened.types[:fillings]
        longer.bins[:fillings] = opened.bins[:fillings]
        longer.starts[: fillings + 1] = opened.starts[: fillings + 1]
        longer.classes[:entries] = opened.classes[:entries]
        longer.items[:entries] = opened.items[:entries]
        opened = longer
    opened.types[fillings] = type_
    opened.bins[fillings] = bins
    for c in np.nonzero(content)[0]:
        opened.classes[entries] = c
        opened.items[entries] = content[c]
        entries += 1
    opened.starts[fillings + 1] = entries
    opened.length[0] = fillings + 1
    opened.length[1] = entries
    return opened


@kernel(allocates=False)
def count_openable(instance: PackingInstance, demand: Demand, type_: int) -> int:
    """How many more bins of a type may be opened."""
    bins = int(demand.available[type_])
    for limit in range(demand.room.size):
        if instance.use[type_, limit] > 0:
            bins = min(bins, int(demand.room[limit] // instance.use[type_, limit]))
    return max(bins, 0)


@kernel()
def take(instance: PackingInstance, demand: Demand, type_: int, bins: int, content: IntVector) -> None:
    """Count down (or, with negative bins, up again) what filling so many bins needs."""
    demand.left[:] -= bins * content
    demand.available[type_] -= bins
    for limit in range(demand.room.size):
        demand.room[limit] -= bins * instance.use[type_, limit]


@kernel()
def open_bins(
    instance: PackingInstance,
    item_values: ItemValues,
    price: FloatVector,
    demand: Demand,
    opened: OpenBins,
    ceiling: float,
) -> tuple[OpenBins, float]:
    """Fill bins until nothing is left that may be placed, or the cost is sure to reach the ceiling.

    `price` decides what is opened; the cost is in money, which is the same thing unless limits bind. On the way it
    checks, in each round, whether one bin takes all the rest, and ends that way if that is the cheapest end.
    """
    candidates = build_candidates(instance.fit.shape[0], instance.fit.shape[1], instance.takes.shape[0])
    cost = 0.0
    end_cost, end_type, end_length = np.inf, -1, 0
    end = Demand(demand.left.copy(), demand.available.copy(), demand.room.copy())
    while cost + (1.0 - TINY) * sum_values(item_values.least, demand.left) < min(ceiling, end_cost):
        drop_closed(instance, demand, candidates)
        last = find_cheapest_single(instance, demand)
        if last >= 0 and cost + instance.price[last] < end_cost:
            end_cost, end_type, end_length = cost + instance.price[last], last, opened.length[0]
            copy_demand(end, demand)
        chosen = find_best_candidate(instance, item_values, price, demand, candidates)
        if chosen < 0:
            break
        content = candidates.contents[chosen]
        bins = count_openable(instance, demand, chosen)
        for c in np.nonzero(content)[0]:
            bins = min(bins, demand.left[c] // content[c])
        opened = add_pattern(opened, chosen, bins, content)
        take(instance, demand, chosen, bins, content.copy())
        cost += bins * instance.price[chosen]
        invalidate(candidates, demand.left, np.nonzero(content)[0])
    if end_type >= 0 and end_cost < ceiling and (end_cost <= cost or np.any(demand.left > 0)):
        opened.length[0] = end_length
        opened.length[1] = opened.starts[end_length]
        opened = add_pattern(opened, end_type, 1, end.left)
        take(instance, end, end_type, 1, end.left.copy())
        copy_demand(demand, end)
        cost = end_cost
    return opened, cost


@kernel()
def build_candidates(types: int, classes: int, resources: int) -> TypeCandidates:
    """The initial state: no type was solved yet."""
    return TypeCandidates(
        np.full(types, -1.0),
        np.full(types, np.inf),
        np.ones(types),
        np.zeros(types, dtype=np.bool_),
        np.zeros(types, dtype=np.bool_),
        np.zeros((types, resources)),
        np.zeros((types, classes), dtype=np.int64),
    )


@kernel()
def copy_demand(target: Demand, source: Demand) -> None:
    target.left[:] = source.left
    target.available[:] = source.available
    target.room[:] = source.room


@kernel(allocates=False)
def drop_closed(instance: PackingInstance, demand: Demand, candidates: TypeCandidates) -> None:
    """Types of which no bin may be opened any more have no content."""
    for t in range(candidates.ratio.size):
        if candidates.upper_bound[t] >= 0.0 and count_openable(instance, demand, t) == 0:
            candidates.ratio[t] = -1.0
            candidates.upper_bound[t] = -1.0


@kernel()
def find_best_candidate(
    instance: PackingInstance, item_values: ItemValues, price: FloatVector, demand: Demand, candidates: TypeCandidates
) -> int:
    """The type with most value for its price, asking those that might beat it; -1 when none has anything."""
    whole = sum_values(item_values.values, demand.left)
    for t in range(candidates.upper_bound.size):
        candidates.upper_bound[t] = min(candidates.upper_bound[t], whole / price[t])
    while True:
        best = int(np.argmax(candidates.ratio))
        chosen_type, best_bound = -1, max(candidates.ratio[best], 0.0) * WORTH_EVALUATING
        for t in range(candidates.upper_bound.size):
            if not candidates.evaluated[t] and candidates.upper_bound[t] * candidates.tightness[t] > best_bound:
                chosen_type, best_bound = t, candidates.upper_bound[t] * candidates.tightness[t]
        if chosen_type < 0:
            return best if candidates.ratio[best] > 0.0 else -1
        if not candidates.rebounded[chosen_type]:
            candidates.rebounded[chosen_type] = True
            bound = compute_ceiling(instance, item_values, chosen_type, demand.left, candidates.prices[chosen_type])
            candidates.upper_bound[chosen_type] = min(candidates.upper_bound[chosen_type], bound / price[chosen_type])
            continue
        _, bound = find_best_content(
            instance,
            item_values,
            chosen_type,
            demand.left,
            candidates.contents[chosen_type],
            candidates.prices[chosen_type],
        )
        value = sum_values(item_values.judged, candidates.contents[chosen_type])
        candidates.ratio[chosen_type] = value / price[chosen_type]
        candidates.upper_bound[chosen_type] = min(candidates.upper_bound[chosen_type], bound / price[chosen_type])
        candidates.tightness[chosen_type] = min(value / max(bound, TINY * TINY), 1.0)
        candidates.evaluated[chosen_type] = True


@kernel(allocates=False)
def invalidate(candidates: TypeCandidates, left: IntVector, changed: IntVector) -> None:
    """After an opening: contents without enough items left are void, and every estimate is outdated."""
    candidates.evaluated[:] = False
    candidates.rebounded[:] = False
    for c in changed:
        for t in range(candidates.ratio.size):
            if candidates.contents[t, c] > left[c]:
                candidates.ratio[t] = -1.0


@kernel()
def find_cheapest_single(instance: PackingInstance, demand: Demand) -> int:
    """The cheapest type of which one bin takes all that is left; -1 when there is none, or nothing left."""
    present = np.nonzero(demand.left)[0]
    best = -1
    if present.size == 0:
        return best
    wanted = sum_takes(instance, demand.left, present)
    for t in range(instance.price.size):
        cheaper = best < 0 or instance.price[t] < instance.price[best]
        if cheaper and holds_all(instance, t, demand.left, present, wanted) and count_openable(instance, demand, t) > 0:
            best = t
    return best


@kernel()
def sum_takes(instance: PackingInstance, items: IntVector, present: IntVector) -> IntVector:
    """[R]: what all these items take."""
    wanted = np.zeros(instance.takes.shape[0], dtype=np.int64)
    for r in range(wanted.size):
        for c in present:
            wanted[r] += items[c] * instance.takes[r, c]
    return wanted


@kernel(allocates=False)
def holds_all(instance: PackingInstance, type_: int, items: IntVector, present: IntVector, wanted: IntVector) -> bool:
    """Whether one bin of the type takes all these items, which together take what is wanted."""
    for r in range(wanted.size):
        if wanted[r] > instance.capacity[type_, r]:
            return False
    for c in present:
        if items[c] > instance.fit[type_, c]:
            return False
    for k in range(instance.keys.shape[1]):
        owners = 0
        for c in present:
            if instance.keys[c, k]:
                owners += 1
        if owners > 1:
            return False
    return True
