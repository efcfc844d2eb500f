"""A handful of items is packed for the least money there is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.solver import pack as planner
from plimsoll.solver.exact import pattern_milp
from plimsoll.solver.pack import pack
from plimsoll.solver.problem import Effort, Packing, PackingProblem
from tests.solver.bounds.test_lower_bound import cheapest
from tests.solver.packing_problems import faults, packing, tiny_packings

BY_LUCK = packing(
    [[806, 1426], [818, 2300], [1044, 842], [1254, 135], [1462, 2511], [627, 1023]],
    [1, 3, 2, 3, 1, 1],
    [[4000, 5376], [6000, 13950]],
    [0.21, 0.34],
)
"""Three of the smaller bins, where rounding takes two of the larger."""


@st.composite
def few_large_items(draw: st.DrawFn) -> PackingProblem:
    """Of which two to five fill a bin: where rounding goes wrong."""
    classes, types = draw(st.integers(2, 3)), draw(st.integers(1, 2))
    sizes = st.tuples(st.integers(18, 60), st.integers(5, 60))
    return packing(
        draw(st.lists(sizes, min_size=classes, max_size=classes)),
        draw(st.lists(st.integers(1, 4), min_size=classes, max_size=classes)),
        [[100, 100], [150, 130]][:types],
        [1.0, 1.4][:types],
    )


@given(few_large_items())
@settings(max_examples=25, deadline=None)
def test_few_items_on_one_or_two_types_cost_as_little_as_they_can(problem: PackingProblem):
    answer = pack(problem, Effort(gap=0.0))
    assert faults(problem, answer.packing) == []
    assert answer.packing.cost == pytest.approx(cheapest(problem))


@given(tiny_packings())
@settings(max_examples=30, deadline=None)
def test_so_do_items_that_exclude_each_other(problem: PackingProblem):
    answer = pack(problem, Effort(gap=0.0))
    assert faults(problem, answer.packing) == []
    assert answer.packing.cost == pytest.approx(cheapest(problem))


def test_rounding_alone_would_open_dearer_bins(monkeypatch: pytest.MonkeyPatch):
    assert pack(BY_LUCK, Effort()).packing.cost == pytest.approx(0.63)
    monkeypatch.setattr(planner, "is_small", lambda _: False)
    assert pack(BY_LUCK, Effort()).packing.cost == pytest.approx(0.68), "nothing else finds it"


@pytest.mark.parametrize(
    "limits",
    [
        {"available": np.array([2, 9])},
        {"use": np.array([[3], [1]]), "room": np.array([7])},
    ],
)
def test_a_limit_on_the_cheaper_type_leaves_the_other(limits: dict[str, Any]):
    problem = packing([[5]], [6], [[10], [10]], [1.0, 1.5], **limits)
    dear = pack(packing([[5]], [6], [[10]], [1.5]), Effort()).packing
    cheaper = pattern_milp.pack_cheapest(problem, _of_second_type(dear), Effort())
    assert faults(problem, cheaper) == []
    assert cheaper.cost == pytest.approx(3.5)


def test_too_many_contents_are_not_gone_through(monkeypatch: pytest.MonkeyPatch):
    for name in ("CONTENTS", "STEPS"):
        with monkeypatch.context() as patch:
            patch.setattr(pattern_milp, name, 3)
            assert pack(BY_LUCK, Effort()).packing.cost == pytest.approx(0.68)


@pytest.mark.parametrize(("classes", "each", "small"), [(12, 3, True), (13, 1, False), (4, 11, False)])
def test_only_few_items_in_few_classes_are_asked_about(classes: int, each: int, *, small: bool):
    problem = packing([[1]] * classes, [each] * classes, [[10]], [1.0])
    assert pattern_milp.is_small(problem) is small


AT_THE_TOLERANCE = packing(
    [[45], [55], [60]],
    [4, 1, 1],
    [[100], [60], [100]],
    [0.71401, 0.20401, 0.71401],
    allowed=np.array([[True, True, False], [False, False, True], [False, False, True]]),
)
"""HiGHS 1.15.1 raises `ValueError: vector::reserve` if it must find something just cheaper than the best."""


@pytest.mark.parametrize("above", [0.0, 1e-8, 1e-7, 1e-6, 2e-6, 1e-5])
def test_a_bound_on_the_cost_that_is_tight_to_the_tolerance_is_no_failure(above: float):
    best = pack(AT_THE_TOLERANCE, Effort()).packing
    assert best.cost == pytest.approx(2.34604)
    found = pattern_milp.pack_cheapest(AT_THE_TOLERANCE, replace(best, cost=2.34604 + above), Effort())
    assert faults(AT_THE_TOLERANCE, found) == []
    assert found.cost <= 2.34604 + above


@pytest.mark.parametrize("error", [ValueError, MemoryError, IndexError, RuntimeError, OverflowError])
def test_a_solver_that_fails_leaves_the_packing_in_hand(error: type[Exception], monkeypatch: pytest.MonkeyPatch):
    class Failing(highspy.Highs):
        def run(self) -> highspy.HighsStatus:
            raise error

    monkeypatch.setattr(highspy, "Highs", Failing)
    answer = pack(BY_LUCK, Effort())
    assert faults(BY_LUCK, answer.packing) == []
    assert not answer.packing.left.any()


def _of_second_type(packed: Packing) -> Packing:
    return replace(packed, patterns=tuple(replace(pattern, type=1) for pattern in packed.patterns))
