from dataclasses import replace
from random import Random

import numpy as np
import pytest

from plimsoll.solver.kernels import force_choice
from plimsoll.solver.packing.exchange import exchange_items
from plimsoll.solver.packing.first_fit import estimate
from plimsoll.solver.packing.solution import join_patterns
from plimsoll.solver.problem import Packing, PackingProblem
from tests.solver.checks import violations
from tests.solver.workloads import packing


def draw_problem(seed: int) -> PackingProblem:
    """Types of one to eight sizes; the first classes exclude each other, one class may be twice in a bin."""
    random = Random(seed)
    classes = random.randint(3, 8)
    sizes = [[random.randint(1, 15) * 100, random.randint(1, 20) * 100] for _ in range(classes)]
    exclusive = np.zeros((classes, 2), dtype=np.bool_)
    exclusive[: random.randint(1, 3), 0] = True
    exclusive[random.randrange(classes), 1] = True
    per_bin = [1 << 40] * classes
    per_bin[-1] = 2
    allowed = np.ones((8, classes), dtype=np.bool_)
    allowed[:2, random.randrange(classes)] = False
    return packing(
        sizes,
        [random.randint(1, 9) for _ in range(classes)],
        [[1_000 * cores - 100, 2_000 * cores - 10] for cores in range(2, 10)],
        [0.1 * cores for cores in range(2, 10)],
        exclusive=exclusive,
        per_bin=per_bin,
        allowed=allowed,
    )


def pack_into_largest_bins(problem: PackingProblem) -> Packing:
    found = join_patterns(problem, estimate(problem, len(problem.price) - 1, nodes=1_000).fillings)
    assert not found.left.any()
    return found


@pytest.mark.parametrize("seed", range(12))
def test_exchanges_make_a_packing_cheaper_and_break_no_rule(seed: int):
    problem = draw_problem(seed)
    before = pack_into_largest_bins(problem)
    with force_choice("plain"):
        found = exchange_items(problem, before, tries=1_500)
    assert violations(problem, found) == []
    assert found.cost < before.cost


def test_items_that_were_left_out_stay_out():
    problem = draw_problem(1)
    before = pack_into_largest_bins(problem)
    more = replace(problem, counts=problem.counts + 1)
    with force_choice("plain"):
        found = exchange_items(more, replace(before, left=np.ones_like(problem.counts)), tries=500)
    assert found.left.tolist() == [1] * len(problem.counts)
    assert violations(more, found) == []


def test_an_empty_packing_stays_empty():
    problem = replace(draw_problem(1), counts=np.zeros_like(draw_problem(1).counts))
    empty = Packing(patterns=(), left=problem.counts, cost=0.0)
    assert exchange_items(problem, empty) == empty
