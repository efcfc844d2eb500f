from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.solver.filling.fill import ExistingNodes, FillDemand, FillResult, fill, order_most_constrained_first
from plimsoll.solver.kernels import force_choice
from tests.solver.existing_nodes import assert_holds, cap_of, demand_of, standing_of

seeds = st.integers(0, 10**6)


def by_given_row(filled: FillResult) -> list[list[int]]:
    """(class, given row, nodes of it that are filled so, items in each of them)."""
    rows, classes, items = filled.placements.T
    reported: list[list[int]] = np.column_stack(
        (classes, filled.origin[rows], filled.multiplicity[rows], items)
    ).tolist()
    return reported


def simple(requests: list[list[int]], counts: list[int], allowed: list[list[bool]] | None = None) -> FillDemand:
    every = np.ones((1, len(counts)), dtype=np.bool_)
    return FillDemand(
        requests=np.array(requests),
        counts=np.array(counts),
        allowed=every if allowed is None else np.array(allowed, dtype=np.bool_),
    )


def nodes(free: list[list[int]], multiplicity: list[int] | None = None, kind: list[int] | None = None) -> ExistingNodes:
    return ExistingNodes(
        free=np.array(free),
        kind=np.array(kind or [0] * len(free)),
        multiplicity=None if multiplicity is None else np.array(multiplicity),
    )


@given(seed=seeds)
@settings(max_examples=120, deadline=None)
def test_nothing_is_over_a_capacity_a_cap_or_a_key_and_every_item_is_accounted_for(seed: int):
    demand, standing = demand_of(seed), standing_of(seed)
    with force_choice("plain"):
        assert_holds(demand, standing, fill(demand, standing))


@given(seed=seeds)
@settings(max_examples=80, deadline=None)
def test_what_is_left_fits_on_no_node(seed: int):
    demand, standing = demand_of(seed), standing_of(seed)
    assert demand.exclusive is not None
    with force_choice("plain"):
        filled = fill(demand, standing)
    for cls in np.flatnonzero(filled.left > 0).tolist():
        for row, origin in enumerate(filled.origin.tolist()):
            lines = filled.placements[filled.placements[:, 0] == row]
            here = int(lines[lines[:, 1] == cls, 2].sum())
            held = standing.taken[origin] | demand.exclusive[lines[:, 1]].any(axis=0)  # type: ignore[index]
            need = demand.requests[cls]
            fits = ((need == 0) | (need <= filled.free[row])).all() and here < cap_of(demand, cls, origin)
            free_of_keys = not (held & demand.exclusive[cls]).any()
            assert not (demand.allowed[standing.kind[origin], cls] and fits and free_of_keys)


@given(seed=seeds)
@settings(max_examples=60, deadline=None)
def test_the_same_question_gets_the_same_answer_and_keeps_its_arrays(seed: int):
    demand, standing = demand_of(seed), standing_of(seed)
    with force_choice("plain"):
        first, second = fill(demand, standing), fill(demand, standing)
    assert first.placements.tolist() == second.placements.tolist()
    assert demand.counts.tolist() == demand_of(seed).counts.tolist()
    assert standing.free.tolist() == standing_of(seed).free.tolist()


@given(seed=seeds)
@settings(max_examples=60, deadline=None)
def test_a_row_of_many_nodes_holds_as_much_of_one_class_as_many_rows_do(seed: int):
    dice = np.random.default_rng(seed)
    demand = simple([dice.integers(1, 6, 2).tolist()], [int(dice.integers(1, 60))])
    free, many = dice.integers(0, 20, (4, 2)), dice.integers(1, 6, 4)
    with force_choice("plain"):
        total_takes = fill(demand, nodes(free.tolist(), many.tolist()))
        apart = fill(demand, nodes(np.repeat(free, many, axis=0).tolist()))
    assert total_takes.left.tolist() == apart.left.tolist()


def test_a_row_is_split_into_full_ones_one_with_the_rest_and_untouched_ones():
    filled = fill(simple([[3, 1]], [8]), nodes([[10, 10]], [5]))
    assert by_given_row(filled) == [[0, 0, 2, 3], [0, 0, 1, 2]]
    assert filled.multiplicity.tolist() == [2, 1, 2]
    assert filled.free.tolist() == [[1, 7], [4, 8], [10, 10]]


