"""Column generation makes a packing cheaper or leaves it alone, and never breaks it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings

from plimsoll.solver.bounds.lower_bound import compute_bound, compute_lower_bound
from plimsoll.solver.column_generation.generator import improve
from plimsoll.solver.packing.mixed import pack_mixed
from plimsoll.solver.packing.solution import join_patterns
from plimsoll.solver.problem import BinPattern, Effort, Packing, PackingProblem
from tests.solver.packing_problems import demand, faults, n1_types, packing, tiny_packings

THOROUGH = Effort(rounds=20, gap=0.0)


def pod_by_pod(problem: PackingProblem) -> Packing:
    """The dearest packing that makes any sense: a bin for each item, of the first type that takes it."""
    fillings = []
    for index, (count, request) in enumerate(zip(problem.counts.tolist(), problem.requests, strict=True)):
        takes = (problem.capacity >= request).all(axis=1) & problem.allowed[:, index] & (problem.per_bin[index] > 0)
        if count and takes.any():
            fillings.append(BinPattern(type=int(takes.argmax()), bins=count, classes=(index,), items=(1,)))
    return join_patterns(problem, fillings)


@given(tiny_packings())
@settings(max_examples=40, deadline=None)
def test_what_comes_back_is_valid_leaves_no_more_and_costs_no_more(problem: PackingProblem):
    incumbent = pod_by_pod(problem)
    improved = improve(problem, incumbent, THOROUGH)
    assert faults(problem, improved) == []
    assert improved.cost <= incumbent.cost
    assert (improved.left == incumbent.left).all()
    served = replace(problem, counts=problem.counts - improved.left)
    assert compute_lower_bound(served, effort=THOROUGH) <= improved.cost


def test_bins_of_one_item_become_full_bins():
    problem = packing([[2, 1], [1, 2]], [60, 60], [[6, 6]], [1.0])
    improved = improve(problem, pod_by_pod(problem), THOROUGH)
    assert improved.cost == 30.0


def test_a_mixed_packing_comes_closer_to_its_bound():
    capacity, price = n1_types()
    problem = packing(*demand("uniform", pods=5000, classes=20), capacity, price)
    hasty = pack_mixed(problem, Effort(value_vectors=1, gap=1.0))
    bound = compute_bound(problem, effort=THOROUGH)
    improved = improve(problem, hasty, Effort(), bound=bound)
    assert improved.cost < hasty.cost
    assert improved.cost <= 1.01 * bound.cost
    assert faults(problem, improved) == []


def test_limits_on_bins_and_room_are_kept():
    limits = {"available": np.array([3, 100]), "use": np.array([[10], [4]]), "room": np.array([150])}
    problem = packing([[2, 1], [1, 2]], [60, 60], [[12, 12], [6, 6]], [1.5, 1.0], **limits)
    incumbent = pack_mixed(problem, Effort(value_vectors=1, gap=1.0))
    improved = improve(problem, incumbent, THOROUGH)
    assert faults(problem, improved) == []
    assert improved.cost <= incumbent.cost


def test_without_rounds_nothing_is_tried():
    problem = packing([[2, 1], [1, 2]], [60, 60], [[6, 6]], [1.0])
    incumbent = pod_by_pod(problem)
    assert improve(problem, incumbent, Effort(rounds=0)) is incumbent


def test_the_same_question_gets_the_same_answer():
    capacity, price = n1_types()
    problem = packing(*demand("uniform", pods=500, classes=8), capacity, price)
    once, again = (improve(problem, pod_by_pod(problem), Effort(rounds=4)) for _ in range(2))
    assert once.patterns == again.patterns
