"""The journal of a live process: a SQLite file in the data directory, written in a thread so that the loop never waits.

Virtual time uses `MemoryJournal` instead.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from plimsoll.journal.journal_file import JOURNAL_FILE, JournalFile

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.core.plans import Outcome, Plan
    from plimsoll.journal.entries import Entry, Query, Retention


class SqliteJournal:
    """A journal with `open` and `close`. Normally there is one writer; writes of several are serialized."""

    def __init__(self, file: JournalFile) -> None:
        self._file = file

    @classmethod
    async def open(cls, directory: Path, retention: Retention | None = None) -> SqliteJournal:
        return cls(await asyncio.to_thread(JournalFile, directory / JOURNAL_FILE, retention))

    async def append(self, plan: Plan, outcomes: tuple[Outcome, ...] = ()) -> Entry:
        return await asyncio.to_thread(self._file.append, plan, outcomes)

    async def conclude(self, number: int, outcomes: tuple[Outcome, ...]) -> None:
        await asyncio.to_thread(self._file.conclude, number, outcomes)

    async def list_entries(self, query: Query) -> tuple[Entry, ...]:
        return await asyncio.to_thread(self._file.list_entries, query)

    async def get_entry(self, number: int) -> Entry | None:
        return await asyncio.to_thread(self._file.get_entry, number)

    async def close(self) -> None:
        await asyncio.to_thread(self._file.close)
