"""Item values per class, by which the content of a bin is judged.

There are three, because none wins everywhere: the cost of an item in bins of its own class alone; what it takes, at
resource prices (the dual of covering the volume); and the geometric mean of both.

Where bins take only a few items of a class, other values come first: these classes are placed before the rest, or the
last bins could not be filled. Which type to open is judged without that, or it would always be a small one.
"""

import math
from typing import Final

import numpy as np

from plimsoll.solver.knapsack.lp_knapsack import TINY, ItemValues, PackingInstance
from plimsoll.solver.problem import UNBOUNDED, Floats, Ints

CAPPED_FIRST: Final = ((0.25, 1.2), (0.25, 1.1), (0.5, 1.2))
"""Share of the cost alone in a mean of it and resource prices; factor for classes of which bins take only so many."""

CAPPED_PAIRS: Final = 20_000
"""Up to so many classes times types these are tried: with more types there is one for every mixture."""


def compute_value_vectors(instance: PackingInstance, least: Floats) -> list[Floats]:
    """The item values: geometric mean, cost alone, resource prices."""
    alone = compute_cost_alone(instance)
    by_resource = np.maximum(least, 1e-6 * alone)
    return [np.sqrt(alone * by_resource), alone, by_resource]


def build_capped_first_values(instance: PackingInstance, counts: Ints, least: Floats) -> list[ItemValues]:
    """Item values that put capped classes first; empty if no class is capped."""
    if instance.fit.size > CAPPED_PAIRS:
        return []
    room = _count_room_alone(instance)
    capped = (instance.fit < np.minimum(room, counts)).any(axis=0)
    if not capped.any():
        return []
    with np.errstate(divide="ignore"):
        alone = (instance.price[:, None] / room).min(axis=0)
    found = []
    for share, factor in CAPPED_FIRST:
        values = np.maximum(least, 1e-6 * alone) ** (1 - share) * alone**share
        found.append(build_item_values(values * np.where(capped, factor, 1.0), least, judged=values))
    return found


def _count_room_alone(instance: PackingInstance) -> Ints:
    """[T, C]: the number of items of a class that fit into an empty bin by resources alone; 0 if not allowed."""
    room = np.where(instance.fit > 0, UNBOUNDED, 0)
    for takes, capacity in zip(instance.takes, instance.capacity.T, strict=True):
        taking = np.flatnonzero(takes > 0)
        room[:, taking] = np.minimum(room[:, taking], capacity[:, None] // takes[taking])
    return room


def compute_cost_alone(instance: PackingInstance) -> Floats:
    """[C]: the least an item costs in a bin that holds its own class only."""
    with np.errstate(divide="ignore"):
        item_costs = instance.price[:, None] / instance.fit
    return np.asarray(item_costs.min(axis=0), dtype=np.float64)


def compute_least_cost(instance: PackingInstance, counts: Ints) -> Floats:
    """[C]: the least cost of an item as a part of all: its request at the resource prices."""
    demand = np.array([math.fsum(row * counts) for row in instance.sizes])
    prices = solve_resource_prices(demand, instance.spaces, instance.price)
    least = np.zeros(counts.size)
    for price, row in zip(prices, instance.sizes, strict=True):
        least += price * row
    return least


def build_item_values(values: Floats, least: Floats | None = None, *, judged: Floats | None = None) -> ItemValues:
    """Item values scaled to at most 1, so that tolerances are comparable; no value is 0, or items would be left."""
    unit = max(float(values.max(initial=0.0)), 1e-300)
    least = np.zeros(values.size) if least is None else least
    scaled = np.maximum(values / unit, 1e-7)
    judged_values = scaled if judged is None else np.minimum(judged / unit, scaled)
    return ItemValues(scaled, np.argsort(-scaled, kind="stable"), least, judged_values)


def solve_resource_prices(demand: Floats, spaces: Floats, price: Floats) -> Floats:
    """Resource prices that maximize the value of the demand while no bin is worth more than its price, by simplex."""
    rows, columns = spaces.shape
    table = np.zeros((rows + 1, columns + 1))
    table[:rows, :columns] = spaces
    table[:rows, columns] = price
    table[rows, :columns] = -demand
    basic = np.arange(rows) + columns
    outside = np.arange(columns)
    for _ in range(20 * columns + 20):
        column = int(np.argmin(table[rows, :columns]))
        pivots = table[:rows, column]
        if table[rows, column] >= -TINY or not (pivots > TINY).any():
            break
        row = int(np.argmin(np.where(pivots > TINY, table[:rows, columns] / np.maximum(pivots, TINY), np.inf)))
        _exchange(table, row, column)
        basic[row], outside[column] = outside[column], basic[row]
    prices = np.zeros(columns)
    ours = basic < columns
    prices[basic[ours]] = np.maximum(table[:rows, columns][ours], 0.0)
    return prices


def _exchange(table: Floats, row: int, column: int) -> None:
    """Swap the variables of a row and a column in a condensed simplex table."""
    pivot = table[row, column]
    before = table[:, column].copy()
    table[row] /= pivot
    line = table[row].copy()
    table -= before[:, None] * line
    table[:, column] = -before / pivot
    table[row] = line
    table[row, column] = 1.0 / pivot
