"""`plimsoll journal`: lists recent decisions, one entry per line, or one entry in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.cli.fleet.decisions import DatabaseUrlFileOption, DatabaseUrlOption, FleetSource, build_source
from plimsoll.cli.journal.files import ReadDataOption, find_journal, open_journal, read_time_or_age
from plimsoll.cli.journal.following import follow_entries
from plimsoll.cli.shared.output import Output, OutputOption, Table, echo_parts, echo_value
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.journal.entries import Entry, Query

ENTRY = "entry/"
_DIGITS = 18


def journal(
    number: Annotated[
        str, typer.Argument(help="Show this entry in full: 42 or entry/42.", metavar="[NUMBER]", show_default=False)
    ] = "",
    *,
    data: ReadDataOption = "",
    since: Annotated[
        str, typer.Option("--since", help="Only entries since 90s, 15m or 36h ago, or since a time.", metavar="TIME")
    ] = "",
    until: Annotated[
        str, typer.Option("--until", help="Only entries until then, written likewise.", metavar="TIME")
    ] = "",
    subsystem: Annotated[str, typer.Option("--subsystem", help="Only this subsystem, e.g. nodes.")] = "",
    about: Annotated[
        str,
        typer.Option(
            "--about", help="Only entries about this object: pod/default/web-0, node/n1.", metavar="KIND/NAME"
        ),
    ] = "",
    limit: Annotated[int, typer.Option("--limit", help="Maximum number of entries; 0 means all.", min=0)] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", help="Print entries oldest first, then new ones as they come, until Ctrl-C.")
    ] = False,
    database_url: DatabaseUrlOption = "",
    database_url_file: DatabaseUrlFileOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    List decisions, newest first; with a number, show that entry in full.

    With --follow, an entry is a line, with -o json too; it is printed again when its outcome is known.

    Exit code 0: the journal was read, even if nothing was found. 3: there is no journal, or no entry with that number.

    \b
    Examples:
      plimsoll journal
      plimsoll journal --since 1h --about nodegroup/workers
      plimsoll journal 42
      plimsoll journal --follow --limit 5
      plimsoll journal --data ./other --subsystem nodes --limit 5 -o json
      plimsoll journal --database-url sqlite:///.plimsoll/fleet.sqlite3
    """
    source = build_source(database_url, database_url_file)
    if number:
        print_entry(number, data, output, source)
        return
    query = _query(since=since, until=until, subsystem=subsystem, about=about, limit=limit, source=source)
    if source.is_given:
        _show(lambda: source.list_entries(query), output, follow=follow)
        return
    place = find_journal(data)
    if place.is_other_cluster and output not in {Output.JSON, Output.YAML}:
        typer.echo(f"{place.describe_other()}; --data names the directory of another journal", err=True)
    with open_journal(data) as kept:
        _show(lambda: kept.list_entries(query), output, follow=follow)


def _show(read: Callable[[], tuple[Entry, ...]], output: Output, *, follow: bool) -> None:
    if follow:
        follow_entries(read, output)
    _print_entries(read(), output)


def print_entry(written: str, data: str, output: Output, source: FleetSource) -> None:
    """Print the entry that is written as 42 or entry/42."""
    digits = written.removeprefix(ENTRY)
    if not digits.isdecimal() or len(digits) > _DIGITS or not int(digits):
        raise InvalidInput(f"{written!r} is not the number of an entry, such as 42 or entry/42")
    _print_entry(_read_entry(int(digits), data, source), output)


def _query(*, since: str, until: str, subsystem: str, about: str, limit: int, source: FleetSource) -> Query:
    from plimsoll.app.references import read_ref
    from plimsoll.journal.entries import Query
    from plimsoll.runtime.clocks import RealClock

    now = RealClock().now()
    return Query(
        ref=(source.find_ref(about) or read_ref(about)) if about else None,
        subsystem=subsystem,
        since=read_time_or_age(since, now=now, path="--since"),
        until=read_time_or_age(until, now=now, path="--until"),
        limit=limit or None,
    )


def _read_entry(number: int, data: str, source: FleetSource) -> Entry:
    from plimsoll.journal.entries import Query
    from plimsoll.journal.errors import NothingKnown

    if source.is_given:
        entry = source.get_entry(number)
        if entry is None:
            raise NothingKnown(f"the journal of the fleet has no entry {number}", hint="plimsoll journal lists them")
        return entry
    with open_journal(data) as kept:
        found = kept.get_entry(number)
        if found is None:
            last = kept.list_entries(Query(limit=1))
            held = f"the newest is {last[0].number}; old entries are deleted" if last else "it is empty"
            raise NothingKnown(
                f"the journal {kept.file} has no entry {number}: {held}", hint="plimsoll journal lists those it has"
            )
    return found


def _print_entry(entry: Entry, output: Output) -> None:
    from plimsoll.journal.rendering import build_journal_data, format_entry

    match output:
        case Output.TABLE:
            echo_parts(format_entry(entry))
        case Output.NAME:
            typer.echo(f"entry/{entry.number}")
        case _:
            (found,) = build_journal_data([entry])
            echo_value(found, output)


def _print_entries(entries: tuple[Entry, ...], output: Output) -> None:
    from plimsoll.journal.rendering import JOURNAL_HEAD, build_journal_data, build_journal_rows

    match output:
        case Output.TABLE:
            if not entries:
                typer.echo("no entries found", err=True)
            echo_parts([Table(JOURNAL_HEAD, list(build_journal_rows(entries)), is_spaced=False)])
        case Output.NAME:
            for entry in entries:
                typer.echo(f"entry/{entry.number}")
        case _:
            echo_value(build_journal_data(entries), output)
