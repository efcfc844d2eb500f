"""How fast virtual time runs: timers and sleeping tasks a second, beside the standard loop doing `sleep(0)`.

The standard loop cannot be asked for a million real seconds; yielding to itself is the least it can do per step, so the
ratio says what jumping costs on top of a bare turn of the loop. Every figure is the best of three, in CPU seconds: the
rest of the machine is not what is measured.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from plimsoll.testing import run_virtual

COUNT = 100_000
REPEATS = 3

Story = Callable[[], Coroutine[Any, Any, None]]


async def timers() -> None:
    loop = asyncio.get_running_loop()
    for number in range(COUNT):
        loop.call_later(number % 977 + 0.5, int)
    await asyncio.sleep(1_000)


async def scattered_timers() -> None:
    loop = asyncio.get_running_loop()
    for number in range(COUNT):
        # 7919 is prime to COUNT: every instant once, in no order.
        loop.call_later(number * 7919 % COUNT, int)
    await asyncio.sleep(COUNT)


async def nap(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def sleeping_tasks() -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(COUNT):
            group.create_task(nap(number % 977 + 0.5))


async def chained_sleeps() -> None:
    for _ in range(COUNT):
        await asyncio.sleep(1)


async def yielding_tasks() -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(COUNT):
            group.create_task(nap(0))


async def chained_yields() -> None:
    for _ in range(COUNT):
        await asyncio.sleep(0)


def per_second(run: Callable[[Coroutine[Any, Any, None]], None], story: Story) -> float:
    best_s = float("inf")
    for _ in range(REPEATS):
        began_s = time.process_time()
        run(story())
        best_s = min(best_s, time.process_time() - began_s)
    return COUNT / best_s


def row(name: str, value: float, unit: str, *, note: str, target: float | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "value": round(value, 2) if value < 100 else round(value),
        "unit": unit,
        "target": None if target is None else f">= {target}",
        "met": None if target is None else value >= target,
        "note": note,
    }


def rows() -> Iterator[dict[str, Any]]:
    bare = per_second(run_virtual, timers)
    yield row("virtual timers", bare, "1/s", note=f"{COUNT} call_later over 977 instants")
    scattered = per_second(run_virtual, scattered_timers)
    yield row("virtual timers, scattered", scattered, "1/s", note=f"{COUNT} call_later, each at an instant of its own")
    tasks, chain = per_second(run_virtual, sleeping_tasks), per_second(run_virtual, chained_sleeps)
    standard_tasks, standard_chain = per_second(asyncio.run, yielding_tasks), per_second(asyncio.run, chained_yields)
    yield row("virtual sleeping tasks", tasks, "1/s", note=f"{COUNT} tasks, one sleep each")
    yield row("virtual chained sleeps", chain, "1/s", note="one task, one sleep after the other, every one a jump")
    yield row("standard loop, tasks", standard_tasks, "1/s", note=f"{COUNT} tasks, one sleep(0) each")
    yield row("standard loop, chained", standard_chain, "1/s", note="one task, sleep(0) after sleep(0)")
    yield row("virtual / standard, tasks", tasks / standard_tasks, "x", note="real sleeps against sleep(0)")
    yield row("virtual / standard, chained", chain / standard_chain, "x", note="two turns and a timer against one turn")
    yields = per_second(run_virtual, chained_yields)
    yield row("virtual / standard, sleep(0)", yields / standard_chain, "x", note="the same work on both loops")


if __name__ == "__main__":
    for measured in rows():
        print(measured)
