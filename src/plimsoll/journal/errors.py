"""Errors of journal files and recordings, as one tree.

    JournalError
    ├── JournalUnusable        the file cannot be opened, read or written; the message names it
    │   ├── JournalTooNew      written by a newer Plimsoll
    │   └── JournalCorrupt     not a journal, or one whose content does not add up
    └── JournalClosed          a call after `close`
    NotEnoughData
    └── NothingKnown           nothing was recorded about the object; carries a hint
    InvalidInput
    └── UnreadableRecording    not a recording, damaged, or too large
        └── RecordingTooNew    written by a newer Plimsoll

A journal only records actions: a controller whose journal fails reports that and continues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from plimsoll.core.errors import InvalidInput, NotEnoughData, PlimsollError

if TYPE_CHECKING:
    from pathlib import Path


class JournalError(PlimsollError):
    """Base of everything a journal raises on purpose."""


class JournalUnusable(JournalError):
    """The file cannot be used."""

    exit_code: ClassVar[int] = 2

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(f"{file}: {problem}")
        self.file = file
        self.problem = problem


class JournalTooNew(JournalUnusable):
    """The file was written by a newer Plimsoll."""

    def __init__(self, file: Path, *, found: int, known: int) -> None:
        text = f"the journal has schema version {found}, this Plimsoll reads versions up to {known}"
        super().__init__(file, f"{text}; use the newer Plimsoll, or another data directory")
        self.found = found
        self.known = known


class JournalCorrupt(JournalUnusable):
    """The file is not what was written."""


class JournalClosed(JournalError):
    """The journal was closed."""


class NothingKnown(NotEnoughData):
    """Nothing was recorded about the object; `hint` says what to do."""

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


class UnreadableRecording(InvalidInput):
    """Bytes that are not a recording, or only a part of one."""


class RecordingTooNew(UnreadableRecording):
    """The recording was written by a newer Plimsoll."""
