"""Files that are replaced, never changed: readers see the old content or the new one, also after a crash."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def replace_file(file: Path, content: bytes) -> None:
    """Write a file beside, flush it to the disk and rename it. Only its owner may read it. Raises `OSError`."""
    beside = file.with_name(f".{file.name}.new")
    with suppress(FileNotFoundError):  # left by a crash, or put there as a link
        beside.unlink()
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as written:
        written.write(content)
        written.flush()
        os.fsync(written.fileno())
    beside.replace(file)
    _sync_directory(file.parent)


def remove_file(file: Path) -> None:
    """Remove a file for good, if it exists. Raises `OSError`."""
    file.unlink(missing_ok=True)
    _sync_directory(file.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
