from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.solver.kernels import force_choice
from plimsoll.solver.knapsack.item_values import compute_least_cost
from plimsoll.solver.layout import build_layout
from plimsoll.solver.packing.mixed import pack_mixed
from plimsoll.solver.problem import UNBOUNDED, Effort, Packing, PackingProblem
from tests.solver.checks import violations
from tests.solver.workloads import n1_types, packing, pods, workload

GIB = 1024


@pytest.fixture(autouse=True)
def kernels_run_as_they_are_written():
    with force_choice("plain"):
        yield


def packed_validly(problem: PackingProblem) -> Packing:
    packed = pack_mixed(problem, Effort())
    assert violations(problem, packed) == []
    return packed


def bins_by_type(problem: PackingProblem, packed: Packing) -> list[int]:
    opened = [0] * len(problem.price)
    for filling in packed.patterns:
        opened[filling.type] += filling.bins
    return opened


def ratio_to_volume(problem: PackingProblem, packed: Packing) -> float:
    layout = build_layout(problem)
    return packed.cost / float(compute_least_cost(layout.instance, layout.demand.left) @ layout.demand.left)


def test_types_are_mixed_where_that_is_cheaper_than_either_alone():
    problem = packing([[3000, 3 * GIB], [1000, GIB]], [5, 4], [[4000, 16 * GIB], [16000, 64 * GIB]], [0.20, 0.72])
    packed = packed_validly(problem)
    assert bins_by_type(problem, packed) == [1, 1]
    assert packed.cost == pytest.approx(0.92)


def test_the_last_item_gets_the_small_machine():
    problem = packing([[3000, 10 * GIB]], [6], [[4000, 15 * GIB], [16000, 60 * GIB]], [0.189999, 0.759996])
    packed = packed_validly(problem)
    assert bins_by_type(problem, packed) == [1, 1]
    assert packed.cost == pytest.approx(0.949995)


def test_one_bin_for_all_the_rest_is_taken_when_it_is_cheaper_than_several():
    problem = packing([[2, 1], [1, 2]], [1, 1], [[2, 2], [3, 3]], [1.0, 1.5])
    packed = packed_validly(problem)
    assert bins_by_type(problem, packed) == [0, 1]


def test_equal_bins_are_one_filling():
    packed = packed_validly(packing([[1]], [1000], [[10]], [1.0]))
    assert [(filling.bins, filling.items) for filling in packed.patterns] == [(100, (10,))]


def test_an_item_too_large_for_every_type_stays_and_blocks_nothing():
    packed = packed_validly(packing([[5], [50]], [4, 3], [[10]], [1.0]))
    assert packed.left.tolist() == [0, 3]
    assert packed.cost == 2.0


def test_nothing_to_pack_costs_nothing():
    packed = packed_validly(packing([[5]], [0], [[10]], [1.0]))
    assert (packed.patterns, packed.cost) == ((), 0.0)


def test_without_types_everything_stays():
    packed = packed_validly(packing([[5]], [7], np.zeros((0, 1), dtype=np.int64), []))
    assert packed.left.tolist() == [7]


def test_a_type_for_nothing_is_filled_first():
    problem = packing([[1]], [20], [[10], [10]], [1.0, 0.0], available=[UNBOUNDED, 1])
    assert bins_by_type(problem, packed_validly(problem)) == [1, 1]


def test_items_go_only_where_they_are_allowed():
    problem = packing([[1], [1]], [10, 10], [[10], [10]], [1.0, 5.0], allowed=[[True, False], [True, True]])
    packed = packed_validly(problem)
    assert not packed.left.any()
    assert bins_by_type(problem, packed) == [1, 1]


def test_one_item_of_a_class_in_a_bin_on_request():
    packed = packed_validly(packing([[1]], [7], [[10]], [1.0], per_bin=[1]))
    assert packed.cost == 7.0


def test_classes_that_share_a_key_never_meet_in_a_bin():
    exclusive = [[True, False], [True, True], [False, True], [False, False]]
    problem = packing([[1], [1], [1], [1]], [3, 4, 5, 6], [[10]], [1.0], exclusive=exclusive)
    packed = packed_validly(problem)
    assert not packed.left.any()
    assert packed.cost == 9.0


def test_capped_classes_share_their_bins_with_others():
    capacity, price = n1_types()
    requests = [[400, 1024, 0, 1, 0], [300, 512, 0, 1, 0]]
    apart = sum(
        packed_validly(packing([request], [count], capacity, price, per_bin=[cap])).cost
        for request, count, cap in zip(requests, (60, 600), (1, UNBOUNDED), strict=True)
    )
    total_takes = packed_validly(packing(requests, [60, 600], capacity, price, per_bin=[1, UNBOUNDED])).cost
    assert total_takes < 0.9 * apart


