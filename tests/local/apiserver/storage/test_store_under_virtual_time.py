from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from plimsoll.local.apiserver.storage import MemoryDriver, Store
from plimsoll.testing import run_virtual
from tests.local.apiserver.storage.builders import put

if TYPE_CHECKING:
    from plimsoll.runtime.clocks import VirtualClock


def test_the_memory_driver_never_leaves_virtual_time_and_waits_in_it():
    async def story(clock: VirtualClock) -> tuple[list[int], bool, float]:
        store = Store.open(MemoryDriver(), clock=clock)
        watch = store.watch("pods")
        seen: list[int] = []

        async def follow() -> None:
            seen.extend([event.revision async for event in watch])

        following = asyncio.create_task(follow())
        for name in "abc":
            await put(store, name)
        reached = await store.wait_for(99, timeout_s=3)
        waited_s = clock.monotonic_s()
        await store.aclose()
        await following
        return seen, reached, waited_s

    assert run_virtual(story) == ([2, 3, 4], False, 3.0)


def test_a_loop_of_writes_lets_watchers_keep_up():
    async def story(clock: VirtualClock) -> int:
        store = Store.open(MemoryDriver(), clock=clock)
        watch = store.watch("pods")
        seen = 0

        async def follow() -> None:
            nonlocal seen
            async for _ in watch:
                seen += 1

        following = asyncio.create_task(follow())
        for number in range(25_000):
            await put(store, f"p{number % 100}")
        await store.aclose()
        await following
        return seen

    assert run_virtual(story) > 24_000
