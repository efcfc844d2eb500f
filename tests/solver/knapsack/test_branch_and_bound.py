from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.solver.kernels import force_choice
from plimsoll.solver.knapsack.item_values import build_item_values, solve_resource_prices
from plimsoll.solver.knapsack.lp_knapsack import find_best_content
from plimsoll.solver.layout import build_layout
from plimsoll.solver.problem import Floats, Ints, PackingProblem
from tests.solver.workloads import packing


def best_by_trying_all(problem: PackingProblem, values: Floats) -> float:
    ranges = (range(count + 1) for count in problem.counts.tolist())
    worth = 0.0
    for content in product(*ranges):
        items = np.array(content)
        if (items @ problem.requests <= problem.capacity[0]).all():
            worth = max(worth, float(items @ values))
    return worth


def content_and_promise(problem: PackingProblem, values: Floats) -> tuple[Ints, float, float]:
    """In the order of the problem's classes; value and bound as `values` count."""
    layout = build_layout(problem)
    worth = build_item_values(values[layout.classes])
    content = np.zeros(layout.classes.size, dtype=np.int64)
    with force_choice("plain"):
        value, bound = find_best_content(
            layout.instance, worth, 0, layout.demand.left, content, np.zeros(len(layout.instance.takes))
        )
    whole = np.zeros(len(problem.counts), dtype=np.int64)
    whole[layout.classes] = content
    scale = float(values[layout.classes].max())
    return whole, value * scale, bound * scale


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_the_promise_is_kept_by_no_content_and_the_content_fits(seed: int):
    random = np.random.default_rng(seed)
    problem = packing(random.integers(1, 9, (3, 2)), random.integers(1, 6, 3), [[20, 20]], [1.0])
    values = random.integers(1, 100, 3) / 10
    content, value, bound = content_and_promise(problem, values)
    best = best_by_trying_all(problem, values)
    assert (content @ problem.requests <= problem.capacity[0]).all()
    assert (content <= problem.counts).all()
    assert abs(value - float(content @ values)) < 1e-6
    assert value <= best + 1e-6
    assert best <= bound + 1e-6


def test_complementary_classes_share_a_bin():
    problem = packing([[9, 1], [1, 9]], [100, 100], [[100, 100]], [1.0])
    content, _, _ = content_and_promise(problem, np.array([1.0, 1.01]))
    assert content.tolist() == [10, 10]


def test_everything_goes_in_when_everything_fits():
    problem = packing([[3], [4]], [2, 3], [[18]], [1.0])
    content, value, bound = content_and_promise(problem, np.array([1.0, 1.0]))
    assert content.tolist() == [2, 3]
    assert value == bound == 5.0


def test_resource_prices_make_the_cheapest_bins_worth_their_price():
    spaces = np.array([[1.0, 0.5], [0.5, 1.0]])
    price = np.array([3.0, 3.0])
    prices = solve_resource_prices(np.array([10.0, 10.0]), spaces, price)
    np.testing.assert_allclose(spaces @ prices, price)


def test_a_resource_that_is_not_scarce_has_no_price():
    prices = solve_resource_prices(np.array([10.0, 0.1]), np.array([[1.0, 1.0]]), np.array([2.0]))
    np.testing.assert_allclose(prices, [2.0, 0.0])