def test_parts_of_a_split_row_keep_what_was_there_before():
    filled = fill(simple([[6, 1], [3, 1]], [3, 1]), nodes([[10, 10]], [3]), np.array([0, 1]))
    assert sorted(by_given_row(filled)) == [[0, 0, 1, 1], [0, 0, 2, 1], [1, 0, 1, 1]]


def test_an_item_goes_to_the_node_of_its_own_shape():
    much_memory, much_cpu = [100, 1600], [1600, 100]
    filled = fill(simple([[80, 80]], [1]), nodes([much_memory, [100, 100], much_cpu]))
    assert by_given_row(filled) == [[0, 1, 1, 1]]


def test_classes_with_fewest_nodes_come_first_then_larger_ones():
    demand = simple([[1, 1], [9, 9], [1, 1]], [1, 1, 1], [[True, True, True], [True, True, False]])
    standing = nodes([[10, 10], [10, 10]], kind=[0, 1])
    assert order_most_constrained_first(demand, standing).tolist() == [2, 1, 0]


def test_tiers_come_before_everything():
    demand, standing = simple([[1, 1], [9, 9]], [1, 1]), nodes([[10, 10]])
    assert order_most_constrained_first(demand, standing, np.array([0, 1])).tolist() == [0, 1]


def test_a_given_order_decides_which_class_gets_the_room():
    demand, standing = simple([[6, 6], [6, 6]], [1, 1]), nodes([[10, 10]])
    assert fill(demand, standing, np.array([1, 0])).left.tolist() == [1, 0]


def test_a_hint_is_followed_where_it_fits():
    demand = simple([[2, 2]], [1])
    hinted = FillDemand(requests=demand.requests, counts=demand.counts, allowed=demand.allowed, hints=np.array([1]))
    assert by_given_row(fill(hinted, nodes([[3, 3], [900, 900]]))) == [[0, 1, 1, 1]]
    assert by_given_row(fill(hinted, nodes([[3, 3], [1, 1]]))) == [[0, 0, 1, 1]]


def test_a_node_that_is_overcommitted_takes_items_that_ask_nothing_of_what_it_lacks():
    filled = fill(simple([[0, 5], [1, 5]], [1, 1]), nodes([[-4, 10]]))
    assert filled.left.tolist() == [0, 1]


def test_amounts_in_bytes_and_unbounded_counts_stay_within_64_bits():
    tebibyte = 1 << 40
    filled = fill(simple([[0, tebibyte], [0, 0]], [524_288, 524_288]), nodes([[0, 3 * tebibyte]], [10_000]))
    assert filled.left.tolist() == [524_288 - 30_000, 0]


def test_aligned_bins_place_more_than_first_fit_where_room_is_scarce():
    dice = np.random.default_rng(1)
    requests = np.clip(dice.lognormal(3, 1, (150, 2)), 1, 400).astype(np.int64)
    demand = FillDemand(requests=requests, counts=np.full(150, 12), allowed=np.ones((1, 150), dtype=np.bool_))
    free = (dice.random((150, 2)) * dice.choice([200, 400, 800], (150, 1))).astype(np.int64)
    standing = ExistingNodes(free=free, kind=np.zeros(150, dtype=np.int64))
    first_fit = free.copy()
    placed = 0
    for cls in order_most_constrained_first(demand, standing).tolist():
        room = (first_fit // requests[cls]).min(axis=1)
        taken = np.minimum(room, (12 - (np.cumsum(room) - room)).clip(0))
        first_fit -= taken[:, None] * requests[cls]
        placed += int(taken.sum())
    with force_choice("plain"):
        assert fill(demand, standing).count_placed().sum() > 1.1 * placed


@pytest.mark.parametrize("rows", [0, 1])
def test_nothing_to_place_or_nowhere_to_place_it_is_no_problem(rows: int):
    empty = ExistingNodes(free=np.zeros((rows, 2), dtype=np.int64), kind=np.zeros(rows, dtype=np.int64))
    assert fill(simple([[1, 1]], [3]), empty).left.tolist() == [3]
    no_demand = FillDemand(
        requests=np.zeros((0, 2), dtype=np.int64),
        counts=np.zeros(0, dtype=np.int64),
        allowed=np.ones((1, 0), dtype=np.bool_),
    )
    assert fill(no_demand, empty).placements.tolist() == []
