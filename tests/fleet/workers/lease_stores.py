"""A lease table in memory, by its own clock, for processes in one virtual loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.errors import Unreachable
from plimsoll.fleet.ports import LeaseTerm

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock


class MemoryLeases:
    """`answers_after_s`: how long the database takes; `is_down`: it does not answer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[str, tuple[str, float]] = {}
        self.answers_after_s = 0.0
        self.is_down = False

    async def acquire_lease(self, worker: str, holder: str, *, duration_s: float) -> LeaseTerm | None:
        if self.is_down:
            raise Unreachable("the database is down")
        current, expires_s = self._rows.get(worker, ("", 0.0))
        is_taken = current != holder and expires_s > self._clock.monotonic_s()
        if not is_taken:
            self._rows[worker] = (holder, self._clock.monotonic_s() + duration_s)
        await self._clock.sleep(self.answers_after_s)
        return None if is_taken else LeaseTerm(worker=worker, holder=holder, duration_s=duration_s)

    async def release_lease(self, worker: str, holder: str) -> None:
        if self._rows.get(worker, ("", 0.0))[0] == holder:
            del self._rows[worker]

    async def list_holders(self) -> dict[str, str]:
        if self.is_down:
            raise Unreachable("the database is down")
        now_s = self._clock.monotonic_s()
        return {worker: holder for worker, (holder, expires_s) in self._rows.items() if expires_s > now_s}
