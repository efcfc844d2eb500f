"""Shared by the commands that read the journal: its location, and times."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from plimsoll.journal.journal_file import JournalFile

DEFAULT_DATA = ".plimsoll"
DataOption = Annotated[
    str,
    typer.Option(
        "--data", help=f"Directory of the journal. Default: ./{DEFAULT_DATA}.", metavar="DIR", show_default=False
    ),
]


def get_journal_path(data: str) -> Path:
    from plimsoll.journal.journal_file import JOURNAL_FILE

    return Path(data or DEFAULT_DATA) / JOURNAL_FILE


@contextmanager
def open_journal(data: str) -> Iterator[JournalFile]:
    """Open the journal read-only, while it may still be written. Raises `NothingKnown` if there is none."""
    from plimsoll.journal.errors import NothingKnown
    from plimsoll.journal.journal_file import JournalFile

    path = get_journal_path(data)
    if not path.exists():
        raise NothingKnown(
            f"there is no journal in {path.parent}",
            hint="plimsoll up and plimsoll run nodes --data DIR write one; pass its directory with --data, "
            "or ask the cluster: plimsoll why KIND/NAME --kubeconfig FILE",
        )
    journal = JournalFile(path, read_only=True)
    try:
        yield journal
    finally:
        journal.close()


def read_time_or_age(text: str, *, now: datetime, path: str) -> datetime | None:
    """Read `1h` (ago), or an RFC 3339 time; None if nothing was given."""
    from datetime import timedelta

    import msgspec

    from plimsoll.core.value_parsing import read_duration_s
    from plimsoll.objects.api.meta import Time

    if not text:
        return None
    ago_s = read_duration_s(text)
    try:
        return msgspec.convert(text, Time) if ago_s is None else now - timedelta(seconds=ago_s)
    except (msgspec.ValidationError, OverflowError):
        problem = f'{text!r} is neither a time ago like "90s", "15m" or "36h" nor a time like "2026-01-31T12:00:00Z"'
        raise InvalidInput(problem, path=path) from None
