"""Machine code and Python give the same plans. Runs where the cache is warm (`python -m plimsoll.solver.kernels`)."""

import os

import numpy as np
import pytest

from plimsoll.solver.kernels import force_choice, is_cache_warm
from plimsoll.solver.packing.mixed import pack_mixed
from plimsoll.solver.problem import UNBOUNDED, Effort, PackingProblem
from tests.solver.checks import violations
from tests.solver.workloads import n1_types, packing, pods, workload

pytestmark = pytest.mark.skipif(
    os.environ.get("PLIMSOLL_KERNELS") != "numba" and not is_cache_warm(), reason="compiling takes a minute"
)


def constrained(seed: int) -> PackingProblem:
    random = np.random.default_rng(seed)
    requests, counts = pods(300, 10, seed)
    capacity, price = n1_types()
    return packing(
        requests,
        counts,
        capacity,
        price,
        allowed=random.random((19, 10)) < 0.7,
        per_bin=random.choice([1, 5, UNBOUNDED], 10),
        exclusive=random.random((10, 2)) < 0.2,
        available=random.choice([2, 10, UNBOUNDED], 19),
        use=capacity[:, :1],
        room=np.array([90_000]),
    )


@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(workload(100, 12, 19, 3), id="a hundred pods"),
        pytest.param(workload(20_000, 16, 19, 5, shape="uniform"), id="twenty thousand pods"),
        pytest.param(constrained(1), id="every constraint"),
        pytest.param(constrained(2), id="every constraint, again"),
    ],
)
def test_compiled_and_plain_kernels_give_the_same_packing(problem: PackingProblem):
    with force_choice("plain"):
        plain = pack_mixed(problem, Effort())
    with force_choice("numba"):
        compiled = pack_mixed(problem, Effort())
    assert violations(problem, compiled) == []
    assert compiled.patterns == plain.patterns
    assert compiled.left.tolist() == plain.left.tolist()
    assert compiled.cost == plain.cost
