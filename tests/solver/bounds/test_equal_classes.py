import numpy as np
import pytest

from plimsoll.solver.bounds.lower_bound import compute_lower_bound
from plimsoll.solver.bounds.relaxation import merge_equal_classes
from plimsoll.solver.problem import UNBOUNDED, Effort, PackingProblem
from tests.solver.workloads import packing

SIZES = [[1000, 500], [1000, 500], [300, 900], [700, 700], [700, 700], [1000, 500]]


def build_problem(*, per_bin: list[int], exclusive: list[list[bool]] | None = None) -> PackingProblem:
    given = {} if exclusive is None else {"exclusive": np.array(exclusive, dtype=np.bool_)}
    allowed = np.ones((3, len(SIZES)), dtype=np.bool_)
    allowed[0, 5] = False
    capacity, price = [[2000, 2000], [4000, 4000], [8000, 8000]], [1.0, 1.9, 3.7]
    return packing(SIZES, [4, 7, 3, 2, 5, 1], capacity, price, per_bin=per_bin, allowed=allowed, **given)


def test_classes_that_take_and_may_use_the_same_become_one():
    problem = build_problem(per_bin=[UNBOUNDED] * 6)
    merged, values = merge_equal_classes(problem, np.array([1.0, 2.0, 3.0, 4.0, 4.0, 5.0]))
    found = {
        tuple(takes): (count, value)
        for takes, count, value in zip(merged.requests.tolist(), merged.counts.tolist(), values.tolist(), strict=True)
        if takes != [1000, 500]
    }
    assert found == {(300, 900): (3, 3.0), (700, 700): (7, 4.0)}
    large = np.flatnonzero((merged.requests == [1000, 500]).all(axis=1))
    assert sorted(merged.counts[large].tolist()) == [1, 11]
    assert sorted(values[large].tolist()) == pytest.approx([18 / 11, 5.0])


def test_classes_that_are_kept_apart_only_from_themselves_stay_apart():
    merged, _ = merge_equal_classes(build_problem(per_bin=[1, 1, 1, 1, 1, 1]), np.ones(6))
    assert len(merged.counts) == 6


@pytest.mark.parametrize("kept_apart", [False, True])
def test_the_bound_stays_the_same(*, kept_apart: bool):
    exclusive = [[kept_apart and number in {3, 4}] for number in range(6)]
    per_bin = [1 if kept_apart and number in {3, 4} else UNBOUNDED for number in range(6)]
    problem = build_problem(per_bin=per_bin, exclusive=exclusive)
    merged, _ = merge_equal_classes(problem, np.ones(6))
    assert len(merged.counts) == 4
    bounds = [compute_lower_bound(variant, effort=Effort(), enough=1e9) for variant in (problem, merged)]
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-6)
