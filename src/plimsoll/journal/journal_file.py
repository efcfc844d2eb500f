"""The file of the SQLite driver: opens, checks and migrates it, and writes entries atomically. Blocking.

`SqliteJournal` calls it in a thread; the command line calls it directly and read-only.

A row is an entry, compressed, with a checksum. `subjects` maps an object to the entries that name it, by a hash of its
name: two objects with one hash cost one more read, not a wrong answer. The write-ahead log with `synchronous=NORMAL`
survives `kill -9` with every finished entry; after a power cut the last ones may be missing, but none is partial.
"""

from __future__ import annotations

import hashlib
import threading
import zlib
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from plimsoll.core.errors import InvalidInput
from plimsoll.journal.entries import Entry, Query, Retention, decode_entry, encode_entry, limit_size
from plimsoll.journal.errors import JournalClosed, JournalCorrupt, JournalTooNew, JournalUnusable
from plimsoll.runtime.sqlite_file import FileErrors, FileSettings, explain_errors, open_sqlite, run_transaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from plimsoll.core.plans import Outcome, Plan, Ref

JOURNAL_FILE: Final = "journal.sqlite3"
_ERRORS: Final = FileErrors(
    noun="journal",
    unusable=JournalUnusable,
    corrupt=JournalCorrupt,
    too_new=lambda file, found, known: JournalTooNew(file, found=found, known=known),
    advice="move it away for a new one",
)
_SETTINGS: Final = FileSettings(synchronous="NORMAL", log_bytes=16 * 1024 * 1024)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# The statements that bring a file from schema version n to n + 1; a new file is at version 0.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE entries (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            at_us INTEGER NOT NULL,
            subsystem TEXT NOT NULL,
            data BLOB NOT NULL,
            checksum INTEGER NOT NULL
        )
        """,
        "CREATE INDEX entries_at ON entries (at_us)",
        """
        CREATE TABLE subjects (
            hash INTEGER NOT NULL,
            number INTEGER NOT NULL,
            PRIMARY KEY (hash, number)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX subjects_number ON subjects (number)",
    ),
)


