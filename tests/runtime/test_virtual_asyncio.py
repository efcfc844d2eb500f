"""What asyncio offers works on the virtual loop as it does on the real one."""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING

import pytest

from plimsoll.runtime.virtual_loop import VirtualLoop
from plimsoll.runtime.virtual_run import DEFAULT_START
from plimsoll.testing import run_virtual
from tests.narrowing import present

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def now() -> float:
    return asyncio.get_running_loop().time()


def test_timeout_strikes_at_its_time():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
        return now()

    assert run_virtual(main()) == 30.0


def test_wait_for_gives_the_result_or_the_timeout():
    async def answer_after(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "answer"

    async def main():
        answer = await asyncio.wait_for(answer_after(1), timeout=2)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(answer_after(3), timeout=2)
        return answer, now()

    assert run_virtual(main()) == ("answer", 3.0)


def test_a_task_group_cancels_its_children_in_the_same_order_every_time():
    async def main():
        cancelled: list[int] = []

        async def wait(number: int) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(number)

        async def fail() -> None:
            await asyncio.sleep(1)
            raise ValueError("one fails, all stop")

        try:
            async with asyncio.TaskGroup() as group:
                for number in range(200):
                    group.create_task(wait(number))
                group.create_task(fail())
        except* ValueError:
            cancelled.append(-1)
        return cancelled

    first = run_virtual(main())
    assert sorted(first) == list(range(-1, 200))
    assert run_virtual(main()) == first


def test_queues_hand_over_in_order_and_time():
    async def main():
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=2)
        taken: list[tuple[float, int]] = []

        async def produce() -> None:
            for number in range(4):
                await queue.put(number)

        async def consume() -> None:
            for _ in range(4):
                await asyncio.sleep(1)
                taken.append((now(), await queue.get()))

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            group.create_task(consume())
        return taken

    assert run_virtual(main()) == [(1.0, 0), (2.0, 1), (3.0, 2), (4.0, 3)]


def test_locks_are_fair():
    async def main():
        lock = asyncio.Lock()
        order: list[tuple[str, float]] = []

        async def hold(name: str) -> None:
            async with lock:
                await asyncio.sleep(1)
                order.append((name, now()))

        async with asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(hold(name))
        return order

    assert run_virtual(main()) == [("a", 1.0), ("b", 2.0), ("c", 3.0)]


def test_gather_and_as_completed():
    async def after(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    async def main():
        gathered = await asyncio.gather(after(3), after(1), after(2))
        completed = [await next_one for next_one in asyncio.as_completed([after(3), after(1), after(2)])]
        return gathered, completed, now()

    assert run_virtual(main()) == ([3, 1, 2], [1, 2, 3], 6.0)


def test_context_variables_follow_tasks_and_timers():
    name = contextvars.ContextVar("name", default="nobody")

    async def main():
        seen: list[str] = []

        async def child() -> None:
            seen.append(name.get())
            name.set("child")
            asyncio.get_running_loop().call_later(1, lambda: seen.append(name.get()))

        name.set("main")
        await asyncio.create_task(child())
        await asyncio.sleep(2)
        return seen, name.get()

    assert run_virtual(main()) == (["main", "child"], "main")


def test_async_generators_left_open_are_closed_at_the_end():
    closed: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(5)
            closed.append("numbers")

    async def main():
        main.kept = numbers()  # type: ignore[attr-defined]
        return await anext(main.kept)  # type: ignore[attr-defined]

    assert run_virtual(main()) == 1
    assert closed == ["numbers"]


def test_tasks_left_running_are_cancelled_at_the_end():
    ends: list[str] = []

    async def linger(name: str) -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            ends.append(name)
            raise

    async def main():
        main.tasks = [asyncio.create_task(linger(name)) for name in "abc"]  # type: ignore[attr-defined]
        await asyncio.sleep(1)
        return "done"

    assert run_virtual(main()) == "done"
    assert ends == ["a", "b", "c"]


def test_task_names_do_not_depend_on_earlier_runs():
    async def main():
        return present(asyncio.current_task()).get_name(), asyncio.create_task(asyncio.sleep(0)).get_name()

    assert run_virtual(main()) == run_virtual(main()) == ("Task-1", "Task-2")


def test_the_error_of_main_comes_out():
    async def main():
        await asyncio.sleep(1)
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        run_virtual(main())


def test_an_own_task_factory_is_respected():
    async def main():
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coro, **options: asyncio.Task(coro, loop=loop, **options))
        task = loop.create_task(asyncio.sleep(1, "slept"))
        return type(task), await task

    assert run_virtual(main()) == (asyncio.Task, "slept")


def test_asyncio_runner_takes_the_loop():
    async def main():
        await asyncio.sleep(3600)
        return now()

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(start=DEFAULT_START)) as runner:
        assert runner.run(main()) == 3600.0


def test_debug_mode_changes_nothing():
    async def main():
        await asyncio.sleep(3600)
        return now()

    with asyncio.Runner(debug=True, loop_factory=lambda: VirtualLoop(start=DEFAULT_START)) as runner:
        assert runner.run(main()) == 3600.0


def test_a_closed_loop_takes_nothing_more():
    loop = VirtualLoop(start=DEFAULT_START)
    loop.close()
    for schedule in (lambda: loop.call_soon(print), lambda: loop.call_later(1, print), lambda: loop.call_at(1, print)):
        with pytest.raises(RuntimeError, match="closed"):
            schedule()
