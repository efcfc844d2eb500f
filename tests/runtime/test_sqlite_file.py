"""A SQLite file fails with the errors of its user, and leaves nothing half done."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from plimsoll.runtime.sqlite_file import FileErrors, FileLock, FileSettings, open_sqlite, run_transaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from pathlib import Path


class Problem(Exception):
    """Any problem of a file."""


class Corrupt(Problem):
    """The file is not what was written."""


class TooNew(Problem):
    """The file has a newer schema."""


ERRORS = FileErrors(noun="ledger", unusable=Problem, corrupt=Corrupt, too_new=TooNew, advice="move it away")
SETTINGS = FileSettings(synchronous="NORMAL", log_bytes=1024 * 1024)
FIRST = ("CREATE TABLE rows (number INTEGER PRIMARY KEY)",)
SECOND = ("CREATE TABLE others (number INTEGER PRIMARY KEY)",)


def opened(file: Path, *migrations: Sequence[str], read_only: bool = False) -> sqlite3.Connection:
    return open_sqlite(file, migrations, errors=ERRORS, settings=SETTINGS, read_only=read_only)


def test_a_file_is_created_for_its_owner_only_and_migrated(tmp_path: Path):
    file = tmp_path / "new" / "file"
    opened(file, FIRST).close()
    connection = opened(file, FIRST, SECOND)
    assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    assert file.stat().st_mode & 0o777 == 0o600
    connection.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path):
    file = tmp_path / "file"
    opened(file, FIRST).close()
    with pytest.raises(Problem, match="cannot be used"):
        opened(file, FIRST, (*SECOND, "CREATE TABLE rows (number INTEGER)"))
    connection = opened(file, FIRST)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("rows",)]
    connection.close()


def test_a_reader_does_not_migrate(tmp_path: Path):
    file = tmp_path / "file"
    opened(file, FIRST).close()
    with pytest.raises(Problem, match="older Plimsoll"):
        opened(file, FIRST, SECOND, read_only=True)


def test_a_file_of_a_newer_program_is_refused_with_both_versions(tmp_path: Path):
    file = tmp_path / "file"
    opened(file, FIRST, SECOND).close()
    with pytest.raises(TooNew) as raised:
        opened(file, FIRST)
    assert raised.value.args == (file, 2, 1)


def test_a_file_that_is_no_database_is_corrupt(tmp_path: Path):
    file = tmp_path / "file"
    file.write_bytes(b"text" * 1000)
    with pytest.raises(Corrupt, match=r"not a ledger.*; move it away"):
        opened(file, FIRST)


def test_a_transaction_that_fails_is_rolled_back(tmp_path: Path):
    connection = opened(tmp_path / "file", FIRST)
    with suppress(KeyError), run_transaction(connection):
        connection.execute("INSERT INTO rows VALUES (1)")
        raise KeyError
    with run_transaction(connection):
        connection.execute("INSERT INTO rows VALUES (2)")
    assert connection.execute("SELECT number FROM rows").fetchall() == [(2,)]
    connection.close()


def test_a_lock_names_its_holder_and_can_be_taken_after_its_release(tmp_path: Path):
    file = tmp_path / "lock"
    lock = FileLock(file, errors=ERRORS, in_use=Problem)
    with pytest.raises(Problem) as raised:
        FileLock(file, errors=ERRORS, in_use=Problem)
    assert raised.value.args == (file, str(os.getpid()))
    lock.release()
    FileLock(file, errors=ERRORS, in_use=Problem).release()
