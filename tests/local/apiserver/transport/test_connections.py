"""Deadlines of connections, in virtual time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.local.apiserver.transport.connections import IdleConnections, MovingDeadline
from plimsoll.runtime.virtual_run import VirtualRun

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world() -> Iterator[VirtualRun]:
    with VirtualRun() as run:
        yield run


def test_it_runs_out_at_the_deadline_and_only_once(world: VirtualRun):
    ends: list[float] = []
    MovingDeadline(world.loop, lambda: ends.append(world.loop.time())).set_deadline(5.0)
    world.advance_by(4.9)
    assert ends == []
    world.advance_by(100)
    assert ends == [5.0]


@pytest.mark.parametrize("deadlines", [[5.0, 9.0], [9.0, 5.0, 9.0], [3.0, None, 9.0]])
def test_the_last_deadline_counts(world: VirtualRun, deadlines: list[float | None]):
    ends: list[float] = []
    patience = MovingDeadline(world.loop, lambda: ends.append(world.loop.time()))
    for deadline in deadlines:
        patience.set_deadline(deadline)
    world.advance_by(100)
    assert ends == [9.0]


@pytest.mark.parametrize("deadline", [None, 5.0])
def test_nothing_comes_after_the_end(world: VirtualRun, deadline: float | None):
    ends: list[float] = []
    patience = MovingDeadline(world.loop, lambda: ends.append(0.0))
    patience.set_deadline(3.0)
    patience.set_deadline(deadline)
    patience.end()
    world.advance_by(100)
    assert ends == []
    assert not world.loop.has_timers()


@given(st.lists(st.tuples(st.integers(0, 20), st.one_of(st.none(), st.integers(1, 50)))))
def test_it_runs_out_exactly_when_a_deadline_passes_unmoved(steps: list[tuple[int, int | None]]):
    with VirtualRun() as run:
        ends: list[float] = []
        patience = MovingDeadline(run.loop, lambda: ends.append(run.loop.time()))
        expected: list[float] = []
        deadline: float | None = None
        for wait, allowed in [*steps, (1000, None)]:
            if deadline is not None and deadline <= run.loop.time() + wait:
                expected.append(deadline)
                deadline = None
            run.advance_by(wait)
            if ends != expected:
                break
            deadline = None if allowed is None else run.loop.time() + allowed
            patience.set_deadline(deadline)
        assert ends == expected


def test_the_connection_that_idled_longest_is_closed_first():
    gone: list[str] = []
    waiting = IdleConnections()
    for name in ("a", "b", "c", "d"):
        waiting.begin(name, partial(gone.append, name))
    waiting.begin("a", lambda: gone.append("a"))
    waiting.end("c")
    assert [waiting.disconnect_one() for _ in range(4)] == [True, True, True, False]
    assert gone == ["b", "d", "a"]
