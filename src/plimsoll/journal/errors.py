"""What can go wrong with a journal's file or a recording, as one tree.

    JournalError
    ├── JournalUnusable        the file cannot be opened, read or written; the message names it
    │   ├── JournalTooNew      written by a newer Plimsoll
    │   └── JournalCorrupt     not a journal, or one whose content does not add up
    └── JournalClosed          asked for something after `close`
    NotEnoughData
    └── NothingKnown           nobody wrote down what is asked for; carries what to do about it
    InvalidInput
    └── UnreadableRecording    not a recording, damaged, or too large
        └── RecordingTooNew    written by a newer Plimsoll

A journal tells what was done; a controller whose journal fails says so and goes on doing.
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
    """There is nothing to tell; `hint` says what to look at or to do."""

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


class UnreadableRecording(InvalidInput):
    """Bytes that are no recording, or not a whole one."""


class RecordingTooNew(UnreadableRecording):
    """The recording was written by a newer Plimsoll."""
