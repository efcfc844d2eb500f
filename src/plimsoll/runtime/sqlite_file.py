"""A SQLite file of our own: opened, locked, checked and migrated, with errors that name the file. Blocking.

A file is readable by its owner only. It is in write-ahead-log mode, and autocommits: `run_transaction` begins and ends
what must be atomic. The user of a file gives the classes of its errors (`FileErrors`).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    Migrations = Sequence[Sequence[str]]
    """The statements that bring a file from schema version n to n + 1; a new file is at version 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileErrors:
    """The exceptions of one user of SQLite files. Each gets the file and the problem."""

    noun: str
    """What the file is: a "store", a "journal"."""
    unusable: Callable[[Path, str], Exception]
    corrupt: Callable[[Path, str], Exception]
    too_new: Callable[[Path, int, int], Exception]
    """Gets the file, the schema version found in it, and the newest one that is known."""
    advice: str = ""
    """What to do with a corrupt file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSettings:
    """How a file is written."""

    synchronous: str
    """SQLite's `PRAGMA synchronous`."""
    log_bytes: int
    """The write-ahead log is cut back to this size."""


def open_sqlite(
    file: Path, migrations: Migrations, *, errors: FileErrors, settings: FileSettings, read_only: bool = False
) -> sqlite3.Connection:
    """A connection to a file of the newest schema. It may move between threads, but only one may use it at a time."""
    with explain_errors(file, errors):
        connection = _connect(file, read_only=read_only)
        try:
            version = _check(connection, file, migrations, errors)
            if read_only:
                _check_migrated(file, version, migrations, errors)
            else:
                _set_up(connection, file, errors, settings)
                for number in range(version, len(migrations)):
                    _migrate(connection, number, migrations[number])
        except BaseException:  # The error is passed on; the file must not stay open behind it.
            connection.close()
            raise
    return connection


def _connect(file: Path, *, read_only: bool) -> sqlite3.Connection:
    if read_only:
        uri = f"{file.absolute().as_uri()}?mode=ro"
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    return sqlite3.connect(file, isolation_level=None, check_same_thread=False)


def _check(connection: sqlite3.Connection, file: Path, migrations: Migrations, errors: FileErrors) -> int:
    """The schema version of the file."""
    version: int
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(migrations):
        raise errors.too_new(file, version, len(migrations))
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and not version:
        raise errors.corrupt(file, "is a SQLite database of another program")
    return version


def _check_migrated(file: Path, version: int, migrations: Migrations, errors: FileErrors) -> None:
    if version < len(migrations):
        raise errors.unusable(file, "was written by an older Plimsoll; start this version on it once to migrate it")


def _set_up(connection: sqlite3.Connection, file: Path, errors: FileErrors, settings: FileSettings) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != "wal":
        raise errors.unusable(file, f"the file system does not support SQLite's write-ahead log (mode {mode!r})")
    connection.execute(f"PRAGMA synchronous={settings.synchronous}")
    connection.execute(f"PRAGMA journal_size_limit={settings.log_bytes}")


def _migrate(connection: sqlite3.Connection, number: int, statements: Sequence[str]) -> None:
    """One migration, unless another process has made it since the version was read."""
    with run_transaction(connection):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != number:
            return
        for statement in statements:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version={number + 1}")


@contextmanager
def run_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction. If anything fails, COMMIT included, it is rolled back and the connection stays usable."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def explain_errors(file: Path, errors: FileErrors) -> Iterator[None]:
    """Turn errors of the operating system and of SQLite into those of the user, which name the file."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise errors.unusable(file, f"cannot be used: {error}") from error
    except sqlite3.DatabaseError as error:
        problem = f"is not a {errors.noun}, or is damaged: {error}{errors.advice and f'; {errors.advice}'}"
        raise errors.corrupt(file, problem) from error
    except OSError as error:
        raise errors.unusable(file, f"cannot be opened: {error.strerror}") from error


class FileLock:
    """An exclusive lock of this process. The operating system releases it when the process ends in any way.

    `in_use` gets the file and the process id of the holder, as far as that is known.
    """

    def __init__(self, file: Path, *, errors: FileErrors, in_use: Callable[[Path, str], Exception]) -> None:
        with explain_errors(file, errors):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise in_use(file, holder) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._descriptor)
