from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.solver.consolidation.consolidate import (
    Limits,
    NodeSet,
    Removals,
    RemovalStatus,
    consolidate,
    remove_in_order,
)
from plimsoll.solver.kernels import force_choice
from tests.solver.existing_nodes import cluster_of

seeds = st.integers(0, 10**6)


def lying_on(cluster: NodeSet) -> Counter[tuple[int, int]]:
    nodes = np.repeat(np.arange(len(cluster.free)), np.diff(cluster.starts)).tolist()
    lying: Counter[tuple[int, int]] = Counter()
    for node, (cls, items) in zip(nodes, cluster.movable.tolist(), strict=True):
        lying[node, cls] += items
    return lying


def assert_holds(cluster: NodeSet, found: Removals) -> None:
    """Moves only take what is there; removed nodes end empty; no node is over capacity, cap or permission."""
    lying = lying_on(cluster)
    free = cluster.free.copy()
    gone = set(found.removed.tolist())
    for cls, source, target, items in found.moves.tolist():
        assert source in gone
        assert lying[source, cls] >= items > 0
        assert cluster.allowed[cluster.kind[target], cls]
        lying[source, cls] -= items
        lying[target, cls] += items
        free[source] += items * cluster.requests[cls]
        free[target] -= items * cluster.requests[cls]
        assert cluster.per_bin is None or lying[target, cls] <= cluster.per_bin[cls]
        assert (free[target] >= 0).all()
    assert not any(items for (node, _), items in lying.items() if node in gone)
    assert found.free.tolist() == free.tolist()
    assert cluster.removable[found.removed].all()
    assert set(np.flatnonzero(found.statuses == RemovalStatus.REMOVED).tolist()) == gone
    assert ((found.stuck >= 0) == (found.statuses == RemovalStatus.NO_ROOM)).all()


def equal_nodes(items: list[int], capacity: int = 10) -> NodeSet:
    """One class of items that need 1; so many on each node."""
    return NodeSet(
        requests=np.array([[1, 1]]),
        free=np.array([[capacity - item] * 2 for item in items]),
        price=np.ones(len(items)),
        kind=np.zeros(len(items), dtype=np.int64),
        allowed=np.ones((1, 1), dtype=np.bool_),
        starts=np.arange(len(items) + 1),
        movable=np.array([[0, item] for item in items]),
        removable=np.ones(len(items), dtype=np.bool_),
    )


@given(seed=seeds)
@settings(max_examples=70, deadline=None)
def test_consolidating_breaks_nothing_moves_nothing_twice_and_stays_above_the_bound(seed: int):
    cluster = cluster_of(seed)
    with force_choice("plain"):
        found = consolidate(cluster)
    assert_holds(cluster, found)
    assert not set(found.moves[:, 2].tolist()) & set(found.removed.tolist())
    kept = np.setdiff1d(np.arange(len(cluster.free)), found.removed)
    assert found.bound is not None
    assert cluster.price[kept].sum() >= found.bound - 1e-6


@given(seed=seeds)
@settings(max_examples=70, deadline=None)
def test_removing_in_a_given_order_breaks_nothing(seed: int):
    cluster = cluster_of(seed)
    order = np.random.default_rng(seed).permutation(len(cluster.free))
    with force_choice("plain"):
        found = remove_in_order(cluster, order)
    assert_holds(cluster, found)
    place = {node: at for at, node in enumerate(order.tolist())}
    assert sorted(found.removed.tolist(), key=place.__getitem__) == found.removed.tolist()


@given(seed=seeds)
@settings(max_examples=50, deadline=None)
def test_a_node_found_removable_alone_is_the_same_the_first_of_an_order(seed: int):
    cluster = cluster_of(seed)
    with force_choice("plain"):
        alone = remove_in_order(cluster, np.array([2]))
        first = remove_in_order(cluster, np.arange(2, len(cluster.free)), Limits(removals=1))
    assert_holds(cluster, alone)
    assert alone.statuses[2] == first.statuses[2]


def test_nodes_with_fewest_items_go_and_the_fullest_stay():
    found = consolidate(equal_nodes([6, 2, 1]))
    assert sorted(found.removed.tolist()) == [1, 2]
    assert found.moves[:, 3].sum() == 3
    assert found.bound == pytest.approx(0.9)


def test_what_gives_least_for_its_price_goes_first():
    cluster = replace(equal_nodes([3, 3]), price=np.array([1.0, 3.0]))
    assert consolidate(cluster).removed.tolist() == [1]


