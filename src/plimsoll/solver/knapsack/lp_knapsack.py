"""The best content of one bin: a knapsack with a few resources, solved as a linear program and rounded.

Only integers decide what fits: the linear program runs on scaled floats and proposes.

A greedy by density is not an alternative: it exhausts one of two complementary classes first
(docs/design/performance.md 7).
"""

from typing import Final, NamedTuple

import numpy as np

from plimsoll.solver.kernels import (
    FlagMatrix,
    FlagVector,
    FloatMatrix,
    FloatVector,
    IntMatrix,
    IntVector,
    kernel,
)

TINY: Final = 1e-9
"""Scaled amounts, prices and values below this count as 0."""


class PackingInstance(NamedTuple):
    """The fixed side of a packing, laid out for kernels: C classes, T types, R resources, K keys, L limits."""

    takes: IntMatrix
    """[R, C]: the request of one item."""
    sizes: FloatMatrix
    """[R, C]: the same in units of the largest bin."""
    capacity: IntMatrix
    """[T, R]."""
    spaces: FloatMatrix
    """[T, R]: the same in units of the largest bin."""
    fit: IntMatrix
    """[T, C]: the largest number of items of a class in one bin of a type, by all rules about one class."""
    keys: FlagMatrix
    """[C, K]: classes that share a key exclude each other."""
    keyed: FlagVector
    """[C]: whether a class has a key."""
    price: FloatVector
    """[T]: above 0."""
    use: IntMatrix
    """[T, L]."""


class ItemValues(NamedTuple):
    """The value of an item of each class in a pattern."""

    values: FloatVector
    """[C]: above 0, at most 1."""
    order: IntVector
    """[C]: classes by falling value."""
    least: FloatVector
    """[C]: the least cost of an item in any bin."""
    judged: FloatVector
    """[C]: the values that compare contents of different types; at most `values`."""


class Basis(NamedTuple):
    """The state of a simplex: R basic variables; variable c < C is a class, C + r the slack of row r."""

    basic: IntVector
    """[R]: which variable a row stands for."""
    level: FloatVector
    """[R]: its amount."""
    inverse: FloatMatrix
    """[R, R]."""
    side: FloatVector
    """[C]: +1 at 0, -1 at its upper bound, 0 if basic or not available."""


@kernel()
def find_best_content(
    instance: PackingInstance,
    item_values: ItemValues,
    type_: int,
    left: IntVector,
    content: IntVector,
    prices: FloatVector,
) -> tuple[float, float]:
    """Write the best content found for one bin; its value, and a value no content of such a bin exceeds.

    `prices` become what a unit of each resource is worth in it: with them `compute_ceiling` gives a bound for fewer
    items.
    """
    prices[:] = 0.0
    most = np.minimum(left, instance.fit[type_])
    if instance.keys.shape[1] > 0:
        keep_one_of_a_key(instance, item_values.order, most)
    rows = instance.takes.shape[0]
    free = instance.capacity[type_].copy()
    whole = True
    for r in range(rows):
        wanted = 0
        for c in range(most.size):
            wanted += most[c] * instance.takes[r, c]
        if wanted > free[r]:
            whole = False
            break
    if whole:
        content[:] = most
        value = sum_values(item_values.values, content)
        return value, value
    amounts = np.zeros(most.size)
    bound = solve_relaxation(instance, item_values, instance.spaces[type_], most, amounts, prices)
    for c in range(most.size):
        content[c] = int(amounts[c] + TINY)
    keep_within(instance, item_values.order, content, free)
    other = content.copy()
    spare = free.copy()
    fill(
        instance, item_values.order[find_fitting(instance, most, content, free)[item_values.order]], most, content, free
    )
    fill(
        instance,
        sort_by_density(instance, item_values, prices, np.nonzero(find_fitting(instance, most, other, spare))[0]),
        most,
        other,
        spare,
    )
    value, second = sum_values(item_values.values, content), sum_values(item_values.values, other)
    if second > value:
        content[:] = other
        value = second
    return value, max(bound, value)


@kernel(allocates=False)
def sum_values(values: FloatVector, content: IntVector) -> float:
    total = 0.0
    for c in range(content.size):
        if content[c] > 0:
            total += values[c] * content[c]
    return total


