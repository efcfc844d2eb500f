"""A run step by step: time passes when the test says so, and everything due on the way happens."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from plimsoll.core.errors import LeftVirtualTime
from plimsoll.runtime.virtual_run import VirtualRun

START = datetime(2025, 3, 1, 12, tzinfo=UTC)


def ticking(run: VirtualRun, *, every_s: float) -> list[float]:
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            await run.clock.sleep(every_s)
            ticks.append(run.clock.monotonic_s())

    run.spawn(tick(), name="ticking")
    return ticks


def test_advancing_fires_every_timer_up_to_and_including_the_last_instant():
    with VirtualRun(start=START) as run:
        ticks = ticking(run, every_s=10)
        run.advance_by(30)
        assert ticks == [10.0, 20.0, 30.0]
        run.advance_by(9.5)
        assert ticks == [10.0, 20.0, 30.0]
        assert run.clock.monotonic_s() == 39.5
        run.advance_by(0.5)
        assert ticks[-1] == 40.0


def test_advancing_to_a_date():
    with VirtualRun(start=START) as run:
        ticks = ticking(run, every_s=60)
        run.advance_to(START + timedelta(minutes=5))
        assert len(ticks) == 5
        assert run.clock.now() == START + timedelta(minutes=5)


def test_what_a_timer_sets_off_is_done_before_the_step_ends():
    with VirtualRun() as run:
        done: list[str] = []

        async def chain() -> None:
            await run.clock.sleep(10)
            for _ in range(20):
                await asyncio.sleep(0)
            done.append("all of it")

        run.spawn(chain())
        run.advance_by(10)
        assert done == ["all of it"]


def test_time_does_not_go_back():
    with VirtualRun(start=START) as run:
        run.advance_by(60)
        with pytest.raises(ValueError, match="cannot go back"):
            run.advance_to(START)
        with pytest.raises(ValueError, match="cannot go back"):
            run.advance_by(-1)


def test_settling_takes_no_time():
    with VirtualRun() as run:
        ticks = ticking(run, every_s=1)
        done: list[str] = []

        async def act() -> None:
            await asyncio.sleep(0)
            done.append("acted")

        run.spawn(act())
        run.settle()
        assert (done, ticks, run.clock.monotonic_s()) == (["acted"], [], 0.0)


def test_until_gives_the_result_and_leaves_the_rest_running():
    with VirtualRun() as run:
        ticks = ticking(run, every_s=10)
        assert run.run_until(asyncio.sleep(25, "slept")) == "slept"
        assert ticks == [10.0, 20.0]
        run.advance_by(5)
        assert ticks == [10.0, 20.0, 30.0]


def test_a_spawned_task_that_fails_ends_the_step_it_fails_in():
    async def fail(run: VirtualRun) -> None:
        await run.clock.sleep(5)
        raise KeyError("broken")

    with VirtualRun() as run:
        run.spawn(fail(run))
        run.advance_by(4)
        with pytest.raises(KeyError, match="broken"):
            run.advance_by(60)
        assert run.clock.monotonic_s() == 5.0
        run.advance_by(1)
        assert run.clock.monotonic_s() == 6.0


def test_a_spawned_task_that_fails_ends_until():
    async def fail(run: VirtualRun) -> None:
        await run.clock.sleep(5)
        raise KeyError("broken")

    with VirtualRun() as run:
        run.spawn(fail(run))
        with pytest.raises(KeyError, match="broken"):
            run.run_until(run.clock.sleep(60))


def test_awaiting_a_failed_task_reports_its_error_once():
    async def fail(run: VirtualRun) -> None:
        await run.clock.sleep(5)
        raise KeyError("broken")

    with VirtualRun() as run:
        task = run.spawn(fail(run))
        with pytest.raises(KeyError, match="broken"):
            run.run_until(task)
        run.advance_by(1)


def test_an_error_in_the_steps_is_not_hidden_by_one_in_the_cleanup():
    async def leave_at_the_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.to_thread(print)

    def steps() -> None:
        with VirtualRun() as run:
            run.spawn(leave_at_the_end())
            run.settle()
            raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        steps()


def test_a_refused_call_stops_a_step():
    async def leave() -> None:
        await asyncio.sleep(5)
        await asyncio.to_thread(print)

    with VirtualRun() as run:
        run.spawn(leave())
        with pytest.raises(LeftVirtualTime):
            run.advance_by(10)
        run.advance_by(10)


def test_a_start_without_time_zone_is_refused():
    with pytest.raises(ValueError, match="no time zone"):
        VirtualRun(start=datetime(2025, 1, 1))  # noqa: DTZ001 -- that is the point


def test_the_clock_is_in_utc_whatever_the_zone_of_the_start():
    with VirtualRun(start=datetime.fromisoformat("2025-01-01T02:00:00+02:00")) as run:
        assert run.clock.now().isoformat() == "2025-01-01T00:00:00+00:00"
