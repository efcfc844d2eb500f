"""Virtual time is exact, and what happens in it happens in the order of (time, order of setting)."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.testing import run_virtual

if TYPE_CHECKING:
    from plimsoll.runtime.clocks import VirtualClock

START = datetime(2025, 3, 1, 12, tzinfo=UTC)


def test_an_hour_passes_at_once():
    async def main(clock: VirtualClock):
        await clock.sleep(3600)
        return clock.now(), clock.monotonic_s()

    assert run_virtual(main, start=START) == (START + timedelta(hours=1), 3600.0)


def test_time_stands_still_while_something_is_ready():
    async def main(clock: VirtualClock):
        for _ in range(100):
            await asyncio.sleep(0)
        return clock.monotonic_s()

    assert run_virtual(main) == 0.0


def test_many_sleeps_add_up_without_drift():
    async def main(clock: VirtualClock):
        for _ in range(1000):
            await clock.sleep(0.1)
        return clock.monotonic_s(), clock.now()

    assert run_virtual(main, start=START) == (100.0, START + timedelta(seconds=100))


@given(st.floats(min_value=0, max_value=1e9, allow_nan=False))
@settings(max_examples=100, deadline=None)
def test_a_timer_set_for_t_fires_when_the_loop_says_t(when: float):
    async def main():
        loop = asyncio.get_running_loop()
        fired_at: asyncio.Future[float] = loop.create_future()
        loop.call_at(when, lambda: fired_at.set_result(loop.time()))
        return await fired_at

    # A first nanosecond that is not over yet is now.
    assert run_virtual(main()) == (when if round(when * 1e9) else 0.0)


def test_timers_of_one_instant_fire_in_the_order_they_were_set():
    async def main():
        loop = asyncio.get_running_loop()
        fired: list[int] = []
        for number in range(50):
            # By different ways to the same nanosecond.
            if number % 2:
                loop.call_later(0.3, fired.append, number)
            else:
                loop.call_at(0.1 + 0.2, fired.append, number)
        await asyncio.sleep(1)
        return fired

    assert run_virtual(main()) == list(range(50))


def test_a_timer_of_the_past_fires_now():
    async def main():
        loop = asyncio.get_running_loop()
        await asyncio.sleep(10)
        fired_at: asyncio.Future[float] = loop.create_future()
        loop.call_at(3, lambda: fired_at.set_result(loop.time()))
        return await fired_at

    assert run_virtual(main()) == 10.0


def test_what_is_ready_goes_before_a_timer_that_is_due_now():
    async def main():
        loop = asyncio.get_running_loop()
        order: list[str] = []
        loop.call_later(0, order.append, "timer")
        loop.call_soon(order.append, "ready")
        await asyncio.sleep(1)
        return order

    assert run_virtual(main()) == ["ready", "timer"]


def test_a_cancelled_timer_neither_fires_nor_moves_time():
    async def main():
        loop = asyncio.get_running_loop()
        fired: list[str] = []
        timer = loop.call_later(5, fired.append, "cancelled")
        timer.cancel()
        await asyncio.sleep(1)
        return fired, timer.cancelled(), loop.time()

    assert run_virtual(main()) == ([], True, 1.0)


def test_thousands_of_cancelled_timeouts_are_swept_out():
    async def main():
        loop: Any = asyncio.get_running_loop()
        for _ in range(10_000):
            async with asyncio.timeout(3600):
                await asyncio.sleep(0)
        kept = sum(len(timers) for timers in loop._timers.values())
        await asyncio.sleep(1)
        return kept, loop.time()

    kept, time = run_virtual(main())
    assert kept <= 1_001
    assert time == 1.0


def test_the_sweep_keeps_living_timers_and_their_order():
    async def main():
        loop = asyncio.get_running_loop()
        fired: list[int] = []
        timers = [loop.call_later(number % 7, fired.append, number) for number in range(5_000)]
        for number, timer in enumerate(timers):
            if number % 5:
                timer.cancel()
        await asyncio.sleep(10)
        return fired

    assert run_virtual(main()) == sorted(range(0, 5_000, 5), key=lambda number: (number % 7, number))


def test_sleeping_for_ever_can_be_interrupted():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(7):
                await asyncio.sleep(math.inf)
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == 7.0


# A tree of waits: each node sleeps, says so, then starts its children at that moment.
Tree = tuple[int, list["Tree"]]
trees: st.SearchStrategy[Any] = st.recursive(
    st.tuples(st.integers(1, 5), st.just([])),
    lambda children: st.tuples(st.integers(1, 5), st.lists(children, max_size=4)),
    max_leaves=30,
)


def expected_order(forest: list[Tree]) -> list[tuple[int, int]]:
    """The model: repeatedly take the wait that ends first, of equals the one that was begun first."""
    begun = 0
    waits: list[tuple[int, int, list[Tree]]] = []

    def begin(now: int, nodes: list[Tree]) -> None:
        nonlocal begun
        for delay, children in nodes:
            begun += 1
            waits.append((now + delay, begun, children))

    begin(0, forest)
    order = []
    while waits:
        first = min(waits, key=lambda wait: wait[:2])
        waits.remove(first)
        order.append(first[:2])
        begin(first[0], first[2])
    return order


@given(st.lists(trees, max_size=6))
@settings(max_examples=150, deadline=None)
def test_trees_of_timers_end_as_the_model_says(forest: list[Tree]):
    async def main():
        loop = asyncio.get_running_loop()
        order: list[tuple[int, int]] = []
        begun = 0

        def begin(nodes: list[Tree]) -> None:
            nonlocal begun
            for delay, children in nodes:
                begun += 1
                loop.call_later(delay, end, begun, children)

        def end(number: int, children: list[Tree]) -> None:
            order.append((int(loop.time()), number))
            begin(children)

        begin(forest)
        await asyncio.sleep(1000)
        return order

    assert run_virtual(main()) == expected_order(forest)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=1, max_size=30))
@settings(max_examples=150, deadline=None)
def test_tasks_with_sleeps_and_timeouts_end_as_the_model_says(waits: list[tuple[int, int]]):
    """Each task sleeps under a timeout: whichever is earlier ends it; at the same instant the timeout was set first."""

    async def main():
        loop = asyncio.get_running_loop()
        ends: list[tuple[int, float, str]] = []

        async def wait(number: int, sleep_s: int, timeout_s: int) -> None:
            try:
                async with asyncio.timeout(timeout_s):
                    await asyncio.sleep(sleep_s)
                ends.append((number, loop.time(), "slept"))
            except TimeoutError:
                ends.append((number, loop.time(), "timed out"))

        async with asyncio.TaskGroup() as group:
            for number, (sleep_s, timeout_s) in enumerate(waits):
                group.create_task(wait(number, sleep_s, timeout_s))
        return ends

    def end_of(number: int) -> tuple[int, float, str]:
        sleep_s, timeout_s = waits[number]
        if sleep_s < timeout_s:
            return number, float(sleep_s), "slept"
        return number, float(timeout_s), "timed out"

    ends = run_virtual(main())
    assert sorted(ends) == [end_of(number) for number in range(len(waits))]
    assert [time for _, time, _ in ends] == sorted(time for _, time, _ in ends)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40))
@settings(max_examples=100, deadline=None)
def test_sleepers_of_one_instant_wake_in_the_order_they_lay_down(delays: list[int]):
    async def main():
        woken: list[int] = []

        async def sleep(number: int, delay: int) -> None:
            await asyncio.sleep(delay)
            woken.append(number)

        async with asyncio.TaskGroup() as group:
            for number, delay in enumerate(delays):
                group.create_task(sleep(number, delay))
        return woken

    assert run_virtual(main()) == sorted(range(len(delays)), key=lambda number: (delays[number], number))