@kernel()
def keep_one_of_a_key(instance: PackingInstance, order: IntVector, most: IntVector) -> None:
    """Keep the most valuable of the classes that exclude each other; the others become unavailable."""
    taken = np.zeros(instance.keys.shape[1], dtype=np.bool_)
    for c in order:
        if most[c] == 0 or not instance.keyed[c]:
            continue
        if np.any(taken & instance.keys[c]):
            most[c] = 0
        else:
            taken |= instance.keys[c]


@kernel()
def keep_within(instance: PackingInstance, order: IntVector, content: IntVector, free: IntVector) -> None:
    """Take the content off `free`; if rounding took too much, the least valuable items are removed."""
    rows = instance.takes.shape[0]
    for c in range(content.size):
        if content[c] > 0:
            for r in range(rows):
                free[r] -= content[c] * instance.takes[r, c]
    if not np.any(free < 0):
        return
    for position in range(order.size - 1, -1, -1):
        c = order[position]
        while content[c] > 0 and helps(instance, c, free):
            content[c] -= 1
            for r in range(rows):
                free[r] += instance.takes[r, c]


@kernel()
def helps(instance: PackingInstance, class_: int, free: IntVector) -> bool:
    """Whether an item of the class uses a resource that is exceeded."""
    return bool(np.any((free < 0) & (instance.takes[:, class_] > 0)))


@kernel()
def find_fitting(instance: PackingInstance, most: IntVector, content: IntVector, free: IntVector) -> FlagVector:
    """Classes of which one more item fits."""
    fits = content < most
    for r in range(free.size):
        fits &= instance.takes[r] <= free[r]
    return fits


