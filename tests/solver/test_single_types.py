from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.solver.kernels import forced
from plimsoll.solver.problems import UNBOUNDED, Filling, Packing
from plimsoll.solver.single_types import estimate, pack_on, score_order, screen
from tests.solver.standing_nodes import packing_of

seeds = st.integers(0, 10**6)


def first_fit_pod_by_pod(problem: Packing, kind: int, limit: int) -> list[tuple[int, ...]]:
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


def contents(problem: Packing, fillings: tuple[Filling, ...]) -> list[tuple[int, ...]]:
    bins = []
    for filling in fillings:
        items = np.zeros(len(problem.counts), dtype=np.int64)
        items[list(filling.classes)] = filling.items
        bins += [tuple(items.tolist())] * filling.bins
    return sorted(bins)


def assert_valid(problem: Packing, fillings: tuple[Filling, ...], left: np.ndarray) -> None:
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
    with forced("plain"):
        found = estimate(problem, 0, nodes=limit)
    assert contents(problem, found.fillings) == sorted(first_fit_pod_by_pod(problem, 0, limit))
    assert found.nodes <= limit
    assert_valid(problem, found.fillings, found.left)


def test_an_estimate_takes_large_pods_first_by_cpu_and_memory_together():
    assert score_order(np.array([[5, 0], [3, 3], [0, 9]]), np.array([10, 10])).tolist() == [2, 1, 0]


@given(seed=seeds)
@settings(max_examples=80, deadline=None)
def test_screening_finds_what_packing_onto_every_type_finds(seed: int):
    problem = packing_of(seed)
    with forced("plain"):
        best = screen(problem)
        every = [pack_on(problem, kind) for kind in range(len(problem.price))]
    whole = [packed.cost for packed in every if not packed.left.any()]
    for packed in every:
        assert_valid(problem, packed.fillings, packed.left)
    assert (best is None) == (not whole)
    if best is not None:
        assert best.cost == min(whole)
        assert_valid(problem, best.fillings, best.left)


def test_a_type_with_too_few_bins_or_too_little_of_a_shared_limit_is_not_chosen():
    problem = replace(
        packing_of(1),
        requests=np.array([[4, 4, 4]]),
        counts=np.array([6]),
        allowed=np.ones((3, 1), dtype=np.bool_),
        per_bin=np.array([UNBOUNDED]),
        exclusive=np.zeros((1, 0), dtype=np.bool_),
        capacity=np.array([[9, 9, 9], [9, 9, 9], [9, 9, 9]]),
        price=np.array([1.0, 2.0, 3.0]),
        available=np.array([2, UNBOUNDED, UNBOUNDED]),
        use=np.array([[1], [5], [1]]),
        room=np.array([14]),
    )
    chosen = screen(problem)
    assert chosen is not None
    assert [(filling.type, filling.bins) for filling in chosen.fillings] == [(2, 3)]


def test_no_type_holds_everything_if_one_class_fits_none():
    problem = packing_of(3)
    huge = problem.requests.copy()
    huge[0] = 1000
    assert screen(replace(problem, requests=huge, counts=problem.counts.clip(1))) is None


def test_half_a_million_pods_are_a_few_fillings():
    problem = replace(packing_of(5), counts=np.full(7, 75_000), per_bin=np.full(7, UNBOUNDED))
    problem = replace(problem, exclusive=np.zeros((7, 0), dtype=np.bool_))
    with forced("plain"):
        found = estimate(problem, 0, nodes=UNBOUNDED)
    assert not found.left.any()
    assert len(found.fillings) < 30
