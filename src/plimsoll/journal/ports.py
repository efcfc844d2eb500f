"""The port of the journal: controllers write to it, `plimsoll why` and `plimsoll journal` read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from plimsoll.core.plans import Outcome, Plan
    from plimsoll.journal.entries import Entry, Query


class Journal(Protocol):
    """The journal. All drivers (a SQLite file, memory, the database of a fleet) apply the same `Retention`."""

    async def append(self, plan: Plan, outcomes: tuple[Outcome, ...] = ()) -> Entry:
        """Store a plan. After the return, the entry outlives the process."""
        ...

    async def conclude(self, number: int, outcomes: tuple[Outcome, ...]) -> None:
        """Store the outcomes of its actions. An entry that was dropped meanwhile is not restored."""
        ...

    async def list_entries(self, query: Query) -> tuple[Entry, ...]:
        """Newest first."""
        ...

    async def get_entry(self, number: int) -> Entry | None: ...

    async def close(self) -> None: ...
