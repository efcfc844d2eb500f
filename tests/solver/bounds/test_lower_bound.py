"""A bound is never above what any packing costs, and close to it where there are many items."""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace
from random import Random  # noqa: TC003 -- hypothesis reads annotations at run time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.solver.bounds.lower_bound import compute_lower_bound
from plimsoll.solver.knapsack.item_values import solve_resource_prices
from plimsoll.solver.problem import UNBOUNDED, Effort, Ints, PackingProblem
from tests.solver.packing_problems import demand, gpu_market, n1_types, packing, tiny_packings

QUICK, PROVING = Effort(), Effort(rounds=200)


def cheapest(problem: PackingProblem) -> float:
    """By trying every content of every bin; classes that fit nowhere are left out."""
    contents = {
        (type_, items)
        for type_ in range(len(problem.price))
        for items in itertools.product(*(range(n + 1) for n in problem.counts.tolist()))
        if any(items) and holds(problem, type_, np.array(items))
    }
    fit = np.array([any(items[index] for _, items in contents) for index in range(len(problem.counts))])

    @functools.cache
    def cost(left: tuple[int, ...]) -> float:
        if not any(left):
            return 0.0
        first = next(index for index, count in enumerate(left) if count)
        return min(
            float(problem.price[type_]) + cost(tuple(max(n - i, 0) for n, i in zip(left, items, strict=True)))
            for type_, items in contents
            if items[first]
        )

    return cost(tuple(np.where(fit, problem.counts, 0).tolist()))


def holds(problem: PackingProblem, type_: int, items: Ints) -> bool:
    return bool(
        (items @ problem.requests <= problem.capacity[type_]).all()
        and problem.allowed[type_, items > 0].all()
        and (items <= problem.per_bin).all()
        and (items @ problem.exclusive <= 1).all()
    )


@given(tiny_packings())
@settings(max_examples=80, deadline=None)
def test_no_packing_is_cheaper_than_the_bound(problem: PackingProblem):
    best = cheapest(problem)
    assert compute_lower_bound(problem, effort=QUICK) <= best + 1e-12
    assert compute_lower_bound(problem, effort=PROVING) <= best + 1e-12


@given(tiny_packings(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_the_order_of_classes_and_types_does_not_matter(problem: PackingProblem, random: Random):
    classes = random.sample(range(len(problem.counts)), len(problem.counts))
    types = random.sample(range(len(problem.price)), len(problem.price))
    shuffled = replace(
        problem,
        requests=problem.requests[classes],
        counts=problem.counts[classes],
        per_bin=problem.per_bin[classes],
        exclusive=problem.exclusive[classes],
        capacity=problem.capacity[types],
        price=problem.price[types],
        allowed=problem.allowed[types][:, classes],
    )
    assert compute_lower_bound(shuffled, effort=PROVING) == pytest.approx(
        compute_lower_bound(problem, effort=PROVING), rel=1e-5
    )


def test_of_one_type_there_are_whole_bins():
    problem = packing([[3]], [7], [[10]], [2.0])
    assert compute_lower_bound(problem, effort=QUICK) == pytest.approx(6.0)


def test_an_item_costs_at_least_the_cheapest_bin_that_takes_it():
    problem = packing([[1], [9]], [1, 1], [[4], [100]], [1.0, 10.0])
    assert compute_lower_bound(problem, effort=QUICK) == pytest.approx(10.0)


def test_a_cost_is_a_sum_of_prices():
    problem = packing([[5]], [4], [[10], [15]], [2.0, 3.0])
    assert compute_lower_bound(problem, effort=QUICK) == pytest.approx(4.0)
    dearer = packing([[4]], [6], [[10], [15]], [2.0, 3.1])
    assert compute_lower_bound(dearer, effort=QUICK) == pytest.approx(6.0)


def test_items_that_lie_alone_need_a_bin_each():
    problem = packing([[1]], [50], [[10], [100]], [1.0, 9.0], per_bin=np.array([1]))
    assert compute_lower_bound(problem, effort=QUICK) == pytest.approx(50.0)


def test_classes_that_share_a_key_need_a_bin_each():
    keys = np.array([[True], [True]])
    problem = packing([[1], [2]], [20, 30], [[10], [100]], [1.0, 9.0], exclusive=keys)
    assert compute_lower_bound(problem, effort=QUICK) == pytest.approx(50.0)


def test_a_type_without_bins_is_not_counted_on():
    problem = packing([[1]], [10], [[10], [5]], [1.0, 1.0], available=np.array([0, UNBOUNDED]))
    assert compute_lower_bound(problem, effort=QUICK) == pytest.approx(2.0)


def test_a_type_too_large_for_the_room_is_not_counted_on():
    problem = packing([[1]], [10], [[10], [5]], [1.0, 1.0], use=np.array([[8], [1]]), room=np.array([7]))
    assert compute_lower_bound(problem, effort=QUICK) == pytest.approx(2.0)


@pytest.mark.parametrize("counts", [[0, 0], [0, 3]])
def test_nothing_to_pack_costs_nothing(counts: list[int]):
    assert compute_lower_bound(packing([[1], [11]], counts, [[10]], [1.0]), effort=QUICK) == 0


def test_items_without_size_need_one_bin():
    assert compute_lower_bound(packing([[0, 0]], [9], [[10, 10]], [1.5]), effort=QUICK) == pytest.approx(1.5)


def test_what_fits_a_free_bin_costs_nothing():
    problem = packing([[1], [8]], [5, 3], [[4], [10]], [0.0, 1.0])
    assert compute_lower_bound(problem, effort=QUICK) == pytest.approx(3.0)


def test_types_that_take_only_some_classes_have_worths_of_their_own():
    problem = packing(
        [[10, 0], [10, 1]], [100, 10], [[100, 0], [100, 1]], [1.0, 5.0], allowed=np.array([[1, 0], [0, 1]], dtype=bool)
    )
    assert compute_lower_bound(problem, effort=QUICK) == pytest.approx(60.0, rel=1e-3)


def test_more_rounds_never_make_a_looser_bound():
    capacity, price = n1_types()
    for kind in ("uniform", "log-normal"):
        problem = packing(*demand(kind, pods=1000, classes=60), capacity, price)
        assert compute_lower_bound(problem, effort=PROVING) >= compute_lower_bound(problem, effort=Effort(rounds=0)) * (
            1 - 1e-9
        )


def test_a_bound_that_is_enough_is_not_worked_on():
    problem = gpu_market(pods=500, classes=40)
    full = compute_lower_bound(problem, effort=QUICK)
    assert 0 < compute_lower_bound(problem, effort=QUICK, enough=0.1 * full) < 0.99 * full


def test_thousands_of_classes_are_bounded_as_closely_as_their_volume():
    capacity, price = n1_types()
    requests, counts = demand("log-normal", pods=2000, classes=2000)
    bound = compute_lower_bound(packing(requests, counts, capacity, price), effort=QUICK)
    volume = max((counts @ requests)[r] * (price / capacity[:, r]).min() for r in (0, 1))
    assert bound > volume


def test_a_thousand_shapes_are_not_reported_as_mere_volume():
    """Bins of much cpu are cheap for the volume, but too few items have the shape to fill them."""
    capacity, price = n1_types()
    requests, counts = demand("uniform-fine", pods=1000, classes=1000)
    problem = packing(requests, counts, capacity, price)
    unit = capacity.max(axis=0) + 1.0
    volume = counts @ (requests / unit)
    by_volume = float(volume @ solve_resource_prices(volume, capacity / unit, price))
    assert compute_lower_bound(problem, effort=QUICK) >= 1.01 * by_volume
