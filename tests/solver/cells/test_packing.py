"""Packing in cells is valid item by item, whatever the cells were, and close to the bound."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.solver.bounds.lower_bound import compute_lower_bound
from plimsoll.solver.cell_split import split_into_cells
from plimsoll.solver.cells import packing as cells
from plimsoll.solver.cells.filling_kernel import Bin, CellItems, fill_as_planned, top_up
from plimsoll.solver.cells.packing import pack_in_cells
from plimsoll.solver.kernels import force_choice, is_cache_warm
from plimsoll.solver.problem import UNBOUNDED, Effort, PackingProblem
from tests.solver.packing_problems import demand, faults, n1_types, packing

COARSE = Effort(cells=8, value_vectors=1, gap=1.0)


@pytest.fixture
def cells_from_ten_classes_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cells, "CLASSES", 10)


def unlike(seed: int, *, classes: int = 60) -> PackingProblem:
    """Classes that differ in size, in where they may lie, in how many lie together."""
    random = np.random.default_rng(seed)
    capacity, price = n1_types()
    requests, counts = demand("log-normal", pods=classes, classes=classes, seed=seed)
    allowed = np.ones((len(price), len(counts)), dtype=bool)
    allowed[:6, random.random(len(counts)) < 0.3] = False
    return packing(
        requests,
        counts * random.integers(1, 4, len(counts)),
        capacity,
        price,
        allowed=allowed,
        per_bin=np.where(random.random(len(counts)) < 0.3, 1, UNBOUNDED),
        exclusive=random.random((len(counts), 2)) < 0.05,
    )


@pytest.mark.usefixtures("cells_from_ten_classes_on")
@pytest.mark.parametrize("seed", range(6))
def test_every_item_has_a_bin_it_may_lie_in(seed: int):
    problem = unlike(seed)
    packed = pack_in_cells(problem, COARSE)
    assert faults(problem, packed) == []
    assert packed.left.sum() == 0
    assert packed.cost >= compute_lower_bound(problem, effort=COARSE)


@pytest.mark.usefixtures("cells_from_ten_classes_on")
def test_limits_on_bins_are_kept_and_the_rest_is_left():
    capacity, price = n1_types()
    requests, counts = demand("log-normal", pods=300, classes=300)
    problem = packing(requests, counts, capacity, price, available=np.full(len(price), 1))
    packed = pack_in_cells(problem, COARSE)
    assert faults(problem, packed) == []
    starved = packing(requests, counts, capacity[:1], price[:1], available=np.array([2]))
    packed = pack_in_cells(starved, COARSE)
    assert faults(starved, packed) == []
    assert packed.left.sum() > 0


@pytest.mark.usefixtures("cells_from_ten_classes_on")
def test_what_fits_nowhere_is_left():
    problem = packing([[index] for index in range(1, 31)], [1] * 30, [[20]], [1.0])
    packed = pack_in_cells(problem, COARSE)
    assert faults(problem, packed) == []
    assert packed.left.tolist() == [0] * 20 + [1] * 10


@pytest.mark.skipif(
    os.environ.get("PLIMSOLL_KERNELS") != "numba" and not is_cache_warm(), reason="compiling takes a minute"
)
@pytest.mark.usefixtures("cells_from_ten_classes_on")
def test_machine_code_and_python_pack_alike():
    problem = unlike(1, classes=24)
    with force_choice("plain"):
        plain = pack_in_cells(problem, COARSE)
    with force_choice("numba"):
        assert pack_in_cells(problem, COARSE).patterns == plain.patterns


@pytest.mark.parametrize("kind", ["uniform-fine", "log-normal"])
def test_items_that_all_differ_come_close_to_the_bound(kind: str):
    capacity, price = n1_types()
    problem = packing(*demand(kind, pods=1500, classes=1500, seed=3), capacity, price)
    packed = pack_in_cells(problem, Effort())
    assert faults(problem, packed) == []
    assert packed.cost <= 1.025 * compute_lower_bound(problem, effort=Effort())


def one_cell(sizes: list[int], *, room: int) -> tuple[CellItems, Bin]:
    """Items of one resource in one cell, and an empty bin."""
    unit = float(room)
    cell_items = CellItems(
        takes=np.array([sizes]),
        sizes=np.array([sizes]) / unit,
        units=np.array([unit]),
        weights=np.ones(1),
        values=np.array(sizes) / unit,
        per_bin=np.full(len(sizes), UNBOUNDED),
        keys=np.zeros((len(sizes), 0), dtype=bool),
        starts=np.array([0, len(sizes)]),
        means=np.array([[np.mean(sizes) / unit]]),
    )
    return cell_items, Bin(np.array([room]), np.zeros(0, dtype=bool), np.zeros(len(sizes), dtype=np.int64))


def test_a_bin_gets_items_that_sum_up_to_what_was_planned():
    cell_items, bin_ = one_cell([10, 17, 22, 31], room=100)
    left = np.ones(4, dtype=np.int64)
    fill_as_planned(cell_items, np.array([2]), left, bin_)
    assert (bin_.content.tolist(), left.tolist()) == ([0, 1, 1, 0], [1, 0, 0, 1])


def test_a_bin_planned_too_full_gets_fewer_items():
    cell_items, bin_ = one_cell([40, 50, 60], room=100)
    left = np.ones(3, dtype=np.int64)
    fill_as_planned(cell_items, np.array([3]), left, bin_)
    assert bin_.free[0] >= 0
    assert bin_.content.sum() == 2
    assert (bin_.content + left).tolist() == [1, 1, 1]


def test_a_bin_is_topped_up_with_the_most_valuable_that_fits():
    cell_items, bin_ = one_cell([10, 70, 35, 120], room=100)
    left = np.array([9, 1, 1, 1])
    top_up(cell_items, np.arange(4), left, bin_)
    assert bin_.content.tolist() == [3, 1, 0, 0]


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_cells_hold_one_kind_and_cover_every_class(classes: int, wanted: int, seed: int):
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 3, classes)
    found = split_into_cells(random.random((classes, 2)), np.ones(classes), kinds, wanted)
    assert sorted(set(found.tolist())) == list(range(found.max() + 1))
    assert all(len(set(kinds[found == index].tolist())) == 1 for index in range(found.max() + 1))
    assert found.max() + 1 == max(len(set(kinds.tolist())), min(wanted, classes))
