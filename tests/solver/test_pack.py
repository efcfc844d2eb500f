"""The planner's answer is valid, within what was asked of its bound, and the same each time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from plimsoll.solver import pack as planner
from plimsoll.solver.column_generation import generator
from plimsoll.solver.pack import pack
from plimsoll.solver.packing import mixed
from plimsoll.solver.packing.first_fit import estimate
from plimsoll.solver.problem import UNBOUNDED, Effort, Packing, PackingProblem
from tests.solver.packing_problems import demand, faults, n1_types, packing, tiny_packings

QUICK = Effort(rounds=4, gap=0.3)


@given(tiny_packings())
@settings(max_examples=40, deadline=None)
def test_an_answer_is_valid_places_what_fits_and_costs_no_less_than_its_bound(problem: PackingProblem):
    answer = pack(problem, QUICK)
    assert faults(problem, answer.packing) == []
    assert 0 <= answer.bound <= answer.packing.cost
    takes = (problem.capacity[:, None, :] >= problem.requests[None]).all(axis=2) & problem.allowed
    assert (answer.packing.left == np.where(takes.any(axis=0), 0, problem.counts)).all()


def test_the_bound_is_of_what_is_placed():
    problem = packing([[5]], [10], [[10]], [1.0], available=np.array([3]))
    answer = pack(problem, QUICK)
    assert answer.packing.left.tolist() == [4]
    assert answer.bound == pytest.approx(3.0)


def test_a_packing_within_the_gap_is_not_worked_on(monkeypatch: pytest.MonkeyPatch):
    def refuse(problem: PackingProblem, incumbent: Packing, effort: Effort, *, bound: float) -> Packing:
        raise AssertionError("columns were asked")

    monkeypatch.setattr(planner, "improve", refuse)
    problem = packing([[5]], [10], [[10]], [1.0])
    assert pack(problem, QUICK).packing.cost == 5.0


def test_many_classes_are_packed_in_cells(monkeypatch: pytest.MonkeyPatch):
    asked = []

    def with_pattern(problem: PackingProblem, effort: Effort) -> Packing:
        asked.append(len(problem.counts))
        return Packing(patterns=(), left=problem.counts, cost=0.0)

    monkeypatch.setattr(planner, "pack_in_cells", with_pattern)
    capacity, price = n1_types()
    pack(packing(*demand("log-normal", pods=800, classes=800), capacity, price), QUICK)
    assert len(asked) == 1


def test_ten_thousand_pods_come_within_a_percent_of_the_bound():
    capacity, price = n1_types()
    for kind in ("uniform", "log-normal"):
        problem = packing(*demand(kind, pods=10_000, classes=16), capacity, price)
        answer = pack(problem, Effort())
        assert faults(problem, answer.packing) == []
        assert answer.packing.cost <= 1.01 * answer.bound


def test_many_classes_of_few_pods_come_within_a_percent_of_the_bound():
    capacity, price = n1_types()
    problem = packing(*demand("uniform", pods=3_000, classes=120), capacity, price)
    answer = pack(problem, Effort())
    assert faults(problem, answer.packing) == []
    assert answer.packing.cost <= 1.01 * answer.bound


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pods_that_keep_apart_go_first_which_saves_a_percent(seed: int, monkeypatch: pytest.MonkeyPatch):
    capacity, price = n1_types()
    requests, _ = demand("log-normal", pods=100, classes=100, seed=seed)
    counts = np.full(len(requests), 100)
    apart = np.where(np.arange(len(counts)) % 10 < 3, 1, UNBOUNDED)
    problem = packing(requests, counts, capacity, price, per_bin=apart)
    packed = pack(problem, Effort(rounds=0)).packing
    assert faults(problem, packed) == []
    monkeypatch.setattr(mixed, "build_capped_first_values", lambda *_: [])
    assert packed.cost <= 0.99 * pack(problem, Effort(rounds=0)).packing.cost


def test_an_answer_in_cells_that_leaves_more_behind_is_not_taken(monkeypatch: pytest.MonkeyPatch):
    def nothing(problem: PackingProblem, effort: Effort) -> Packing:
        return Packing(patterns=(), left=problem.counts, cost=0.0)

    monkeypatch.setattr(planner, "pack_in_cells", nothing)
    capacity, price = n1_types()
    problem = packing(*demand("uniform", pods=300, classes=150), capacity, price)
    answer = pack(problem, Effort(rounds=2, gap=0.0))
    assert faults(problem, answer.packing) == []
    assert answer.packing.left.sum() == 0


def test_ten_times_the_pods_cost_about_ten_times_as_much():
    capacity, price = n1_types()
    problem = packing(*demand("log-normal", pods=3_000, classes=8), capacity, price)
    tenfold = replace(problem, counts=10 * problem.counts)
    assert pack(tenfold, QUICK).packing.cost <= 10 * pack(problem, QUICK).packing.cost * 1.01


MIDDLING = packing(
    [
        [7126, 5879],
        [2939, 54110],
        [6603, 42197],
        [146, 5578],
        [6643, 22989],
        [923, 8932],
        [9622, 4199],
        [5204, 8800],
        [2112, 22409],
        [14681, 63265],
        [2661, 32562],
        [7370, 53460],
        [13494, 8249],
    ],
    [30, 29, 24, 27, 26, 27, 27, 25, 36, 18, 30, 16, 24],
    [[8000, 32000], [16000, 64000], [6000, 6000], [2000, 8000]],
    [0.368, 0.6377, 0.2335, 0.0837],
)
"""Rounded knapsacks know no better column than those of the first packing, which is dearer than one type alone."""


def test_nothing_is_dearer_than_the_best_type_alone(monkeypatch: pytest.MonkeyPatch):
    alone = estimate(MIDDLING, 1, nodes=1000)
    assert not alone.left.any()
    hasty = replace(QUICK, rounds=0)
    assert pack(MIDDLING, hasty).packing.cost <= alone.nodes * 0.6377 + 1e-9
    monkeypatch.setattr(planner, "SINGLE_PAIRS", 0)
    assert pack(MIDDLING, hasty).packing.cost > alone.nodes * 0.6377, "nothing else makes sure of it"


def test_where_rounded_knapsacks_know_no_more_exact_ones_are_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(planner, "SINGLE_PAIRS", 0)
    found = pack(MIDDLING, Effort()).packing
    assert faults(MIDDLING, found) == []
    assert not found.left.any()
    assert found.cost < 97
    monkeypatch.setattr(generator, "EXACT_PAIRS", 0)
    assert pack(MIDDLING, Effort()).packing.cost > 98


def test_one_type_alone_keeps_to_limits():
    problem = packing([[6]], [10], [[10], [20]], [1.0, 1.5], available=np.array([20, 2]))
    found = pack(problem, QUICK).packing
    assert faults(problem, found) == []
    assert found.cost == pytest.approx(2 * 1.5 + 4)


def test_nothing_asked_is_nothing_packed():
    answer = pack(packing([[1]], [0], [[10]], [1.0]), QUICK)
    assert (answer.packing.patterns, answer.bound) == ((), 0.0)


def test_items_without_size_share_one_bin():
    answer = pack(packing([[0, 0]], [3], [[4, 4]], [1.5]), QUICK)
    assert (answer.packing.cost, answer.packing.left.tolist()) == (1.5, [0])
