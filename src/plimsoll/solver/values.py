"""What an item of each class is worth: the yardstick by which the content of a bin is judged.

Three of them, because none wins everywhere: the cost of an item in bins of its own kind alone; what it takes, at the
resources' prices (the dual of the smallest linear program there is: cover the volume); and the geometric mean of both.
"""

import math

import numpy as np

from plimsoll.solver.knapsacks import TINY, Shelf, Worth
from plimsoll.solver.problems import Floats, Ints


def value_vectors(shelf: Shelf, least: Floats) -> list[Floats]:
    """Geometric mean, cost alone, resource prices."""
    alone = cost_alone(shelf)
    by_resource = np.maximum(least, 1e-6 * alone)
    return [np.sqrt(alone * by_resource), alone, by_resource]


def cost_alone(shelf: Shelf) -> Floats:
    """[C]: the least an item costs in a bin that holds its own class only."""
    with np.errstate(divide="ignore"):
        each = shelf.price[:, None] / shelf.fit
    return np.asarray(each.min(axis=0), dtype=np.float64)


def least_cost(shelf: Shelf, counts: Ints) -> Floats:
    """[C]: what an item costs at least, as all of them together cost: what it takes, at the resources' prices."""
    demand = np.array([math.fsum(row * counts) for row in shelf.sizes])
    prices = resource_prices(demand, shelf.spaces, shelf.price)
    least = np.zeros(counts.size)
    for price, row in zip(prices, shelf.sizes, strict=True):
        least += price * row
    return least


def worth_from(values: Floats, least: Floats | None = None) -> Worth:
    """Scaled, so that tolerances mean the same everywhere; nothing is worth nothing, or it would stay behind."""
    least = np.zeros(values.size) if least is None else least
    scaled = np.maximum(values / max(float(values.max(initial=0.0)), 1e-300), 1e-7)
    return Worth(scaled, np.argsort(-scaled, kind="stable"), least)


def resource_prices(demand: Floats, spaces: Floats, price: Floats) -> Floats:
    """Prices that make the demand dearest while no bin's space is worth more than the bin: simplex, a row a type."""
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
