"""Work on large requests and answers, away from the event loop.

Reading, patching, defaulting, validating and printing an object of megabytes takes seconds of Python. Such work is a
pure function of values that nothing else changes, so a thread can do it: the interpreter switches threads every few
milliseconds, and the loop serves other requests meanwhile. Everything that reads the store stays on the loop. Small
work, which is nearly all there is, runs at once: a thread would cost more than the work. Without threads (virtual time)
all work runs at once.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from plimsoll.local.apiserver.storage import LARGEST_OBJECT_BYTES, TooLarge, compute_encoded_size
from plimsoll.runtime.garbage_collection import SELDOM_COLLECTING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from concurrent.futures import Executor

T = TypeVar("T")

# A pod of a real cluster is a fifth of this. At 75 µs per container, work of this size takes some 20 ms.
LARGEST_SHORT_BYTES: Final = 16 * 1024
# Two, so that one large request does not make all others wait. All share one interpreter, so more would not be faster.
_THREADS: Final = 2


class LongWork:
    """Runs functions: short ones at once, long ones in `executor` if there is one."""

    def __init__(self, executor: Executor | None = None) -> None:
        self._executor = executor

    async def run(self, size_bytes: int, function: Callable[[], T]) -> T:
        """The result of `function`, whose work grows with `size_bytes`. Raises what it raises."""
        if self._executor is None or size_bytes <= LARGEST_SHORT_BYTES:
            return function()
        # A full collection would hold the interpreter for as long as it walks the large values, which have no cycles.
        SELDOM_COLLECTING.begin()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, function)
        finally:
            SELDOM_COLLECTING.end()


@asynccontextmanager
async def start_worker_threads() -> AsyncIterator[ThreadPoolExecutor]:
    """The threads of a server in real time. At the end nothing waits for work that no client waits for any more."""
    threads = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="plimsoll-apiserver-work")
    try:
        yield threads
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def check_size(obj: Any, size_bytes: int) -> None:
    """Raise `TooLarge` for an object that the store would refuse, before its costly validation.

    `size_bytes` is that of the request: defaults make an object larger, but a short text does not become a large one.
    """
    if size_bytes > LARGEST_SHORT_BYTES and compute_encoded_size(obj) > LARGEST_OBJECT_BYTES:
        raise TooLarge
