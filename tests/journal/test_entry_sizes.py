"""However much a plan names, an entry and a journal stay within their sizes, and what is left out is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from plimsoll.core.errors import InvalidInput
from plimsoll.core.plans import Plan, Ref, encode
from plimsoll.journal.entries import SMALLEST_ENTRY, Entry, Query, Retention, limit_size
from plimsoll.journal.journal_file import JournalFile
from plimsoll.journal.memory import MemoryJournal
from plimsoll.testing import run_virtual
from tests.journal.builders import at, done, failed, grow, left, plan

if TYPE_CHECKING:
    from pathlib import Path


def large(snapshot: int, *, pods: int = 150_000) -> Plan:
    names = [f"a-pod-with-a-name-of-common-length-{snapshot}-{number}" for number in range(pods)]
    return plan(snapshot, not_done=(left(*names),))


def counted(entry: Entry) -> int:
    return sum(not_done.count for not_done in entry.plan.not_done)


def test_a_plan_that_names_a_city_of_pods_becomes_an_entry_of_bounded_size(tmp_path: Path):
    journal = JournalFile(tmp_path / "journal.sqlite3")
    entry = journal.append(large(1), (done(),))
    assert len(encode(entry)) <= Retention().entry_bytes
    assert counted(entry) == 150_000
    assert entry.outcomes == (done(),)
    assert 0 < len(entry.plan.not_done[0].about) < 150_000
    assert journal.get_entry(1) == entry


@settings(max_examples=60, deadline=None)
@given(
    groups=st.lists(st.integers(0, 300), max_size=6),
    actions=st.integers(0, 60),
    most=st.integers(SMALLEST_ENTRY, 40_000),
)
def test_nothing_is_lost_without_being_counted(groups: list[int], actions: int, most: int):
    grown = tuple(grow(Ref(kind="nodegroup", name=f"g{number}")) for number in range(actions))
    not_done = tuple(left(*(f"p-{index}-{pod}" for pod in range(size))) for index, size in enumerate(groups))
    whole = Entry(number=1, plan=plan(1, actions=grown, not_done=not_done), outcomes=tuple(map(done, grown)))
    entry = limit_size(whole, most)
    assert len(encode(entry)) <= most
    assert counted(entry) + len(entry.plan.actions) == counted(whole) + actions
    assert {encode(outcome.action) for outcome in entry.outcomes} == set(map(encode, entry.plan.actions))
    if len(encode(whole)) <= most:
        assert entry == whole


def test_outcomes_that_come_later_are_within_the_size_too(tmp_path: Path):
    journal = JournalFile(tmp_path / "journal.sqlite3", Retention(entry_bytes=SMALLEST_ENTRY))
    journal.append(plan(1))
    journal.conclude(1, (failed("x" * 10_000),))
    entry = journal.get_entry(1)
    assert entry is not None
    assert len(encode(entry)) <= SMALLEST_ENTRY


def test_the_file_stays_within_its_size_and_has_the_newest(tmp_path: Path):
    retention = Retention(total_bytes=3 * 1024**2, entry_bytes=512 * 1024)
    file = tmp_path / "journal.sqlite3"
    journal = JournalFile(file, retention)
    for snapshot in range(1, 61):
        journal.append(large(snapshot, pods=2_000))
    kept = [entry.number for entry in journal.list_entries(Query(limit=None))]
    journal.close()
    assert kept == list(range(60, 60 - len(kept), -1))
    assert 2 < len(kept) < 60
    assert file.stat().st_size <= 1.3 * retention.total_bytes


def test_memory_stays_within_its_size_too():
    retention = Retention(total_bytes=1024**2, entry_bytes=512 * 1024)
    journal = MemoryJournal(retention)

    async def fill() -> tuple[Entry, ...]:
        for snapshot in range(1, 21):
            await journal.append(large(snapshot, pods=2_000))
        return await journal.list_entries(Query(limit=None))

    kept = run_virtual(fill())
    assert sum(len(encode(entry)) for entry in kept) <= retention.total_bytes
    assert [entry.number for entry in kept] == list(range(20, 20 - len(kept), -1))
    assert len(kept) > 1


def test_one_entry_is_kept_whatever_its_size(tmp_path: Path):
    journal = JournalFile(
        tmp_path / "journal.sqlite3", Retention(total_bytes=SMALLEST_ENTRY, entry_bytes=SMALLEST_ENTRY)
    )
    journal.append(plan(1))
    journal.append(plan(2))
    assert [entry.number for entry in journal.list_entries(Query())] == [2]


@pytest.mark.parametrize("sizes", [{"entry_bytes": 10}, {"total_bytes": 5000, "entry_bytes": 6000}])
def test_sizes_that_nothing_fits_into_are_refused(sizes: dict[str, int]):
    with pytest.raises(InvalidInput, match="bytes"):
        Retention(**sizes)


def test_a_sentence_about_a_cut_entry_shows_that_it_was_cut():
    actions = tuple(grow(Ref(kind="nodegroup", name=f"group-{number}")) for number in range(500))
    entry = limit_size(structs.replace(Entry(number=1, plan=plan(1, actions=actions))), SMALLEST_ENTRY)
    assert "too large" in str(entry.plan.not_done[0].reason)
    assert entry.at == at(1)