@kernel(allocates=False)
def fill(instance: PackingInstance, order: IntVector, most: IntVector, content: IntVector, free: IntVector) -> None:
    """Add items that fit into the gap, class by class in this order."""
    rows = free.size
    for c in order:
        more = most[c] - content[c]
        for r in range(rows):
            if instance.takes[r, c] > 0:
                more = min(more, free[r] // instance.takes[r, c])
        if more > 0:
            content[c] += more
            for r in range(rows):
                free[r] -= more * instance.takes[r, c]


@kernel()
def sort_by_density(
    instance: PackingInstance, item_values: ItemValues, prices: FloatVector, classes: IntVector
) -> IntVector:
    """These classes by falling value per request, resources weighted by their prices in this bin."""
    density = np.zeros(classes.size)
    for i in range(classes.size):
        weight = TINY
        for r in range(prices.size):
            weight += prices[r] * instance.sizes[r, classes[i]]
        density[i] = item_values.values[classes[i]] / weight
    ordered: IntVector = classes[sort_falling(density)]
    return ordered


@kernel()
def sort_falling(values: FloatVector) -> IntVector:
    """The indices of the values from the largest to the smallest; ties keep their order."""
    return np.argsort(-values, kind="mergesort")


@kernel(allocates=False)
def compute_ceiling(
    instance: PackingInstance, item_values: ItemValues, type_: int, left: IntVector, prices: FloatVector
) -> float:
    """An upper bound of the value of any content, for any resource prices: the space plus the surplus of items."""
    bound = 0.0
    for r in range(prices.size):
        bound += prices[r] * instance.spaces[type_, r]
    for c in range(left.size):
        if left[c] > 0:
            surplus = item_values.values[c]
            for r in range(prices.size):
                surplus -= prices[r] * instance.sizes[r, c]
            if surplus > 0.0:
                bound += surplus * min(left[c], instance.fit[type_, c])
    return bound


@kernel()
def solve_relaxation(
    instance: PackingInstance,
    item_values: ItemValues,
    space: FloatVector,
    most: IntVector,
    amounts: FloatVector,
    prices: FloatVector,
) -> float:
    """The largest fractional value, an upper bound, by bounded simplex. Writes amounts and resource prices."""
    rows, classes = space.size, most.size
    basis = Basis(np.arange(rows) + classes, space.copy(), np.zeros((rows, rows)), np.zeros(classes))
    for r in range(rows):
        basis.inverse[r, r] = 1.0
    for c in range(classes):
        if most[c] > 0:
            basis.side[c] = 1.0
    surplus = np.zeros(classes)
    for _ in range(4 * (classes + rows)):
        price_resources(basis, item_values.values, prices)
        compute_surplus(item_values.values, instance.sizes, prices, surplus)
        entering = choose_entering_variable(surplus, basis.side, prices)
        if entering < 0:
            break
        move_entering(basis, most, entering, compute_column(instance.sizes, basis.inverse, entering))
    for c in range(classes):
        amounts[c] = most[c] if basis.side[c] < 0.0 else 0.0
    bound = 0.0
    for r in range(rows):
        if basis.basic[r] < classes:
            amounts[basis.basic[r]] = min(max(basis.level[r], 0.0), most[basis.basic[r]])
        prices[r] = max(prices[r], 0.0)
        bound += prices[r] * space[r]
    compute_surplus(item_values.values, instance.sizes, prices, surplus)
    for c in range(classes):
        if surplus[c] > 0.0:
            bound += surplus[c] * most[c]
    return bound


@kernel()
def compute_surplus(values: FloatVector, sizes: FloatMatrix, prices: FloatVector, surplus: FloatVector) -> None:
    """Write the value of an item of each class above the price of its request."""
    surplus[:] = values
    for r in range(prices.size):
        if prices[r] != 0.0:
            surplus -= prices[r] * sizes[r]


@kernel(allocates=False)
def price_resources(basis: Basis, values: FloatVector, prices: FloatVector) -> None:
    """Write the value of one more unit of each resource in this basis."""
    rows = prices.size
    for r in range(rows):
        price = 0.0
        for i in range(rows):
            if basis.basic[i] < values.size:
                price += values[basis.basic[i]] * basis.inverse[i, r]
        prices[r] = price


@kernel()
def choose_entering_variable(surplus: FloatVector, side: FloatVector, prices: FloatVector) -> int:
    """The variable with the largest gain, slacks included; -1 if there is none."""
    gains = surplus * side
    entering = int(np.argmax(gains))
    best = gains[entering]
    for r in range(prices.size):
        if -prices[r] > best:
            entering, best = gains.size + r, -prices[r]
    return entering if best > TINY else -1


@kernel()
def compute_column(sizes: FloatMatrix, inverse: FloatMatrix, variable: int) -> FloatVector:
    """The change of each basic variable per unit of the variable."""
    rows = inverse.shape[0]
    column = np.zeros(rows)
    classes = sizes.shape[1]
    for i in range(rows):
        if variable >= classes:
            column[i] = inverse[i, variable - classes]
        else:
            taken = 0.0
            for r in range(rows):
                taken += inverse[i, r] * sizes[r, variable]
            column[i] = taken
    return column


@kernel(allocates=False)
def move_entering(basis: Basis, upper: IntVector, entering: int, column: FloatVector) -> None:
    """Move the entering variable as far as it goes: to its other bound, or until a basic one meets a bound."""
    classes = upper.size
    rows = column.size
    sign = basis.side[entering] if entering < classes else 1.0
    reach = float(upper[entering]) if entering < classes else np.inf
    leaving = -1
    for i in range(rows):
        rate = sign * column[i]
        limit = np.inf
        if rate > TINY:
            limit = max(basis.level[i], 0.0) / rate
        elif rate < -TINY and basis.basic[i] < classes:
            limit = max(upper[basis.basic[i]] - basis.level[i], 0.0) / -rate
        if limit < reach:
            reach, leaving = limit, i
    for i in range(rows):
        basis.level[i] -= sign * column[i] * reach
    if leaving < 0:
        basis.side[entering] = -sign
        return
    out = basis.basic[leaving]
    if out < classes:
        basis.side[out] = 1.0 if sign * column[leaving] > 0.0 else -1.0
    basis.level[leaving] = reach if sign > 0.0 else upper[entering] - reach
    basis.basic[leaving] = entering
    if entering < classes:
        basis.side[entering] = 0.0
    update_inverse(basis.inverse, leaving, column)


@kernel(allocates=False)
def update_inverse(inverse: FloatMatrix, row: int, column: FloatVector) -> None:
    """Bring the inverse of the basis up to date after a change of one row's variable."""
    rows = column.size
    for r in range(rows):
        inverse[row, r] /= column[row]
    for i in range(rows):
        if i != row and column[i] != 0.0:
            for r in range(rows):
                inverse[i, r] -= column[i] * inverse[row, r]
