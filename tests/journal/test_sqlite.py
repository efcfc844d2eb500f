"""The driver of a live program: in a thread, and never under virtual time."""

import asyncio
from pathlib import Path

import pytest

from plimsoll.core.errors import LeftVirtualTime
from plimsoll.journal.entries import Query, Retention
from plimsoll.journal.sqlite import SqliteJournal
from plimsoll.testing import run_virtual
from tests.journal.builders import GROUP, done, plan


def test_a_live_journal_keeps_concurrent_entries(tmp_path: Path):
    async def story() -> None:
        journal = await SqliteJournal.open(tmp_path, Retention(entries=50))
        written = await asyncio.gather(*(journal.append(plan(number)) for number in range(20)))
        assert sorted(entry.number for entry in written) == list(range(1, 21))
        await journal.conclude(3, (done(),))
        third = await journal.get_entry(3)
        assert third is not None
        assert third.outcomes == (done(),)
        assert len(await journal.list_entries(Query(ref=GROUP))) == 20
        await journal.close()

    asyncio.run(story())


def test_under_virtual_time_it_is_refused(tmp_path: Path):
    with pytest.raises(LeftVirtualTime):
        run_virtual(SqliteJournal.open(tmp_path))
