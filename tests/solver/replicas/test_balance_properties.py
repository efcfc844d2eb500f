"""What holds for every placement problem."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.solver.kernels import force_choice
from plimsoll.solver.replicas.balance import balance
from plimsoll.solver.replicas.problem import UNLIMITED, BrokerState, ReplicaProblem
from tests.effort import share_of


@st.composite
def draw_problem(draw: st.DrawFn) -> ReplicaProblem:
    """Small clusters with mixed replication factors, immovable replicas, odd sizes and brokers of every state."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    racks = draw(st.integers(1, 5))
    brokers = draw(st.integers(max(2, racks), 14))
    partitions = draw(st.integers(0, 60))
    mode = draw(st.sampled_from(["full", "add", "remove", "both"]))
    state = np.zeros(brokers, dtype=np.int64)
    changed = draw(st.integers(1, brokers - 1))
    if mode in {"add", "both"}:
        state[brokers - changed :] = BrokerState.NEW
    if mode in {"remove", "both"}:
        state[: max(1, (brokers - changed) // 2)] = BrokerState.LEAVING
    old = np.flatnonzero(state != BrokerState.NEW)
    factors = random.integers(1, min(4, len(old)) + 1, partitions)
    chosen = [random.permutation(old)[:factor] for factor in factors]
    size = random.choice([0.0, 1.0, 1e3, 1e12], partitions) * random.random(partitions)
    strict = draw(st.booleans())
    may_give = np.ones(brokers, dtype=np.bool_)
    may_receive = state != BrokerState.LEAVING
    if strict and mode == "add":
        may_receive = state == BrokerState.NEW
    if strict and mode == "remove":
        may_give = state == BrokerState.LEAVING
    return ReplicaProblem(
        size=size,
        offsets=np.concatenate(([0], np.cumsum(factors))).astype(np.int64),
        broker_of=np.concatenate([*chosen, np.zeros(0)]).astype(np.int64),
        rack_of=random.integers(0, racks, brokers),
        state=state,
        movable=random.random(int(factors.sum())) < draw(st.sampled_from([1.0, 0.7])),
        may_give=may_give,
        may_receive=may_receive,
        weight=random.choice([1.0, 2.0, 5.0], brokers),
        max_replicas=np.full(brokers, draw(st.sampled_from([UNLIMITED, 40]))),
        max_bytes=np.full(brokers, draw(st.sampled_from([1e30, 5e12]))),
        topic_of=random.integers(0, 5, partitions),
        topic_cap=np.full(5, draw(st.sampled_from([2, UNLIMITED]))),
        count_window=draw(st.sampled_from([0.0, 0.01, 0.09, 0.5])),
        byte_window=draw(st.sampled_from([0.0, 0.01, 0.09, 0.5])),
        relief=not strict,
        is_rack_aware=draw(st.booleans()),
    )


@settings(max_examples=share_of(1000), deadline=None)
@given(draw_problem())
def test_every_plan_is_legal_and_no_less_than_its_bounds(problem: ReplicaProblem):
    with force_choice("plain"):
        solution = balance(problem)
    moved = solution.broker_of != problem.broker_of
    assert problem.movable[moved].all()
    source, destination = problem.broker_of[moved], solution.broker_of[moved]
    assert (problem.state[destination] != BrokerState.LEAVING).all()
    if not problem.relief:
        assert problem.may_receive[destination].all()
        assert (problem.may_give[source] | (problem.state[source] == BrokerState.LEAVING)).all()
    assert solution.moves >= solution.least_moves
    assert solution.moved_bytes >= solution.least_bytes * (1 - 1e-9)
    check_partitions(problem, solution.broker_of)
    check_limits(problem, solution.broker_of)
    check_leaving(problem, solution.broker_of, solution.stranded)


def check_partitions(problem: ReplicaProblem, broker_of: np.ndarray) -> None:
    """No two replicas on a broker; racks are no worse than before."""
    for first, last in zip(problem.offsets, problem.offsets[1:], strict=False):
        before, after = problem.broker_of[first:last], broker_of[first:last]
        assert len(set(after.tolist())) == len(after)
        if problem.is_rack_aware:
            assert find_most_per_rack(problem, after) <= max(
                find_most_per_rack(problem, before), -(-len(after) // len(list_racks(problem)))
            )


def list_racks(problem: ReplicaProblem) -> np.ndarray:
    return np.unique(problem.rack_of[problem.state != BrokerState.LEAVING])


def find_most_per_rack(problem: ReplicaProblem, brokers: np.ndarray) -> int:
    return int(np.bincount(problem.rack_of[brokers]).max(initial=0))


def check_limits(problem: ReplicaProblem, broker_of: np.ndarray) -> None:
    """A broker above its limit gets nothing more."""
    sizes = np.repeat(problem.size, np.diff(problem.offsets))
    brokers = len(problem.rack_of)
    before, after = (np.bincount(held, sizes, minlength=brokers) for held in (problem.broker_of, broker_of))
    assert (after <= np.maximum(before, problem.max_bytes) * (1 + 1e-9)).all()
    before, after = (np.bincount(held, minlength=brokers) for held in (problem.broker_of, broker_of))
    assert (after <= np.maximum(before, problem.max_replicas)).all()


def check_leaving(problem: ReplicaProblem, broker_of: np.ndarray, stranded: np.ndarray) -> None:
    """What is still on a leaving broker is immovable, or named as stranded."""
    left = np.flatnonzero((problem.state[broker_of] == BrokerState.LEAVING) & problem.movable)
    assert set(left.tolist()) == set(stranded.tolist())


@settings(max_examples=share_of(300), deadline=None)
@given(draw_problem())
def test_a_plan_applied_and_asked_again_is_no_worse(problem: ReplicaProblem):
    with force_choice("plain"):
        first = balance(problem)
        again = dataclasses.replace(problem, broker_of=first.broker_of)
        second = balance(again)
    assert find_count_violation(again, second.broker_of) <= find_count_violation(again, first.broker_of)
    sizes = np.repeat(problem.size, np.diff(problem.offsets))
    held = np.bincount(first.broker_of, sizes, minlength=len(problem.rack_of)).astype(np.float64)
    if find_count_violation(again, first.broker_of) == 0 and second.windows.are_bytes_inside(held).all():
        assert second.moves == 0


def find_count_violation(problem: ReplicaProblem, broker_of: np.ndarray) -> int:
    windows = balance(problem).windows
    counts = np.bincount(broker_of, minlength=len(problem.rack_of))
    over = np.maximum(np.maximum(counts - windows.high_count, windows.low_count - counts), 0)
    return int(over.sum())


@settings(max_examples=share_of(100), deadline=None)
@given(draw_problem())
def test_compiled_equals_plain(problem: ReplicaProblem):
    with force_choice("plain"):
        plain = balance(problem)
    with force_choice("numba"):
        compiled = balance(problem)
    assert np.array_equal(plain.broker_of, compiled.broker_of)
