"""Time as a parameter: only an implementation of `Clock` reads the time of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime


class Clock(Protocol):
    """Real in production, virtual in tests and scenarios (`plimsoll.runtime.clocks`)."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC: what is written into objects."""
        ...

    def monotonic_s(self) -> float:
        """Seconds from an arbitrary start that never go back: what timeouts and back-offs are measured with."""
        ...

    async def sleep(self, seconds: float) -> None: ...