def test_a_node_goes_whole_or_not_at_all():
    cluster = equal_nodes([6, 8, 9])
    found = remove_in_order(cluster, np.array([0]))
    assert found.removed.tolist() == []
    assert found.moves.tolist() == []
    assert found.statuses[0] == RemovalStatus.NO_ROOM
    assert found.stuck.tolist() == [0, -1, -1]
    assert found.free.tolist() == cluster.free.tolist()


def test_items_that_were_moved_move_on_with_their_new_node():
    cluster = equal_nodes([1] * 6)
    found = remove_in_order(cluster, np.arange(6))
    assert_holds(cluster, found)
    assert found.removed.tolist() == [0, 1, 2, 3, 4]
    assert found.moves[:, 3].sum() > 6


def test_limits_stop_removals():
    cluster = equal_nodes([1, 1, 1])
    everybody = np.arange(3)
    assert len(remove_in_order(cluster, everybody, Limits(removals=1)).removed) == 1
    one_eviction = Limits(use=np.array([[1], [1], [1]]), spare=np.array([1]))
    stopped = remove_in_order(cluster, everybody, one_eviction)
    assert stopped.statuses.tolist() == [RemovalStatus.REMOVED, RemovalStatus.LIMITED, RemovalStatus.LIMITED]


def test_a_node_whose_price_is_not_worth_the_disruption_stays_and_receives():
    cluster = equal_nodes([1, 2, 3])
    limits = Limits(disruption=np.array([1.0, 9.0, 9.0]), least_saving=0.5)
    found = consolidate(cluster, limits)
    assert found.removed.tolist() == [0]
    assert found.statuses[1] == RemovalStatus.NOT_WORTH_IT


def test_nodes_that_may_not_receive_get_nothing():
    cluster = replace(equal_nodes([1, 5, 5]), receives=np.array([True, True, False]))
    found = remove_in_order(cluster, np.array([0]))
    assert found.moves.tolist() == [[0, 0, 1, 1]]


def test_a_node_that_may_not_receive_is_no_survivor():
    cluster = replace(equal_nodes([2, 2, 5]), receives=np.array([True, True, False]))
    found = consolidate(cluster)
    assert 2 in found.removed.tolist()
    assert len(found.removed) == 2


def test_nodes_without_items_all_go():
    cluster = replace(equal_nodes([0, 0]), movable=np.zeros((0, 2), dtype=np.int64), starts=np.zeros(3, dtype=np.int64))
    found = consolidate(cluster)
    assert sorted(found.removed.tolist()) == [0, 1]
    assert found.bound == 0.0


def test_items_that_share_a_key_do_not_meet():
    cluster = replace(equal_nodes([1, 1, 0]), exclusive=np.array([[True]]), taken=np.array([[True], [True], [False]]))
    found = remove_in_order(cluster, np.array([0, 1]))
    assert found.removed.tolist() == [0]
    assert found.moves.tolist() == [[0, 0, 2, 1]]
    assert found.statuses[1] == RemovalStatus.NO_ROOM


def test_an_empty_cluster_of_one_fixed_node_is_left_alone():
    cluster = replace(equal_nodes([1]), removable=np.array([False]))
    found = consolidate(cluster)
    assert found.removed.tolist() == []
    assert found.statuses.tolist() == [RemovalStatus.FIXED]


def test_a_half_empty_cluster_ends_near_its_bound():
    dice = np.random.default_rng(4)
    requests = np.column_stack(
        (np.clip(dice.lognormal(3, 0.7, (20, 2)), 2, 150).astype(np.int64), np.ones(20, np.int64))
    )
    lines = [(node, int(cls)) for node in range(120) for cls in dice.integers(0, 20, 8)]
    free = np.tile(np.array([1000, 1000, 110]), (120, 1))
    for node, cls in lines:
        free[node] -= requests[cls]
    cluster = NodeSet(
        requests=requests,
        free=free,
        price=np.ones(120),
        kind=np.zeros(120, dtype=np.int64),
        allowed=np.ones((1, 20), dtype=np.bool_),
        starts=np.arange(0, 961, 8),
        movable=np.array([(cls, 1) for _, cls in lines]),
        removable=np.ones(120, dtype=np.bool_),
    )
    with force_choice("plain"):
        found = consolidate(cluster)
    assert found.bound is not None
    assert 120 - len(found.removed) <= found.bound + 2
