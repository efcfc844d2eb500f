"""A limit on actions per hour, kept in a ConfigMap."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.operator.action_rate import ActionTimes, CountFailed, HourlyActionLimit
from plimsoll.runtime.virtual_run import DEFAULT_START as NOW
from tests.kube.embedded_api import EmbeddedApi


def action_limit(world: EmbeddedApi) -> HourlyActionLimit:
    return HourlyActionLimit(world.client, clock=world.clock, namespace="kube-system", name="actions", key="moves")


def first(count: int) -> tuple[int, ...]:
    return tuple(range(count))


def test_actions_are_counted_across_processes():
    with EmbeddedApi() as world:
        assert world.do(action_limit(world).reserve(3, lambda room: first(min(room, 2)))) == (0, 1)
        assert world.do(action_limit(world).reserve(3, first)) == (0,)
        assert world.do(action_limit(world).reserve(3, first)) == ()


def test_nothing_starts_where_actions_cannot_be_counted():
    with EmbeddedApi() as world:
        limit = HourlyActionLimit(world.client, clock=world.clock, namespace="nowhere", name="actions", key="moves")
        assert isinstance(world.do(limit.reserve(3, first)), CountFailed)


def test_counted_actions_move_with_the_clock():
    with EmbeddedApi() as world:
        limit = action_limit(world)
        world.do(limit.reserve(1, first))
        limit.on_clock_set(timedelta(hours=-2))
        assert world.do(limit.reserve(1, first)) == (0,)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7200), st.integers(1, 20)), max_size=20))
def test_times_survive_being_written(started: list[tuple[int, int]]):
    times = ActionTimes()
    for second, count in sorted(started):
        times = times.with_actions(count, NOW + timedelta(seconds=second))
    assert ActionTimes.parse(times.format_times()) == times
    last = NOW + timedelta(seconds=max((second for second, _ in started), default=0))
    recent = sum(count for second, count in started if NOW + timedelta(seconds=second) > last - timedelta(hours=1))
    assert times.count_last_hour(last) == recent
