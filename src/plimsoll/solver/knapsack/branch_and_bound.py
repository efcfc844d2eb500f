"""The best content of one bin, exactly: branch and bound over the knapsack that `lp_knapsack` rounds.

Rounding is good enough to pack by, and hundreds of times faster; proofs and stalled column generation need exact
values. Effort is counted in branches; when it is spent, the upper bound is still valid, only less tight.
"""

from typing import Final

import numpy as np

from plimsoll.solver.kernels import FloatVector, IntMatrix, IntVector, kernel
from plimsoll.solver.knapsack.lp_knapsack import (
    ItemValues,
    PackingInstance,
    fill,
    find_best_content,
    find_fitting,
    keep_within,
    solve_relaxation,
    sum_values,
)

DEPTH: Final = 400
"""The number of open branches; beyond it, their bound is used as the result."""
NEAR: Final = 1e-5
"""A branch whose bound exceeds the best value by no more than this, relatively, is not followed."""
WHOLE: Final = 1e-7
"""An amount this close to a whole number counts as whole."""


@kernel()
def solve_content_exactly(
    instance: PackingInstance, item_values: ItemValues, type_: int, left: IntVector, content: IntVector, budget: int
) -> tuple[float, float, int]:
    """Write the best content of a bin; its value, a value no content exceeds, and the branches it took.

    Keys are not supported: callers pass them as resources of which a bin has one.
    """
    prices = np.zeros(instance.takes.shape[0])
    value, ceiling = find_best_content(instance, item_values, type_, left, content, prices)
    low, high = np.zeros((DEPTH, left.size), dtype=np.int64), np.zeros((DEPTH, left.size), dtype=np.int64)
    high[0, :] = np.minimum(left, instance.fit[type_])
    bounds = np.full(DEPTH, ceiling)
    waiting, spent, missed = 1, 0, 0.0
    while waiting > 0:
        waiting -= 1
        if bounds[waiting] <= value * (1.0 + NEAR):
            continue
        if spent >= budget:
            missed = max(missed, bounds[waiting])
            continue
        spent += 1
        amounts = np.zeros(left.size)
        bound = bound_branch(instance, item_values, type_, low[waiting], high[waiting], amounts)
        if bound <= value * (1.0 + NEAR):
            continue
        rounded = low[waiting].copy()
        found = round_amounts(instance, item_values, type_, high[waiting], rounded, amounts)
        if found > value:
            value = found
            content[:] = rounded
        split = find_most_fractional(amounts)
        if split < 0 or waiting + 2 > DEPTH:
            if found < bound * (1.0 - NEAR):
                missed = max(missed, bound)
            continue
        branch(low, high, waiting, split, low[waiting, split] + int(amounts[split]))
        bounds[waiting : waiting + 2] = bound
        waiting += 2
    return value, max(value * (1.0 + NEAR), missed), spent


@kernel()
def bound_branch(
    instance: PackingInstance,
    item_values: ItemValues,
    type_: int,
    low: IntVector,
    high: IntVector,
    amounts: FloatVector,
) -> float:
    """What no content between `low` and `high` is worth more than; -1 where there is none. Writes what is above low."""
    space = instance.spaces[type_].copy()
    free = instance.capacity[type_].copy()
    for c in range(low.size):
        if low[c] > 0:
            for r in range(free.size):
                free[r] -= low[c] * instance.takes[r, c]
                space[r] -= low[c] * instance.sizes[r, c]
    most = high - low
    for r in range(free.size):
        if free[r] < 0:
            return -1.0
        space[r] = max(space[r], 0.0)
        for c in range(low.size):
            if instance.takes[r, c] > 0:
                most[c] = min(most[c], free[r] // instance.takes[r, c])
    prices = np.zeros(free.size)
    return sum_values(item_values.values, low) + solve_relaxation(instance, item_values, space, most, amounts, prices)


@kernel()
def round_amounts(
    instance: PackingInstance,
    item_values: ItemValues,
    type_: int,
    high: IntVector,
    content: IntVector,
    amounts: FloatVector,
) -> float:
    """Put the whole parts of the amounts into a content, and what else fits; its value."""
    for c in range(content.size):
        content[c] += int(amounts[c] + WHOLE)
    free = instance.capacity[type_].copy()
    keep_within(instance, item_values.order, content, free)
    fill(
        instance, item_values.order[find_fitting(instance, high, content, free)[item_values.order]], high, content, free
    )
    return sum_values(item_values.values, content)


@kernel()
def find_most_fractional(amounts: FloatVector) -> int:
    """The amount that is furthest from whole; -1 when all are whole."""
    best, at = WHOLE, -1
    for c in range(amounts.size):
        part = amounts[c] - int(amounts[c])
        distance = min(part, 1.0 - part)
        if distance > best:
            best, at = distance, c
    return at


@kernel()
def branch(low: IntMatrix, high: IntMatrix, at: int, class_: int, below: int) -> None:
    """Replace a branch by two: at most `below` items of the class, and more than that, which is followed first."""
    low[at + 1, :] = low[at]
    high[at + 1, :] = high[at]
    high[at, class_] = below
    low[at + 1, class_] = below + 1
