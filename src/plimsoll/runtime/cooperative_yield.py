"""Long work in portions: other tasks of the event loop run after each portion.

Effort is counted, not timed: a clock would be read for every object, and portions would differ from run to run. A
portion takes some ten milliseconds on a slow machine; 100 ms would cost a lease.
"""

from __future__ import annotations

import asyncio
from typing import Final

BYTES_AT_ONCE: Final = 512 * 1024
OBJECTS_AT_ONCE: Final = 256


class CooperativeYield:
    """Counts work and yields to the event loop after each portion. Each task has its own."""

    def __init__(self, *, bytes_at_once: int = BYTES_AT_ONCE, objects_at_once: int = OBJECTS_AT_ONCE) -> None:
        self._bytes_at_once = bytes_at_once
        self._objects_at_once = objects_at_once
        self._bytes = 0
        self._objects = 0

    async def count_and_yield(self, *, objects: int = 1, size_bytes: int = 0) -> None:
        """Count work, and yield if the portion is complete."""
        if self.is_due(objects=objects, size_bytes=size_bytes):
            await self.yield_now()

    def is_due(self, *, objects: int = 1, size_bytes: int = 0) -> bool:
        """Count work; whether `yield_now` is due. Cheaper than awaiting for every object."""
        self._objects += objects
        self._bytes += size_bytes
        return self._objects >= self._objects_at_once or self._bytes >= self._bytes_at_once

    async def yield_now(self) -> None:
        self._objects = self._bytes = 0
        await asyncio.sleep(0)
