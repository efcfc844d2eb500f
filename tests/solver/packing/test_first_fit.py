from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.solver.kernels import force_choice
from plimsoll.solver.packing.first_fit import estimate, score_order
from plimsoll.solver.problem import UNBOUNDED, BinPattern, PackingProblem
from tests.solver.existing_nodes import packing_of

seeds = st.integers(0, 10**6)


def first_fit_pod_by_pod(problem: PackingProblem, kind: int, limit: int) -> list[tuple[int, ...]]:
    """Items of each class on each node, in the order nodes were opened. One pod after the other, as slow as that is."""
    nodes: list[np.ndarray] = []

    def fits(node: np.ndarray, cls: int) -> bool:
        more = node.copy()
        more[cls] += 1
        keys = (more[:, None] * problem.exclusive).sum(axis=0)
        over = (more @ problem.requests > problem.capacity[kind]).any()
        return not over and more[cls] <= problem.per_bin[cls] and (keys[problem.exclusive[cls]] <= 1).all()

    for cls in score_order(problem.requests, problem.capacity[kind]).tolist():
        for _ in range(int(problem.counts[cls])):
            home = next((node for node in nodes if fits(node, cls)), None)
            if home is None and len(nodes) < limit and fits(np.zeros(len(problem.counts), dtype=np.int64), cls):
                home = np.zeros(len(problem.counts), dtype=np.int64)
                nodes.append(home)
            if home is not None:
                home[cls] += 1
    return [tuple(node.tolist()) for node in nodes]


def contents(problem: PackingProblem, fillings: tuple[BinPattern, ...]) -> list[tuple[int, ...]]:
    bins = []
    for filling in fillings:
        items = np.zeros(len(problem.counts), dtype=np.int64)
        items[list(filling.classes)] = filling.items
        bins += [tuple(items.tolist())] * filling.bins
    return sorted(bins)


def assert_valid(problem: PackingProblem, fillings: tuple[BinPattern, ...], left: np.ndarray) -> None:
    placed = np.zeros(len(left), dtype=np.int64)
    for filling in fillings:
        items = np.zeros(len(left), dtype=np.int64)
        items[list(filling.classes)] = filling.items
        assert list(filling.classes) == sorted(filling.classes)
        assert (items @ problem.requests <= problem.capacity[filling.type]).all()
        assert (items <= problem.per_bin).all()
        assert (items @ problem.exclusive.astype(np.int64) <= 1).all()
        placed += filling.bins * items
    assert (placed + left).tolist() == problem.counts.tolist()


@given(seed=seeds, limit=st.integers(0, 12))
@settings(max_examples=80, deadline=None)
def test_an_estimate_is_what_placing_pod_after_pod_gives(seed: int, limit: int):
    problem = packing_of(seed)
    with force_choice("plain"):
        found = estimate(problem, 0, nodes=limit)
    assert contents(problem, found.fillings) == sorted(first_fit_pod_by_pod(problem, 0, limit))
    assert found.nodes <= limit
    assert_valid(problem, found.fillings, found.left)


def test_an_estimate_takes_large_pods_first_by_cpu_and_memory_together():
    assert score_order(np.array([[5, 0], [3, 3], [0, 9]]), np.array([10, 10])).tolist() == [2, 1, 0]


def test_half_a_million_pods_are_a_few_fillings():
    problem = replace(packing_of(5), counts=np.full(7, 75_000), per_bin=np.full(7, UNBOUNDED))
    problem = replace(problem, exclusive=np.zeros((7, 0), dtype=np.bool_))
    with force_choice("plain"):
        found = estimate(problem, 0, nodes=UNBOUNDED)
    assert not found.left.any()
    assert len(found.fillings) < 30
