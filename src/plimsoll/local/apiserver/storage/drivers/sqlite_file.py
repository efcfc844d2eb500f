"""The file of the sqlite driver: opened, locked, checked and migrated before anybody writes to it.

One append-only table: a row is the state of one object from its revision on, and has no index but the revision, so a
write costs the same in a large store as in a small one. The newest row of a key is its state; older rows are history
until they are forgotten. `floors` say, per resource, up to where that was done.

The file holds Secrets and is readable by its owner only.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from plimsoll.local.apiserver.storage.errors import SchemaTooNew, StoreCorrupt, StoreInUse, StoreUnusable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

DATA_FILE: Final = "objects.sqlite3"
LOCK_FILE: Final = "objects.lock"

# The statements that bring a file from schema version n to n + 1; a new file is at version 0.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE rows (
            revision INTEGER PRIMARY KEY,
            resource TEXT NOT NULL,
            namespace TEXT NOT NULL,
            name TEXT NOT NULL,
            data BLOB,
            checksum INTEGER NOT NULL
        )
        """,
        "CREATE TABLE floors (resource TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
        "INSERT INTO state VALUES ('revision', 0), ('closed', 1)",
    ),
)


def open_file(file: Path, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> sqlite3.Connection:
    """A connection to a file of the newest schema. Autocommit: transactions are begun and ended by their owner."""
    with explained(file):
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        # The connection moves to the writer's thread after recovery; it is never used by two at a time.
        connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    try:
        with explained(file):
            _prepare(connection, file, migrations)
    except StoreUnusable:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, file: Path, migrations: Sequence[Sequence[str]]) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(migrations):
        raise SchemaTooNew(file, found=version, known=len(migrations))
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and not version:
        raise StoreCorrupt(file, "is a SQLite database of something else")
    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != "wal":
        raise StoreUnusable(file, f"the file system does not support SQLite's write-ahead log (mode {mode!r})")
    # Migrations and the mark that the file is open must not be lost, whatever durability is asked for later.
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA journal_size_limit={64 * 1024 * 1024}")
    for number in range(version, len(migrations)):
        with transaction(connection):
            for statement in migrations[number]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={number + 1}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; whatever goes wrong, also in COMMIT itself, the connection is usable afterwards."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def explained(file: Path) -> Iterator[None]:
    """Errors of the operating system and of SQLite, as ours, naming the file."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreUnusable(file, f"cannot be opened: {error}") from error
    except sqlite3.DatabaseError as error:
        raise StoreCorrupt(file, f"is not a store, or is damaged: {error}") from error
    except OSError as error:
        raise StoreUnusable(file, f"cannot be opened: {error.strerror}") from error


class DirectoryLock:
    """Held as long as the store is open; the operating system lets go of it when the process ends, however it ends."""

    def __init__(self, directory: Path) -> None:
        file = directory / LOCK_FILE
        with explained(file):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise StoreInUse(file, holder) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._descriptor)
