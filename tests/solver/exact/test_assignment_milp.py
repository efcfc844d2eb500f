from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.solver.exact.assignment_milp import (
    Impossible,
    NewNodes,
    Placed,
    Proof,
    Unknown,
    is_worth_searching,
    place_or_prove,
)
from plimsoll.solver.filling.fill import ExistingNodes, FillDemand, fill
from plimsoll.solver.kernels import force_choice
from plimsoll.solver.problem import UNBOUNDED, Effort
from tests.solver.existing_nodes import assert_holds, demand_of, standing_of


def sizes(requests: list[int], counts: list[int]) -> FillDemand:
    return FillDemand(
        requests=np.array([[request, 1] for request in requests]),
        counts=np.array(counts),
        allowed=np.ones((1, len(counts)), dtype=np.bool_),
        per_bin=np.full(len(counts), UNBOUNDED),
        exclusive=np.zeros((len(counts), 0), dtype=np.bool_),
    )


def rooms(free: list[int], multiplicity: list[int] | None = None) -> ExistingNodes:
    return ExistingNodes(
        free=np.array([[cores, 100] for cores in free]),
        kind=np.zeros(len(free), dtype=np.int64),
        multiplicity=np.array(multiplicity or [1] * len(free)),
        taken=np.zeros((len(free), 0), dtype=np.bool_),
    )


def some_way_exists(items: list[int], free: list[int]) -> bool:
    """Try every assignment."""
    return any(
        all(
            sum(item for item, at in zip(items, homes, strict=True) if at == node) <= room
            for node, room in enumerate(free)
        )
        for homes in product(range(len(free)), repeat=len(items))
    )


@given(
    items=st.lists(st.integers(1, 9), min_size=1, max_size=6), free=st.lists(st.integers(1, 14), min_size=1, max_size=3)
)
@settings(max_examples=80, deadline=None)
def test_the_answer_is_that_of_trying_everything(items: list[int], free: list[int]):
    demand, standing = sizes(items, [1] * len(items)), rooms(free)
    with force_choice("plain"):
        settled = place_or_prove(demand, standing, Effort())
    if some_way_exists(items, free):
        assert isinstance(settled, Placed)
        assert_holds(demand, standing, settled.filled)
    else:
        assert isinstance(settled, Impossible)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_caps_keys_and_multiplicities_hold_and_what_filling_places_is_never_called_impossible(seed: int):
    demand, standing = replace(demand_of(seed), hints=None), standing_of(seed)
    demand = replace(demand, counts=np.minimum(demand.counts, 4))
    with force_choice("plain"):
        filled = fill(demand, standing)
        settled = place_or_prove(demand, standing, Effort())
    if isinstance(settled, Placed):
        assert_holds(demand, standing, settled.filled)
        assert not settled.filled.left.any()
    if not filled.left.any():
        assert isinstance(settled, Placed)


def test_what_the_order_of_filling_spoils_is_placed_after_all():
    demand, standing = sizes([5, 4, 3], [2, 2, 4]), rooms([15, 15])
    assert fill(demand, standing).left.any()
    assert isinstance(place_or_prove(demand, standing, Effort()), Placed)


def test_more_than_there_is_in_all_is_impossible_by_sums():
    settled = place_or_prove(sizes([5], [7]), rooms([10], [3]), Effort())
    assert settled == Impossible(proof=Proof.SUMS)


def test_sums_are_taken_over_the_nodes_items_may_lie_on():
    demand = replace(sizes([5, 1], [3, 1]), allowed=np.array([[True, True], [False, True]]))
    standing = replace(rooms([14, 100]), kind=np.array([0, 1]))
    assert place_or_prove(demand, standing, Effort()) == Impossible(proof=Proof.SUMS)


def test_what_sums_allow_and_no_assignment_does_is_impossible_by_search():
    assert place_or_prove(sizes([6, 5, 4], [1, 1, 1]), rooms([8, 8]), Effort()) == Impossible(proof=Proof.SEARCH)


def test_rows_of_too_many_nodes_to_take_apart_are_searched_by_their_sums():
    settled = place_or_prove(sizes([6, 4], [900, 900]), rooms([10], [1_500]), Effort())
    assert isinstance(settled, Placed)
    assert settled.filled.multiplicity.sum() == 1_500


def test_what_is_too_large_to_search_is_unknown():
    demand = sizes([3 + index % 5 for index in range(60)], [1] * 60)
    assert place_or_prove(demand, rooms([30 + index for index in range(60)]), Effort()) == Unknown()


def test_only_little_is_worth_settling():
    demand = sizes([1], [10_000])
    assert not is_worth_searching(demand.counts, np.array([0]))
    assert is_worth_searching(demand.counts, np.array([200]))
    assert is_worth_searching(demand.counts, np.array([500]))
    assert not is_worth_searching(demand.counts, np.array([501]))


class TestNodesThatMayBeOpened:
    """Rows that are not there yet: within limits, for as little money as it takes."""

    @staticmethod
    def opening(price: list[float], use: list[list[int]], room: list[int], *, first: int = 0) -> NewNodes:
        return NewNodes(first=first, price=np.array(price), use=np.array(use), room=np.array(room))

    def opened(self, settled: object) -> list[int]:
        """How many nodes of each row hold anything."""
        assert isinstance(settled, Placed)
        filled = settled.filled
        used = np.unique(filled.placements[:, 0])
        found = np.zeros(int(filled.origin.max()) + 1, dtype=np.int64)
        np.add.at(found, filled.origin[used], filled.multiplicity[used])
        return found.tolist()

    def test_the_cheaper_is_opened(self):
        demand, standing = sizes([4], [3]), rooms([4, 12], [3, 1])
        assert self.opened(place_or_prove(demand, standing, Effort(), self.opening([1, 2], [[1], [1]], [9]))) == [0, 1]
        assert self.opened(place_or_prove(demand, standing, Effort(), self.opening([1, 5], [[1], [1]], [9]))) == [3, 0]

    def test_what_stands_goes_first(self):
        demand, standing = sizes([4], [3]), rooms([8, 4], [1, 3])
        assert self.opened(place_or_prove(demand, standing, Effort(), self.opening([1], [[1]], [9], first=1))) == [1, 1]

    def test_limits_hold(self):
        demand, standing = sizes([4], [3]), rooms([4, 12], [3, 1])
        dear = self.opening([1, 5], [[1], [1]], [2])
        assert self.opened(place_or_prove(demand, standing, Effort(), dear)) == [0, 1]
        none = self.opening([1, 5], [[1], [3]], [2])
        assert place_or_prove(demand, standing, Effort(), none) == Impossible(proof=Proof.SEARCH)
        assert place_or_prove(demand, standing, Effort(), self.opening([1, 5], [[1], [1]], [0])) == Impossible(
            proof=Proof.SEARCH
        )

    @given(items=st.lists(st.integers(1, 9), min_size=1, max_size=5), cores=st.integers(6, 14), most=st.integers(0, 3))
    @settings(max_examples=40, deadline=None)
    def test_the_answer_is_that_of_trying_everything(self, items: list[int], cores: int, most: int):
        demand, standing = sizes(items, [1] * len(items)), rooms([cores], [3])
        with force_choice("plain"):
            settled = place_or_prove(demand, standing, Effort(), self.opening([1], [[1]], [most]))
        assert isinstance(settled, Placed) == (most > 0 and some_way_exists(items, [cores] * most))
