"""The joint balance of counts and bytes on the clusters of docs/design/performance.md 5, against its targets."""

from __future__ import annotations

import numpy as np
import pytest

from plimsoll.solver.kernels import force_choice
from plimsoll.solver.replicas.balance import balance
from plimsoll.solver.replicas.problem import BrokerState, ReplicaProblem, ReplicaSolution
from tests.solver.replicas.generated_clusters import make_problem

CHANGES = {"add": {"added": 10}, "remove": {"removed": 10}}


def sum_up(problem: ReplicaProblem, solution: ReplicaSolution) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.repeat(problem.size, np.diff(problem.offsets))
    brokers = len(problem.rack_of)
    return np.bincount(solution.broker_of, minlength=brokers), np.bincount(solution.broker_of, sizes, minlength=brokers)


def count_rack_violations(problem: ReplicaProblem, solution: ReplicaSolution) -> int:
    racks = np.sort(problem.rack_of[solution.broker_of.reshape(len(problem.size), -1)], axis=1)
    return int((racks[:, 1:] == racks[:, :-1]).any(axis=1).sum())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("racks", [3, 5])
@pytest.mark.parametrize("change", CHANGES)
def test_k38_relief_comes_near_the_least_moves_and_bytes(change: str, racks: int, seed: int):
    problem = make_problem(racks=racks, seed=seed, relief=True, **CHANGES[change])
    with force_choice("plain"):
        solution = balance(problem)
    with force_choice("numba"):
        compiled = balance(problem)
    assert np.array_equal(solution.broker_of, compiled.broker_of)
    counts, held = sum_up(problem, solution)
    assert solution.moves <= 1.001 * solution.least_moves
    assert solution.moved_bytes <= 1.01 * solution.least_bytes
    assert solution.windows.find_counts_inside(counts).all()
    assert solution.windows.are_bytes_inside(held).all()
    assert count_rack_violations(problem, solution) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("racks", [3, 5])
@pytest.mark.parametrize("change", CHANGES)
def test_k38_strict_moves_exactly_the_least(change: str, racks: int, seed: int):
    problem = make_problem(racks=racks, seed=seed, relief=False, **CHANGES[change])
    with force_choice("plain"):
        solution = balance(problem)
    with force_choice("numba"):
        compiled = balance(problem)
    assert np.array_equal(solution.broker_of, compiled.broker_of)
    counts, held = sum_up(problem, solution)
    moved = solution.broker_of != problem.broker_of
    assert solution.moves == solution.least_moves
    assert solution.windows.find_counts_inside(counts).all()
    assert count_rack_violations(problem, solution) == 0
    if change == "add":
        new = problem.state == BrokerState.NEW
        assert solution.windows.are_bytes_inside(held)[new].all()
        assert new[solution.broker_of[moved]].all()
    else:
        assert (problem.state[problem.broker_of[moved]] == BrokerState.LEAVING).all()
        assert counts[problem.state == BrokerState.LEAVING].sum() == 0


@pytest.mark.parametrize("change", CHANGES)
def test_compiled_and_plain_give_the_same_plan(change: str):
    problem = make_problem(partitions=4_000, brokers=30, topics=50, relief=True, **CHANGES[change])
    with force_choice("plain"):
        plain = balance(problem)
    with force_choice("numba"):
        compiled = balance(problem)
    assert np.array_equal(plain.broker_of, compiled.broker_of)
    assert plain.least_bytes == compiled.least_bytes


def test_the_share_follows_the_capacity_of_brokers():
    problem = make_problem(partitions=6_000, brokers=12, window=0.05)
    problem.weight[:] = np.where(np.arange(12) < 6, 1.0, 2.0)
    counts, held = sum_up(problem, balance(problem))
    mean = np.where(np.arange(12) < 6, 1.0, 2.0) / 18
    assert counts / counts.sum() == pytest.approx(mean, rel=0.051)
    assert held / held.sum() == pytest.approx(mean, rel=0.06)


def test_a_broker_takes_no_more_bytes_than_it_may():
    problem = make_problem(partitions=2_000, brokers=12, removed=3, relief=False, window=0.09)
    sizes = np.repeat(problem.size, 3)
    held = np.bincount(problem.broker_of, sizes, minlength=12)
    problem.max_bytes[0] = held[0] + 1.0
    _, after = sum_up(problem, balance(problem))
    assert after[0] <= problem.max_bytes[0]
    assert after[9:].sum() == 0


def test_replicas_that_no_broker_can_take_are_named():
    """Two racks are left for three replicas of each partition."""
    problem = make_problem(partitions=30, brokers=3, racks=3, removed=1, relief=False)
    problem.max_replicas[:] = 30
    solution = balance(problem)
    assert len(solution.stranded) == 30


def test_the_cap_of_a_topic_spreads_it_over_the_new_brokers():
    problem = make_problem(partitions=5_000, brokers=30, added=10, topics=100, relief=True, window=0.05)
    without_cap = count_pairs_above(8, problem, balance(problem))
    problem.topic_cap[:] = 8
    assert count_pairs_above(8, problem, balance(problem)) < without_cap / 4


def count_pairs_above(most: int, problem: ReplicaProblem, solution: ReplicaSolution) -> int:
    """Pairs of a topic and a new broker with more replicas than that."""
    topics = np.repeat(problem.topic_of, 3)
    per_pair = np.bincount(topics * 40 + solution.broker_of, minlength=100 * 40).reshape(100, 40)
    return int((per_pair[:, 30:] > most).sum())
