"""A journal that is opened when it is first used."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

from plimsoll.journal.errors import JournalError
from plimsoll.journal.sqlite import SqliteJournal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plimsoll.core.plans import Outcome, Plan
    from plimsoll.journal.entries import Entry, Query


class LazyJournal:
    """Opens the journal of a directory with the first call: a constructor cannot wait for a file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._journal: SqliteJournal | None = None
        self._opening = asyncio.Lock()
        self.failures = 0
        """Writes that failed."""

    async def append(self, plan: Plan, outcomes: tuple[Outcome, ...] = ()) -> Entry:
        with self._count_failures():
            return await (await self._open()).append(plan, outcomes)

    async def conclude(self, number: int, outcomes: tuple[Outcome, ...]) -> None:
        with self._count_failures():
            await (await self._open()).conclude(number, outcomes)

    async def list_entries(self, query: Query) -> tuple[Entry, ...]:
        return await (await self._open()).list_entries(query)

    async def get_entry(self, number: int) -> Entry | None:
        return await (await self._open()).get_entry(number)

    async def close(self) -> None:
        if self._journal is not None:
            await self._journal.close()

    @contextmanager
    def _count_failures(self) -> Iterator[None]:
        try:
            yield
        except JournalError:
            self.failures += 1
            raise

    async def _open(self) -> SqliteJournal:
        async with self._opening:
            if self._journal is None:
                self._journal = await SqliteJournal.open(self._directory)
            return self._journal