def test_no_more_bins_than_there_are():
    problem = packing([[1]], [100], [[10], [10]], [1.0, 2.0], available=[3, 4])
    packed = packed_validly(problem)
    assert bins_by_type(problem, packed) == [3, 4]
    assert packed.left.tolist() == [30]


def test_a_scarce_type_is_kept_for_classes_without_another():
    problem = packing(
        [[5], [5]], [4, 4], [[10], [10]], [1.0, 2.0], available=[2, 2], allowed=[[True, True], [True, False]]
    )
    assert not packed_validly(problem).left.any()


def test_when_room_binds_the_dearer_type_that_needs_less_of_it_is_taken():
    problem = packing([[1]], [40], [[10], [10]], [1.0, 1.2], use=[[2], [1]], room=[4])
    packed = packed_validly(problem)
    assert not packed.left.any()
    assert bins_by_type(problem, packed) == [0, 4]


def test_when_room_binds_many_small_items_go_before_a_large_one():
    problem = packing([[10], [1]], [1, 10], [[10]], [1.0], use=[[1]], room=[1])
    assert packed_validly(problem).left.tolist() == [1, 0]


def test_values_from_outside_replace_the_portfolio():
    problem = workload(300, 8, 19)
    packed = pack_mixed(problem, Effort(), values=problem.requests[:, 0].astype(np.float64))
    assert violations(problem, packed) == []
    assert not packed.left.any()


@pytest.mark.parametrize("shape", ["uniform", "log-normal"])
def test_a_hundred_pods_come_near_the_volume_bound(shape: str):
    problem = workload(100, 12, 19, 2, shape=shape)
    assert ratio_to_volume(problem, packed_validly(problem)) < 1.10


def test_ten_thousand_pods_come_within_two_percent_of_the_volume_bound():
    problem = workload(10_000, 20, 19, 4)
    assert ratio_to_volume(problem, packed_validly(problem)) < 1.02


def test_the_work_does_not_grow_with_the_items():
    requests, counts = pods(1_000, 8, 1)
    few = packed_validly(packing(requests, counts * 10, *n1_types()))
    many = packed_validly(packing(requests, counts * 1_000, *n1_types()))
    assert len(many.patterns) <= 3 * len(few.patterns)


@st.composite
def packings(draw: st.DrawFn, *, limited: bool = True) -> PackingProblem:
    classes, types = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    given: dict[str, object] = {}
    if limited:
        given = {
            "allowed": random.random((types, classes)) < 0.8,
            "per_bin": random.choice([1, 2, UNBOUNDED], classes),
            "exclusive": random.random((classes, draw(st.integers(0, 2)))) < 0.3,
            "available": random.choice([0, 2, UNBOUNDED], types),
            "use": random.integers(0, 4, (types, 1)),
            "room": random.integers(0, 40, 1),
        }
    capacity = random.integers(10, 60, (types, 2))
    price = np.round(capacity @ np.array([0.03, 0.01]) + 0.1 * random.random(types), 3)
    return packing(random.integers(0, 9, (classes, 2)), random.integers(0, 60, classes), capacity, price, **given)


@settings(max_examples=25, deadline=None)
@given(packings())
def test_every_answer_keeps_every_rule(problem: PackingProblem):
    packed_validly(problem)


@settings(max_examples=15, deadline=None)
@given(packings(limited=False))
def test_everything_is_placed_when_nothing_limits_it(problem: PackingProblem):
    assert not packed_validly(problem).left.any()


@settings(max_examples=15, deadline=None)
@given(packings(), st.randoms(use_true_random=False))
def test_the_order_of_classes_and_types_does_not_change_the_cost(problem: PackingProblem, random: Random):
    classes, types = list(range(len(problem.counts))), list(range(len(problem.price)))
    random.shuffle(classes)
    random.shuffle(types)
    shuffled = PackingProblem(
        requests=problem.requests[classes],
        counts=problem.counts[classes],
        capacity=problem.capacity[types],
        price=problem.price[types],
        allowed=problem.allowed[np.ix_(types, classes)],
        per_bin=problem.per_bin[classes],
        exclusive=problem.exclusive[classes],
        available=problem.available[types],
        use=problem.use[types],
        room=problem.room,
    )
    one, other = pack_mixed(problem, Effort()), pack_mixed(shuffled, Effort())
    assert one.cost == pytest.approx(other.cost, rel=1e-12)
    assert one.left.sum() == other.left.sum()
