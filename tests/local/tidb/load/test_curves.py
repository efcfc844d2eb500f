"""Curves of load: what they say between their points, and which texts are none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput
from plimsoll.local.tidb.load.curves import IDLE, Load, LoadCurve, read_curve

DAY = """\
# Reads of a shop, from midnight.
seconds, tikv_cores, tidb_cores, storage_gib, hot_instances, hot_share
0,       4,          2,          100,         0,             0

600,     8,          6,          200,         1,             0.5
1200,    2,          2,          200,         0,             0.1
"""


def test_a_curve_is_what_its_points_say_at_them() -> None:
    curve = read_curve(DAY)
    assert curve.compute_load(0) == Load(tikv_cores=4, tidb_cores=2, storage_gib=100)
    assert curve.compute_load(600) == Load(tikv_cores=8, tidb_cores=6, storage_gib=200, hot_instances=1, hot_share=0.5)
    assert curve.duration_s == 1200


def test_it_is_linear_between_points() -> None:
    load = read_curve(DAY).compute_load(150)
    assert (load.tikv_cores, load.tidb_cores, load.storage_gib) == (5, 3, 125)
    assert load.hot_share == 0.125


def test_how_many_are_hot_changes_at_points() -> None:
    curve = read_curve(DAY)
    assert [curve.compute_load(seconds).hot_instances for seconds in (599, 600, 1199, 1200)] == [0, 1, 1, 0]


def test_before_and_after_its_points_nothing_changes() -> None:
    curve = read_curve("seconds,tikv_cores\n10,3\n20,5\n")
    assert curve.compute_load(0).tikv_cores == 3
    assert curve.compute_load(1e9).tikv_cores == 5


def test_one_that_repeats_begins_again() -> None:
    curve = read_curve(DAY, repeats=True)
    assert curve.compute_load(1200) == curve.compute_load(0)
    assert curve.compute_load(3 * 1200 + 150) == curve.compute_load(150)


def test_one_point_is_a_constant_load() -> None:
    curve = read_curve("seconds,tidb_cores\n0,3\n", repeats=True)
    assert curve.compute_load(0) == curve.compute_load(1e6) == Load(tidb_cores=3)


def test_without_points_the_load_is_idle() -> None:
    assert LoadCurve().compute_load(5) == IDLE


def test_columns_may_stand_in_any_order_and_be_left_out() -> None:
    assert read_curve("tidb_cores,seconds\n3,0\n").compute_load(0) == Load(tidb_cores=3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "there is no column seconds", id="empty"),
        pytest.param("seconds,tikv_cores\n", "holds no point", id="no points"),
        pytest.param("tikv_cores\n3\n", "line 1: there is no column seconds", id="no time"),
        pytest.param("seconds,cpu\n0,1\n", "line 1: 'cpu' is none of the columns", id="unknown column"),
        pytest.param("seconds,seconds\n0,1\n", "line 1: seconds occurs twice", id="column twice"),
        pytest.param("seconds,tikv_cores\n0\n", "line 2: has 1 cells, the first row has 2", id="short row"),
        pytest.param("seconds\n0\n\n0\n", "line 4.seconds: is not after the row before", id="time stands still"),
        pytest.param("seconds,tikv_cores\n0,many\n", "line 2.tikv_cores: 'many'", id="no number"),
        pytest.param("seconds,tikv_cores\n0,-1\n", "line 2.tikv_cores: '-1'", id="negative"),
        pytest.param("seconds,tikv_cores\n0,nan\n", "line 2.tikv_cores: 'nan'", id="not a number"),
        pytest.param("seconds,tikv_cores\n0,1e999\n", "line 2.tikv_cores: '1e999'", id="infinite"),
        pytest.param("seconds,hot_instances\n0,1.5\n", "line 2.hot_instances: 1.5", id="part of an instance"),
        pytest.param("seconds,hot_share\n0,1.1\n", "line 2.hot_share: 1.1", id="more than all"),
    ],
)
def test_what_is_no_curve(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem.replace(".", r"\.")):
        read_curve(text)


@given(
    heights=st.lists(st.floats(0, 1e6), min_size=1, max_size=8),
    seconds=st.floats(0, 1e5),
    repeats=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_a_curve_never_leaves_the_range_of_its_points(heights: list[float], seconds: float, *, repeats: bool) -> None:
    rows = "".join(f"{60 * index},{height!r}\n" for index, height in enumerate(heights))
    cores = read_curve(f"seconds,tikv_cores\n{rows}", repeats=repeats).compute_load(seconds).tikv_cores
    assert min(heights) * (1 - 1e-9) <= cores <= max(heights) * (1 + 1e-9)
