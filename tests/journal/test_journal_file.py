"""The SQLite file: what a crash leaves, what is damaged, what is older or newer, who may read."""

import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from plimsoll.journal.entries import Query, Retention
from plimsoll.journal.errors import JournalCorrupt, JournalTooNew, JournalUnusable
from plimsoll.journal.journal_file import JOURNAL_FILE, MIGRATIONS, JournalFile, hash_subject
from tests.golden.reviewed_sentences import ReviewedSentences
from tests.journal.builders import GROUP, done, left, plan, pod


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data" / JOURNAL_FILE


def written(file: Path, count: int = 3) -> JournalFile:
    journal = JournalFile(file)
    for snapshot in range(1, count + 1):
        journal.append(plan(snapshot, not_done=(left("a"),)))
    return journal


def left_by_a_crash(file: Path, directory: Path) -> Path:
    """The bytes on disk as they are now, as a process that is killed leaves them."""
    directory.mkdir()
    for suffix in ("", "-wal"):
        part = Path(f"{file}{suffix}")
        if part.exists():
            shutil.copyfile(part, directory / part.name)
    return directory / file.name


def snapshots(file: Path) -> list[int]:
    journal = JournalFile(file)
    found = [entry.snapshot for entry in journal.list_entries(Query())]
    journal.close()
    return found


def test_entries_outlive_the_process(file: Path):
    written(file).close()
    assert snapshots(file) == [3, 2, 1]


def test_numbers_go_on_after_a_restart(file: Path):
    written(file).close()
    journal = JournalFile(file)
    assert journal.append(plan(9)).number == 4
    journal.close()


def test_a_kill_loses_no_finished_entry(file: Path, tmp_path: Path):
    journal = written(file)
    assert snapshots(left_by_a_crash(file, tmp_path / "after")) == [3, 2, 1]
    journal.close()


def test_a_kill_within_a_write_loses_that_entry_alone(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    journal = written(file)
    copies: list[Path] = []

    def crash_here(_journal: JournalFile, *_: object) -> None:
        copies.append(left_by_a_crash(file, tmp_path / "after"))

    monkeypatch.setattr(JournalFile, "_drop_old", crash_here)
    journal.append(plan(4))
    journal.close()
    assert snapshots(copies[0]) == [3, 2, 1]
    assert snapshots(file) == [4, 3, 2, 1]


def test_a_log_that_ends_anywhere_gives_the_first_entries_whole(file: Path, tmp_path: Path):
    journal = written(file, 4)
    crashed = left_by_a_crash(file, tmp_path / "after")
    journal.close()
    log = Path(f"{crashed}-wal").read_bytes()
    found = set()
    for number, cut in enumerate(range(len(log), 0, -2039)):
        directory = tmp_path / f"cut{number}"
        directory.mkdir()
        shutil.copyfile(crashed, directory / crashed.name)
        (directory / f"{crashed.name}-wal").write_bytes(log[:cut])
        kept = snapshots(directory / crashed.name)
        assert kept == list(range(len(kept), 0, -1))
        found.add(len(kept))
    assert found == {0, 1, 2, 3, 4}


def test_a_failed_write_leaves_the_journal_usable(
    file: Path, monkeypatch: pytest.MonkeyPatch, reviewed: ReviewedSentences
):
    journal = written(file)

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(JournalFile, "_drop_old", full)
        with pytest.raises(JournalUnusable) as raised:
            journal.append(plan(4))
        reviewed(str(raised.value))
    assert journal.append(plan(5)).snapshot == 5
    journal.close()
    assert snapshots(file) == [5, 3, 2, 1]


def test_only_the_owner_may_read_it(file: Path):
    written(file).close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_newer_file_is_refused_by_name(file: Path, reviewed: ReviewedSentences):
    written(file).close()
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(JournalTooNew) as refused:
        JournalFile(file)
    reviewed(str(refused.value))
    assert refused.value.exit_code == 2
    assert str(file) in str(refused.value)


def test_an_older_file_is_migrated(file: Path):
    written(file).close()
    later = (*MIGRATIONS, ("ALTER TABLE entries ADD COLUMN mark TEXT NOT NULL DEFAULT ''",))
    journal = JournalFile(file, migrations=later)
    assert [entry.snapshot for entry in journal.list_entries(Query())] == [3, 2, 1]
    assert journal.append(plan(4)).number == 4
    journal.close()
    with pytest.raises(JournalTooNew):
        JournalFile(file)


def test_a_migration_that_fails_leaves_the_file_as_it_was(file: Path):
    written(file).close()
    with pytest.raises(JournalUnusable):
        JournalFile(file, migrations=(*MIGRATIONS, ("CREATE TABLE half (x)", "NO SQL")))
    assert snapshots(file) == [3, 2, 1]


def test_a_file_of_something_else_is_refused(file: Path, reviewed: ReviewedSentences):
    file.parent.mkdir()
    file.write_bytes(b"not a database, but long enough to be looked at as one" * 100)
    with pytest.raises(JournalCorrupt) as raised:
        JournalFile(file)
    reviewed(str(raised.value))
    other = file.with_name("other.sqlite3")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(JournalCorrupt) as refused:
        JournalFile(other)
    reviewed(str(refused.value))


def test_a_damaged_entry_is_reported_by_its_number(file: Path, reviewed: ReviewedSentences):
    written(file).close()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE entries SET data = x'00' WHERE number = 2")
    connection.close()
    journal = JournalFile(file)
    with pytest.raises(JournalCorrupt) as raised:
        journal.list_entries(Query())
    reviewed(str(raised.value))
    assert journal.list_entries(Query(limit=1))[0].number == 3
    journal.close()


def test_a_damaged_page_is_a_named_error(file: Path):
    written(file, 50).close()
    with file.open("r+b") as damaged:
        damaged.seek(4096)
        damaged.write(b"\xff" * 16384)
    journal = JournalFile(file)
    with pytest.raises(JournalCorrupt, match="damaged"):
        journal.list_entries(Query(limit=None))
    journal.close()


def test_a_reader_sees_what_a_writer_writes_and_changes_nothing(file: Path):
    writer = written(file)
    reader = JournalFile(file, read_only=True)
    writer.append(plan(4))
    assert [entry.snapshot for entry in reader.list_entries(Query(limit=1))] == [4]
    with pytest.raises(JournalUnusable, match="readonly"):
        reader.append(plan(5))
    reader.close()
    writer.close()


def test_reading_what_is_not_there_makes_no_file(file: Path):
    with pytest.raises(JournalUnusable):
        JournalFile(file, read_only=True)
    assert not file.exists()


def test_two_things_with_one_hash_are_distinguished(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.journal.journal_file.hash_subject", lambda _ref: 1)
    journal = written(file, 1)
    assert journal.list_entries(Query(ref=pod("z"))) == ()
    assert len(journal.list_entries(Query(ref=pod("a")))) == 1
    journal.close()


def test_the_hash_of_a_thing_does_not_change():
    assert hash_subject(GROUP) == -7749627611158701258


def test_dropped_entries_leave_nothing_behind(file: Path):
    journal = JournalFile(file, Retention(entries=2))
    for snapshot in range(10):
        journal.append(plan(snapshot, not_done=(left("a", "b"),)))
    journal.conclude(1, (done(),))
    journal.close()
    with sqlite3.connect(file) as connection:
        (entries,) = connection.execute("SELECT count(*) FROM entries").fetchone()
        (subjects,) = connection.execute("SELECT count(*) FROM subjects").fetchone()
    connection.close()
    assert (entries, subjects) == (2, 6)
