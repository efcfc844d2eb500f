"""Exact knapsacks are exact; what they prove is never above any packing, and never below what was known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.solver.bounds.lower_bound import compute_bound, compute_lower_bound
from plimsoll.solver.column_generation.proven_bound import bound_from_values, prove_bound
from plimsoll.solver.knapsack.branch_and_bound import NEAR, solve_content_exactly
from plimsoll.solver.knapsack.item_values import build_item_values
from plimsoll.solver.layout import build_layout
from plimsoll.solver.problem import UNBOUNDED, Effort, PackingProblem
from tests.solver.bounds.test_lower_bound import cheapest
from tests.solver.packing_problems import demand, n1_types, packing, tiny_packings

PROVING = Effort(gap=0.0, rounds=200, branch_nodes=10_000)


def proven(problem: PackingProblem, *, enough: float = 1e9) -> float:
    return prove_bound(problem, PROVING, known=compute_lower_bound(problem, effort=PROVING), enough=enough)


@given(tiny_packings())
@settings(max_examples=40, deadline=None)
def test_no_packing_is_cheaper_than_what_is_proven(problem: PackingProblem):
    best = cheapest(problem)
    assert compute_lower_bound(problem, effort=PROVING) <= proven(problem) <= best + 1e-9


@given(tiny_packings(), st.lists(st.floats(0, 10), min_size=3, max_size=3))
@settings(max_examples=60, deadline=None)
def test_whatever_worths_are_proposed_no_packing_is_cheaper_than_what_they_show(
    problem: PackingProblem, worths: list[float]
):
    assert bound_from_values(problem, np.array(worths[: len(problem.counts)])) <= cheapest(problem) + 1e-9


def test_the_worths_of_a_bound_show_as_much_again():
    capacity, price = n1_types()
    apart = np.where(np.arange(40) % 3, UNBOUNDED, 1)
    requests, counts = demand("uniform-fine", pods=4_000, classes=40)
    problem = packing(requests, counts, capacity, price, per_bin=apart[: len(counts)])
    bound = compute_bound(problem, effort=Effort())
    assert bound_from_values(problem, bound.item_values) >= bound.cost * (1 - 1e-6)


def test_worths_of_nothing_show_nothing():
    assert bound_from_values(packing([[3]], [7], [[10]], [2.0]), np.zeros(1)) == 0


@given(tiny_packings())
@settings(max_examples=40, deadline=None)
def test_a_content_is_the_best_there_is(problem: PackingProblem):
    unkeyed = PackingProblem(
        **{name: getattr(problem, name) for name in PackingProblem.__dataclass_fields__ if name != "exclusive"},
        exclusive=np.zeros((len(problem.counts), 0), dtype=np.bool_),
    )
    layout = build_layout(unkeyed)
    if not len(layout.types) or not len(layout.classes):
        return
    item_values = build_item_values(np.arange(1.0, len(layout.classes) + 1))
    content = np.zeros(len(layout.classes), dtype=np.int64)
    value, ceiling, _ = solve_content_exactly(layout.instance, item_values, 0, layout.demand.left, content, 10_000)
    most = np.minimum(layout.demand.left, layout.instance.fit[0]).tolist()
    best = max(
        float(item_values.values @ items)
        for items in map(np.array, itertools.product(*(range(n + 1) for n in most)))
        if (layout.instance.takes @ items <= layout.instance.capacity[0]).all()
    )
    assert (layout.instance.takes @ content <= layout.instance.capacity[0]).all()
    assert value == pytest.approx(float(item_values.values @ content))
    assert best * (1 - NEAR) <= value <= best + 1e-12 <= ceiling + 1e-9


def test_a_spent_effort_still_gives_what_no_content_exceeds():
    layout = build_layout(packing([[5, 3], [4, 4], [3, 5]], [9, 9, 9], [[31, 29]], [1.0]))
    item_values = build_item_values(np.array([1.0, 0.9, 0.95]))
    content = np.zeros(3, dtype=np.int64)
    exact = solve_content_exactly(layout.instance, item_values, 0, layout.demand.left, content, 10_000)
    hasty = solve_content_exactly(layout.instance, item_values, 0, layout.demand.left, content, 1)
    assert hasty[2] <= 1
    assert hasty[1] >= exact[0]


def test_whole_items_need_more_bins_than_their_volume():
    """Two of three fill no bin of five: poured, 10 items take 6 bins; whole, each bin takes one."""
    problem = packing([[3]], [10], [[5], [5]], [1.0, 1.0])
    assert proven(problem) == pytest.approx(10.0)


def test_few_large_items_are_proven_closer():
    capacity, price = n1_types()
    problem = packing(*demand("uniform", pods=30, classes=10), capacity, price)
    assert proven(problem) > compute_lower_bound(problem, effort=PROVING) * 1.01


def test_a_bound_that_is_enough_is_not_worked_on():
    capacity, price = n1_types()
    problem = packing(*demand("uniform", pods=30, classes=10), capacity, price)
    known = compute_lower_bound(problem, effort=PROVING)
    assert prove_bound(problem, PROVING, known=known, enough=known) == known