class JournalFile:
    """An open journal file. Calls from several threads are serialized."""

    def __init__(
        self,
        file: Path,
        retention: Retention | None = None,
        *,
        read_only: bool = False,
        migrations: Sequence[Sequence[str]] = MIGRATIONS,
    ) -> None:
        self.file = file
        self._retention = retention or Retention()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = open_sqlite(
            file, migrations, errors=_ERRORS, settings=_SETTINGS, read_only=read_only
        )

    def append(self, plan: Plan, outcomes: tuple[Outcome, ...] = ()) -> Entry:
        with self._open_for_changing() as connection:
            row = connection.execute(
                "INSERT INTO entries (at_us, subsystem, data, checksum) VALUES (?, ?, x'', 0)",
                (_to_microseconds(plan.at), plan.subsystem),
            )
            assert row.lastrowid is not None, "SQLite numbers every row"
            entry = limit_size(Entry(number=row.lastrowid, plan=plan, outcomes=outcomes), self._retention.entry_bytes)
            _store(connection, entry)
            connection.executemany(
                "INSERT OR IGNORE INTO subjects VALUES (?, ?)",
                ((hash_subject(ref), entry.number) for ref in entry.list_subjects()),
            )
            self._drop_old(connection, entry)
        return entry

    def conclude(self, number: int, outcomes: tuple[Outcome, ...]) -> None:
        with self._open_for_changing() as connection:
            kept = self._read_entry(connection, number)
            if kept is not None:
                ended = structs.replace(kept, outcomes=outcomes)
                _store(connection, limit_size(ended, self._retention.entry_bytes))

    def list_entries(self, query: Query) -> tuple[Entry, ...]:
        where, values = _build_conditions(query)
        text = f"SELECT number, data, checksum FROM entries {where} ORDER BY number DESC"  # noqa: S608 - only our words
        found: list[Entry] = []
        with self._open_for_reading() as connection:
            for row in connection.execute(text, values):
                if query.limit is not None and len(found) >= query.limit:
                    break
                entry = self._read(row)
                if query.matches(entry):
                    found.append(entry)
        return tuple(found)

    def get_entry(self, number: int) -> Entry | None:
        with self._open_for_reading() as connection:
            return self._read_entry(connection, number)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _read_entry(self, connection: sqlite3.Connection, number: int) -> Entry | None:
        text = "SELECT number, data, checksum FROM entries WHERE number = ?"
        row = connection.execute(text, (number,)).fetchone()
        return None if row is None else self._read(row)

    def _read(self, row: tuple[int, bytes, int]) -> Entry:
        number, data, checksum = row
        try:
            if zlib.crc32(data) != checksum:
                raise JournalCorrupt(self.file, f"entry {number} is damaged")
            return decode_entry(zlib.decompress(data))
        except (zlib.error, InvalidInput, TypeError) as error:
            raise JournalCorrupt(self.file, f"entry {number} cannot be read: {error}") from error

    def _drop_old(self, connection: sqlite3.Connection, newest: Entry) -> None:
        oldest_us = _to_microseconds(newest.at - timedelta(days=self._retention.days))
        dropped = connection.execute(
            "SELECT number FROM entries WHERE number <= ? OR at_us < ?",
            (newest.number - self._retention.entries, oldest_us),
        ).fetchall()
        _delete(connection, dropped)
        while _count_used_bytes(connection) > self._retention.total_bytes:
            # A part at a time: the space of an entry is known only after its deletion.
            oldest = connection.execute(
                "SELECT number FROM entries WHERE number < ? ORDER BY number "
                "LIMIT (SELECT count(*) / 20 + 1 FROM entries)",
                (newest.number,),
            ).fetchall()
            if not oldest:
                return
            _delete(connection, oldest)

    @contextmanager
    def _open_for_reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, explain_errors(self.file, _ERRORS):
            if self._connection is None:
                raise JournalClosed(f"{self.file}: the journal is closed")
            yield self._connection

    @contextmanager
    def _open_for_changing(self) -> Iterator[sqlite3.Connection]:
        with self._open_for_reading() as connection, run_transaction(connection):
            yield connection


def _delete(connection: sqlite3.Connection, numbers: Sequence[tuple[int]]) -> None:
    connection.executemany("DELETE FROM subjects WHERE number = ?", numbers)
    connection.executemany("DELETE FROM entries WHERE number = ?", numbers)


def _count_used_bytes(connection: sqlite3.Connection) -> int:
    """Pages that hold something. The file never becomes smaller, but free pages are used first."""
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    return int((pages - free) * size)


def delete_journal(directory: Path) -> None:
    """Delete the journal of a directory that no process uses; its next writer starts with entry 1."""
    for suffix in ("", "-wal", "-shm"):
        (directory / f"{JOURNAL_FILE}{suffix}").unlink(missing_ok=True)


def hash_subject(ref: Ref) -> int:
    return int.from_bytes(hashlib.blake2b(str(ref).encode(), digest_size=8).digest(), "big", signed=True)


def _store(connection: sqlite3.Connection, entry: Entry) -> None:
    data = zlib.compress(encode_entry(entry))
    connection.execute(
        "UPDATE entries SET data = ?, checksum = ? WHERE number = ?", (data, zlib.crc32(data), entry.number)
    )


def _build_conditions(query: Query) -> tuple[str, list[Any]]:
    parts: list[tuple[str, Any]] = []
    if query.subsystem:
        parts.append(("subsystem = ?", query.subsystem))
    if query.since is not None:
        parts.append(("at_us >= ?", _to_microseconds(query.since)))
    if query.until is not None:
        parts.append(("at_us <= ?", _to_microseconds(query.until)))
    if query.ref is not None:
        parts.append(("number IN (SELECT number FROM subjects WHERE hash = ?)", hash_subject(query.ref)))
    where = "WHERE " + " AND ".join(text for text, _value in parts) if parts else ""
    return where, [value for _text, value in parts]


def _to_microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)
