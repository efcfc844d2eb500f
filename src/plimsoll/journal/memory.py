"""The journal in memory: for virtual time, where nothing may leave the loop's thread, and for runs that store nothing.

Entries are stored encoded and decoded when read, as in the SQLite journal: what cannot be encoded fails at once, and
stored entries cannot change.
"""

from __future__ import annotations

import heapq
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import structs

from plimsoll.journal.entries import Entry, Query, Retention, decode_entry, encode_entry, limit_size
from plimsoll.journal.errors import JournalClosed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from plimsoll.core.plans import Outcome, Plan


class MemoryJournal:
    """A journal that ends with the process."""

    failures = 0
    """Writes that failed: none fails here."""

    def __init__(self, retention: Retention | None = None) -> None:
        self._retention = retention or Retention()
        self._entries: dict[int, bytes] = {}
        self._by_time: list[tuple[datetime, int]] = []
        """A heap: a clock may go back."""
        self._bytes = 0
        self._last = 0
        self._is_open = True

    async def append(self, plan: Plan, outcomes: tuple[Outcome, ...] = ()) -> Entry:
        self._check_open()
        self._last += 1
        entry = limit_size(Entry(number=self._last, plan=plan, outcomes=outcomes), self._retention.entry_bytes)
        self._put(entry)
        heapq.heappush(self._by_time, (plan.at, entry.number))
        self._drop_old(plan.at)
        return entry

    async def conclude(self, number: int, outcomes: tuple[Outcome, ...]) -> None:
        self._check_open()
        kept = self._entries.get(number)
        if kept is not None:
            ended = structs.replace(decode_entry(kept), outcomes=outcomes)
            self._put(limit_size(ended, self._retention.entry_bytes))

    async def list_entries(self, query: Query) -> tuple[Entry, ...]:
        self._check_open()
        found: list[Entry] = []
        for entry in self._iterate_newest_first():
            if query.limit is not None and len(found) >= query.limit:
                break
            if query.matches(entry):
                found.append(entry)
        return tuple(found)

    async def get_entry(self, number: int) -> Entry | None:
        self._check_open()
        kept = self._entries.get(number)
        return None if kept is None else decode_entry(kept)

    async def close(self) -> None:
        self._is_open = False
        self._entries.clear()

    def _iterate_newest_first(self) -> Iterator[Entry]:
        return (decode_entry(data) for data in reversed(self._entries.values()))

    def _drop_old(self, now: datetime) -> None:
        oldest = now - timedelta(days=self._retention.days)
        while self._by_time and self._by_time[0][0] < oldest:
            self._drop(heapq.heappop(self._by_time)[1])
        self._drop(self._last - self._retention.entries)
        while self._bytes > self._retention.total_bytes and len(self._entries) > 1:
            self._drop(next(iter(self._entries)))

    def _put(self, entry: Entry) -> None:
        self._bytes -= len(self._entries.get(entry.number, b""))
        data = self._entries[entry.number] = encode_entry(entry)
        self._bytes += len(data)

    def _drop(self, number: int) -> None:
        self._bytes -= len(self._entries.pop(number, b""))

    def _check_open(self) -> None:
        if not self._is_open:
            raise JournalClosed("the journal is closed")
