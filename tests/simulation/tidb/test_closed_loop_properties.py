"""No oscillation: under any constant load, with any valid thresholds, the number of instances becomes constant.

The load falls on instances in both ways there are: spread evenly, or fixed on hot instances whose excess over the
target moves to groups. Quiet means longer than anything takes: cooldowns, warm-up, starting, draining, confirmation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.tidb.load.curves import Load
from plimsoll.objects.api.tidb import AutoResource
from plimsoll.simulation.tidb.simulated_sets import Delays
from plimsoll.tidb.model.components import Component
from tests.simulation.tidb.builders import cluster, loop_of, rest, scaled, setting

if TYPE_CHECKING:
    from plimsoll.simulation.tidb.closed_loop import ClosedLoop

STEP_S = 120.0
QUIET_TURNS = 14
MOST_TURNS = 250
CORES = 4
DELAYS = Delays(start_s=60, drain_s=150, warm_up_s=120)

THRESHOLDS = (
    st.tuples(st.integers(1, 99), st.integers(0, 98))
    .filter(lambda pair: pair[1] < pair[0])
    .map(lambda pair: (pair[0] / 100, pair[1] / 100))
)
INTERVALS = st.tuples(st.sampled_from([0, 60, 300]), st.sampled_from([0, 60, 500]))
TYPES = st.dictionaries(
    st.sampled_from(["big", "medium", "small"]),
    st.builds(
        lambda cpu, count: AutoResource(cpu=cpu, memory="4Gi", storage="20Gi", count=count),
        st.sampled_from(["500m", "1", "2", "4", "8"]),
        st.sampled_from([None, 0, 1, 2, 4]),
    ),
    max_size=3,
)
PERCENT = st.integers(0, 100).map(lambda number: number / 100)
COMPONENTS = pytest.mark.parametrize("component", [Component.TIKV, Component.TIDB])


class LoopCase(NamedTuple):
    """A loop, and what its cluster has of cores and disks before anything is scaled."""

    loop: ClosedLoop
    cores: float
    storage_gib: float


@st.composite
def worlds(draw: st.DrawFn, component: Component) -> LoopCase:
    one = scaled(
        cpu=draw(THRESHOLDS),
        storage=draw(st.none() | THRESHOLDS) if component is Component.TIKV else None,
        types=draw(TYPES),
        intervals=draw(INTERVALS),
    )
    replicas = draw(st.integers(1, 5))
    made = setting(
        tikv=one if component is Component.TIKV else None,
        tidb=one if component is Component.TIDB else None,
        base=cluster(tikv=replicas, tidb=replicas),
        nodes=replicas + draw(st.integers(0, 7)),
        delays=DELAYS,
        is_tidb_skewed=True,
    )
    return LoopCase(loop=loop_of(made, component), cores=CORES * replicas, storage_gib=100 * replicas)


def even_load(draw: Any, world: LoopCase) -> Load:
    """Up to twice what the cluster can do, and half as much data again as it can hold."""
    work = 2 * draw(PERCENT) * world.cores
    return Load(tikv_cores=work, tidb_cores=work, storage_gib=1.5 * draw(PERCENT) * world.storage_gib)


def hot_load(draw: Any, world: LoopCase) -> Load:
    """Some instances are busier than the others, none has more than it can do.

    A saturated one hides how much work there is: it has less of it when a group takes some, by metrics, and more when
    the group goes to make room for an instance of the cluster itself. No rule can come to rest on that.
    """
    instances = int(world.cores / CORES)
    hot = min(draw(st.integers(1, 3)), instances)
    on_hot = draw(PERCENT) * hot * CORES
    work = on_hot + draw(PERCENT) * (instances - hot) * CORES
    return Load(tikv_cores=work, tidb_cores=work, hot_instances=hot, hot_share=on_hot / work if work else 0.0)


def comes_to_rest(world: LoopCase, load: Load) -> bool:
    found = rest(world.loop, load, step_s=STEP_S, quiet_turns=QUIET_TURNS, most_turns=MOST_TURNS)
    return found is not None


@COMPONENTS
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_it_comes_to_rest_if_work_is_spread_evenly(component: Component, data: st.DataObject) -> None:
    world = data.draw(worlds(component))
    assert comes_to_rest(world, even_load(data.draw, world))


@COMPONENTS
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_it_comes_to_rest_if_instances_are_hot(component: Component, data: st.DataObject) -> None:
    world = data.draw(worlds(component))
    assert comes_to_rest(world, hot_load(data.draw, world))


@COMPONENTS
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_it_comes_to_rest_after_a_hot_time(component: Component, data: st.DataObject) -> None:
    """Groups stand by then, and the load that made them is gone."""
    world = data.draw(worlds(component))
    before = hot_load(data.draw, world)
    for turn in range(-20, 0):
        world.loop.reconcile(before, now_s=turn * STEP_S)
    drawn = even_load if data.draw(st.booleans()) else hot_load
    assert comes_to_rest(world, drawn(data.draw, world))
