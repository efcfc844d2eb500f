"""A virtual loop never hangs: it says who waits, or who turns in circles."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from plimsoll.core.errors import Deadlock, Runaway
from plimsoll.runtime.virtual_loop import Limits
from plimsoll.runtime.virtual_run import VirtualRun
from plimsoll.testing import run_virtual

THIS_FILE = Path(__file__).name


async def wait_forever() -> None:
    await asyncio.Event().wait()


def test_waiting_for_what_never_comes_is_a_deadlock_that_names_the_place():
    line = wait_forever.__code__.co_firstlineno + 1
    with pytest.raises(Deadlock, match=rf"Task-1 \(wait_forever\) at .*{THIS_FILE}:{line} in wait_forever"):
        run_virtual(wait_forever())


def test_every_waiting_task_is_listed_in_the_order_of_birth():
    async def main():
        async with asyncio.TaskGroup() as group:
            for name in ("anna", "berta", "clara"):
                group.create_task(wait_forever(), name=name)

    with pytest.raises(Deadlock) as raised:
        run_virtual(main())
    lines = str(raised.value).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["Task-1", "anna", "berta", "clara"]


def test_a_long_list_is_cut():
    async def main():
        async with asyncio.TaskGroup() as group:
            for _ in range(100):
                group.create_task(wait_forever())

    with pytest.raises(Deadlock, match="and 81 more"):
        run_virtual(main())


def test_sleeping_for_ever_alone_is_a_deadlock():
    with pytest.raises(Deadlock):
        run_virtual(asyncio.sleep(float("inf")))


def test_a_deadlock_comes_at_the_moment_of_the_last_timer():
    async def main():
        await asyncio.sleep(5)
        await wait_forever()

    with VirtualRun() as run:
        with pytest.raises(Deadlock):
            run.run_until(main())
        assert run.clock.monotonic_s() == 5.0


def test_turning_without_time_passing_is_a_runaway_that_names_the_busiest():
    async def spin() -> None:
        while True:  # noqa: ASYNC110 -- the mistake that is to be caught
            await asyncio.sleep(0)

    with pytest.raises(Runaway, match=rf"1000 times Task-1 \(.*spin\) at .*{THIS_FILE}"):
        run_virtual(spin(), limits=Limits(turns_at_one_instant=500))


def test_a_callback_that_calls_itself_is_a_runaway():
    async def main():
        loop = asyncio.get_running_loop()

        def again() -> None:
            loop.call_soon(again)

        again()
        await wait_forever()

    with pytest.raises(Runaway, match="again"):
        run_virtual(main(), limits=Limits(turns_at_one_instant=500))


def test_turns_are_counted_anew_at_every_instant():
    async def main():
        for _ in range(10):
            for _ in range(300):
                await asyncio.sleep(0)
            await asyncio.sleep(1)
        return "done"

    assert run_virtual(main(), limits=Limits(turns_at_one_instant=500)) == "done"


def test_a_task_that_ignores_cancellation_does_not_hang_the_end_of_a_run():
    async def deaf() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    async def main():
        main.task = asyncio.create_task(deaf(), name="deaf one")  # type: ignore[attr-defined]
        await asyncio.sleep(1)

    with pytest.raises(Deadlock, match="continue although they were cancelled:\n  deaf one"):
        run_virtual(main())


def test_an_exception_in_a_bare_callback_ends_the_run():
    async def main():
        asyncio.get_running_loop().call_later(1, lambda: 1 / 0)
        await asyncio.sleep(2)

    with pytest.raises(ZeroDivisionError):
        run_virtual(main())
