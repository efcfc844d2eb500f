"""What holds for a journal whatever keeps it: a SQLite file, memory, or the database of a fleet."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.store.database import open_database
from plimsoll.fleet.store.journal import DatabaseJournal
from plimsoll.journal.entries import Entry, Query, Retention
from plimsoll.journal.errors import JournalClosed
from plimsoll.journal.journal_file import JournalFile
from plimsoll.journal.memory import MemoryJournal
from plimsoll.journal.ports import Journal
from plimsoll.runtime.clocks import RealClock
from plimsoll.testing import run_virtual
from tests.journal.builders import GROUP, at, done, failed, left, plan, pod

Opening = Callable[..., Journal]


class InlineFile:
    """The file driver without its thread, so that both drivers are driven alike."""

    def __init__(self, file: JournalFile) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*arguments: Any) -> Any:
            return getattr(self._file, name)(*arguments)

        return call


@pytest.fixture(params=["memory", "sqlite", "database"])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opening]:
    database = open_database("sqlite://", clock=RealClock()) if request.param == "database" else None

    def opened(retention: Retention | None = None) -> Any:
        if request.param == "memory":
            return MemoryJournal(retention)
        if database is not None:
            return DatabaseJournal(database.transactions, retention)
        return InlineFile(JournalFile(tmp_path / "journal.sqlite3", retention))

    yield opened
    if database is not None:
        database.close()


def numbers(entries: tuple[Entry, ...]) -> list[int]:
    return [entry.number for entry in entries]


async def filled(journal: Journal, count: int) -> Journal:
    for snapshot in range(1, count + 1):
        await journal.append(plan(snapshot))
    return journal


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


def test_an_entry_comes_back_as_it_was_written(opening: Opening):
    async def story() -> None:
        journal = opening()
        written = await journal.append(plan(7, not_done=(left("a", "b"),)), (done(), failed("no quota")))
        assert await journal.list_entries(Query()) == (written,)
        assert await journal.get_entry(written.number) == written
        assert (written.snapshot, written.subsystem, written.at) == (7, "nodes", at(7))
        await journal.close()

    run(story())


def test_entries_come_newest_first_and_no_more_than_asked_for(opening: Opening):
    async def story() -> None:
        journal = await filled(opening(), 5)
        assert numbers(await journal.list_entries(Query())) == [5, 4, 3, 2, 1]
        assert numbers(await journal.list_entries(Query(limit=2))) == [5, 4]
        assert numbers(await journal.list_entries(Query(limit=None))) == [5, 4, 3, 2, 1]
        await journal.close()

    run(story())


def test_entries_about_one_thing_are_found_by_actions_and_by_what_was_left(opening: Opening):
    async def story() -> None:
        journal = opening()
        await journal.append(plan(1))
        await journal.append(plan(2, actions=(), not_done=(left("a", "b"),)))
        await journal.append(plan(3, actions=(), not_done=(left("b"),)))
        assert numbers(await journal.list_entries(Query(ref=GROUP))) == [1]
        assert numbers(await journal.list_entries(Query(ref=pod("b")))) == [3, 2]
        assert numbers(await journal.list_entries(Query(ref=pod("b"), limit=1))) == [3]
        assert await journal.list_entries(Query(ref=pod("c"))) == ()
        await journal.close()

    run(story())


def test_entries_of_a_time_both_ends_included(opening: Opening):
    async def story() -> None:
        journal = await filled(opening(), 5)
        assert numbers(await journal.list_entries(Query(since=at(2), until=at(4)))) == [4, 3, 2]
        assert numbers(await journal.list_entries(Query(since=at(4.5)))) == [5]
        await journal.close()

    run(story())


def test_entries_of_a_subsystem(opening: Opening):
    async def story() -> None:
        journal = opening()
        await journal.append(plan(1))
        await journal.append(plan(2, subsystem="kafka"))
        assert numbers(await journal.list_entries(Query(subsystem="kafka"))) == [2]
        await journal.close()

    run(story())


def test_outcomes_are_added_when_they_are_known(opening: Opening):
    async def story() -> None:
        journal = opening()
        written = await journal.append(plan(1))
        await journal.conclude(written.number, (done(),))
        (found,) = await journal.list_entries(Query(ref=GROUP))
        assert found.outcomes == (done(),)
        assert found.plan == written.plan
        await journal.conclude(99, (done(),))
        await journal.close()

    run(story())


def test_more_entries_than_are_kept_drop_the_oldest(opening: Opening):
    async def story() -> None:
        journal = await filled(opening(Retention(entries=3)), 5)
        assert numbers(await journal.list_entries(Query())) == [5, 4, 3]
        assert numbers(await journal.list_entries(Query(ref=GROUP))) == [5, 4, 3]
        await journal.close()

    run(story())


def test_entries_older_than_are_kept_go(opening: Opening):
    async def story() -> None:
        journal = opening(Retention(days=1))
        for number, seconds in enumerate((0, 10, 86_400, 86_411)):
            await journal.append(plan(number, seconds=seconds))
        assert numbers(await journal.list_entries(Query())) == [4, 3]
        await journal.close()

    run(story())


def test_ten_thousand_entries_and_seven_days_are_the_rule():
    assert Retention() == Retention(entries=10_000, days=7)
    for wrong in ({"entries": 0}, {"days": 0}):
        with pytest.raises(InvalidInput):
            Retention(**wrong)


def test_a_closed_journal_says_so(opening: Opening):
    async def story() -> None:
        journal = opening()
        await journal.close()
        with pytest.raises(JournalClosed):
            await journal.append(plan(1))
        with pytest.raises(JournalClosed):
            await journal.list_entries(Query())

    run(story())


def test_memory_stays_within_virtual_time():
    async def story() -> list[int]:
        return numbers(await (await filled(MemoryJournal(), 3)).list_entries(Query()))

    assert run_virtual(story()) == [3, 2, 1]


steps = st.lists(st.tuples(st.integers(0, 400_000), st.integers(0, 3)), max_size=25)


@settings(max_examples=25, deadline=None)
@given(steps=steps, kept=st.integers(1, 12))
def test_all_drivers_keep_the_same(steps: list[tuple[int, int]], kept: int, tmp_path_factory: pytest.TempPathFactory):
    retention = Retention(entries=kept, days=2)
    file = JournalFile(tmp_path_factory.mktemp("journal") / "j.sqlite3", retention)

    database = open_database("sqlite://", clock=RealClock())

    async def story() -> None:
        memory = MemoryJournal(retention)
        stored = DatabaseJournal(database.transactions, retention)
        for number, (seconds, about) in enumerate(steps):
            stated = plan(number, seconds=seconds, not_done=(left(f"p{about}"),))
            assert file.append(stated) == await memory.append(stated) == await stored.append(stated)
        for query in (Query(), Query(ref=pod("p1")), Query(since=at(100_000), limit=3)):
            expected = await memory.list_entries(query)
            assert file.list_entries(query) == expected
            assert await stored.list_entries(query) == expected

    run(story())
    file.close()
    database.close()
