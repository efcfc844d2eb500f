"""A driver that takes its time: every write is settled some turns of the loop later, so that requests interleave."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import cycle
from typing import TYPE_CHECKING, ClassVar

from plimsoll.local.apiserver.storage import MemoryDriver, NotStored

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.local.apiserver.storage.drivers.interface import Write


class LaggingDriver(MemoryDriver):
    """`lags` are the turns between a write and its end, one number a write, over and over."""

    is_inline: ClassVar[bool] = False

    def __init__(self, lags: Iterable[int]) -> None:
        super().__init__()
        self._lags = cycle([*lags, 0])
        self._failures = cycle([False])
        self._under_way: deque[Write] = deque()

    def fail(self, failures: Iterable[bool]) -> None:
        """From now on these writes come to nothing, one truth value a write, over and over."""
        self._failures = cycle([*failures, False])

    def submit(self, write: Write) -> None:
        self._under_way.append(write)
        if len(self._under_way) == 1:
            self._wait(next(self._lags))

    def _wait(self, turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._wait, turns - 1)
        else:
            asyncio.get_running_loop().call_soon(self._end_first)

    def _end_first(self) -> None:
        problem = NotStored("the disk is full") if next(self._failures) else None
        self._settle(((self._under_way.popleft(), problem),))
        if self._under_way:
            self._wait(next(self._lags))
