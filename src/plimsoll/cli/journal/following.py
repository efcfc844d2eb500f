"""`plimsoll journal --follow`: prints entries as they are written, oldest first, until Ctrl-C."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import typer

from plimsoll.cli.shared.output import Output
from plimsoll.cli.shared.watching import INTERVAL_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.journal.entries import Entry

_REMEMBERED = 1_000


def follow_entries(
    read: Callable[[], Sequence[Entry]], output: Output, *, sleep: Callable[[float], None] | None = None
) -> NoReturn:
    """Print what `read` returns, newest first there, and again and again what is new or has another outcome.

    Ends with the exception of `read` or Ctrl-C.
    """
    import time

    pause = sleep or time.sleep
    shown: dict[int, str] = {}
    while True:
        for entry in reversed(read()):
            sentence = entry.format_sentence()
            if shown.get(entry.number) != sentence:
                shown[entry.number] = sentence
                typer.echo(_format(entry, output))
        for number in sorted(shown)[:-_REMEMBERED]:
            del shown[number]
        pause(INTERVAL_S)


def _format(entry: Entry, output: Output) -> str:
    """The entry as a line, so that programs can read the output while it grows."""
    import json

    from plimsoll.core.formatting import format_time
    from plimsoll.journal.rendering import build_journal_data, remove_control_characters

    match output:
        case Output.TABLE:
            return remove_control_characters(f"{entry.number}  {format_time(entry.at)}  {entry.format_sentence()}")
        case Output.NAME:
            return f"entry/{entry.number}"
        case _:
            (data,) = build_journal_data([entry])
            return json.dumps(data)
