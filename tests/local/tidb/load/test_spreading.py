"""How work falls on instances: evenly, or on hot ones that a group relieves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.tidb.load.spreading import HotLoad, spread_work


def test_without_hot_instances_all_are_equally_busy() -> None:
    assert spread_work(6, base=[4, 4], groups=[2, 2]) == [2, 2, 1, 1]


def test_hot_work_stays_where_it_is_if_there_is_no_group() -> None:
    assert spread_work(6, base=[4, 4, 4], groups=[], heat=HotLoad(instances=1, share=0.5)) == [3, 1.5, 1.5]


def test_a_group_takes_what_hot_instances_have_above_the_target() -> None:
    assert spread_work(6, base=[4, 4, 4], groups=[4], heat=HotLoad(instances=1, share=0.5, target=0.5)) == [
        2,
        1.5,
        1.5,
        1,
    ]


def test_hot_instances_below_the_target_give_nothing_away() -> None:
    assert spread_work(2, base=[4, 4], groups=[4], heat=HotLoad(instances=1, share=0.5, target=0.5)) == [1, 1, 0]


def test_a_group_too_small_is_as_busy_as_those_it_relieves() -> None:
    asked = spread_work(6, base=[4, 4], groups=[1], heat=HotLoad(instances=1, share=1, target=0.5))
    assert asked == pytest.approx([4.8, 0, 1.2])


def test_if_all_are_hot_all_work_is() -> None:
    assert spread_work(6, base=[4, 4], groups=[4], heat=HotLoad(instances=5, share=0.1, target=0.5)) == [2, 2, 2]


def test_no_worker_runs_without_keys() -> None:
    assert spread_work(6, base=[], groups=[]) == []


CORES = st.lists(st.sampled_from([1.0, 2.0, 4.0, 16.0]), max_size=6)


@given(
    work=st.floats(0, 1000),
    base=CORES.filter(bool),
    groups=CORES,
    heat=st.builds(HotLoad, instances=st.integers(0, 7), share=st.floats(0, 1), target=st.floats(0.01, 0.99)),
)
@settings(max_examples=200, deadline=None)
def test_no_work_is_lost_or_made(work: float, base: list[float], groups: list[float], heat: HotLoad) -> None:
    asked = spread_work(work, base=base, groups=groups, heat=heat)
    assert len(asked) == len(base) + len(groups)
    assert min(asked) >= -1e-9
    assert sum(asked) == pytest.approx(work)
