"""The file of the SQLite driver, and the lock of its directory.

One append-only table: a row is the state of one object from its revision on. The revision is the only index, so a
write costs the same in a large store as in a small one. The newest row of a key is its state; older rows are history
until they are compacted. `floors` hold, per resource, the revision up to which that was done.

The file holds Secrets and is readable by its owner only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.local.apiserver.storage.errors import SchemaTooNew, StoreCorrupt, StoreInUse, StoreUnusable
from plimsoll.runtime.sqlite_file import FileErrors, FileLock, FileSettings, open_sqlite

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from pathlib import Path

DATA_FILE: Final = "objects.sqlite3"
LOCK_FILE: Final = "objects.lock"
ERRORS: Final = FileErrors(
    noun="store",
    unusable=StoreUnusable,
    corrupt=StoreCorrupt,
    too_new=lambda file, found, known: SchemaTooNew(file, found=found, known=known),
)
# Migrations and the mark that the file is open must not be lost, whatever durability is set later.
_SETTINGS: Final = FileSettings(synchronous="FULL", log_bytes=64 * 1024 * 1024)

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
    """A connection to a file of the newest schema. It moves to the writer's thread after recovery."""
    return open_sqlite(file, migrations, errors=ERRORS, settings=_SETTINGS)


def lock_directory(directory: Path) -> FileLock:
    """Held as long as the store is open."""
    return FileLock(directory / LOCK_FILE, errors=ERRORS, in_use=StoreInUse)
