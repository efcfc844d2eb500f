"""The errors of the storage layer, as one tree.

    StorageError
    ├── StoreUnusable      the data directory cannot be opened; the message names the file
    │   ├── StoreInUse     another process (or another store of this one) holds it
    │   ├── SchemaTooNew   written by a newer Plimsoll
    │   └── StoreCorrupt   not a database, or one whose content does not add up
    ├── StoreClosed        used after `aclose`
    ├── TooLarge           an object is more than may be stored; nothing was written
    ├── NotStored          a write did not reach the disk; nothing of it is visible, and the store goes on
    ├── Compacted          the requested revision is older than the history (410 Gone above)
    ├── RevisionAhead      the requested revision does not exist yet
    └── Expired            a watcher was slower than the history is long (410 Gone above)

A failed precondition is not among them: it is an exception of the change function, and passes through unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from plimsoll.core.errors import PlimsollError

if TYPE_CHECKING:
    from pathlib import Path


class StorageError(PlimsollError):
    """Base of everything the storage layer raises on purpose."""


class StoreUnusable(StorageError):
    """The data directory cannot be opened."""

    exit_code: ClassVar[int] = 2

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(f"{file}: {problem}")
        self.file = file
        self.problem = problem


class StoreInUse(StoreUnusable):
    """Another process has the data directory open."""

    def __init__(self, file: Path, holder: str) -> None:
        by = f"process {holder}" if holder else "another process"
        super().__init__(file, f"the data directory is in use by {by}; stop it first, or use another directory")
        self.holder = holder


class SchemaTooNew(StoreUnusable):
    """The file was written by a newer Plimsoll."""

    def __init__(self, file: Path, *, found: int, known: int) -> None:
        text = f"the file has schema version {found}, this Plimsoll reads versions up to {known}"
        super().__init__(file, f"{text}; use the newer Plimsoll, or another data directory")
        self.found = found
        self.known = known


class StoreCorrupt(StoreUnusable):
    """The file is not what was written."""


class StoreClosed(StorageError):
    """The store was closed, or its writer died."""


class TooLarge(StorageError):
    """An object has more bytes than the store takes. The words are etcd's, which clients know."""

    def __init__(self) -> None:
        super().__init__("etcdserver: request is too large")


class NotStored(StorageError):
    """A write did not become durable."""


class Compacted(StorageError):
    """History does not reach back to `requested`; `oldest` is the least revision that still works."""

    def __init__(self, requested: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {requested} ({oldest})")
        self.requested = requested
        self.oldest = oldest


class RevisionAhead(StorageError):
    """No write has had the revision `requested` yet; `newest` is the store's."""

    def __init__(self, requested: int, newest: int) -> None:
        super().__init__(f"Too large resource version: {requested}, current: {newest}")
        self.requested = requested
        self.newest = newest


class Expired(StorageError):
    """A watcher stood at revision `at`, and history no longer holds what comes after it."""

    def __init__(self, at: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {at} ({oldest})")
        self.at = at
        self.oldest = oldest
