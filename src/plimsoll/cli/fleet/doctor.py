"""`plimsoll fleet doctor`: what is wrong with the clusters of a fleet, and is left to an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from plimsoll.cli.fleet.databases import DatabaseUrlFileOption, DatabaseUrlOption, read_database_url
from plimsoll.cli.fleet.decisions import FleetTokenOption, FleetUrlOption, build_source
from plimsoll.cli.shared.output import Output, OutputOption, Table, echo_parts, echo_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.fleet.planning.problems import FleetProblem

_CLUSTERS: Final = "/admin/clusters"
_PAGE_SIZE: Final = 1000


def doctor(
    *,
    database_url: DatabaseUrlOption = "",
    database_url_file: DatabaseUrlFileOption = "",
    fleet: FleetUrlOption = "",
    fleet_token_file: FleetTokenOption = "",
    agent_silence: Annotated[
        str,
        typer.Option("--agent-silence", help="After which an agent is silent; for a database.", metavar="DURATION"),
    ] = "10m",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    List what is wrong with the clusters of a fleet: orphans, drift, failures of providers, silent agents.

    The workers compare providers and rows in every pass; this command shows what they found last. It changes
    nothing: a cluster without a row is never deleted unasked. The exit code is 1 if there is a problem.

    \b
    Examples:
      plimsoll fleet doctor
      plimsoll fleet doctor --database-url-file /etc/fleet/database -o json
      plimsoll fleet doctor --fleet http://127.0.0.1:8000 --fleet-token-file admin-token
    """
    import asyncio

    source = build_source(database_url, database_url_file, fleet, fleet_token_file)
    if source.api_url:
        found = asyncio.run(_fetch(source.api_url, source.token_file))
    else:
        url = read_database_url(database_url, database_url_file)
        found = asyncio.run(_read(url, _read_silence_s(agent_silence)))
    _print(found, output)
    if found:
        raise typer.Exit(1)


async def _read(url: str, agent_silence_s: float) -> list[tuple[str, str]]:
    from plimsoll.fleet.planning.problems import list_fleet_problems
    from plimsoll.fleet.store.database import open_database
    from plimsoll.runtime.clocks import RealClock

    clock = RealClock()
    database = open_database(url, clock=clock, reads_only=True)
    try:
        clusters, _ = await database.transfer.export_rows()
        orphans = await database.store.list_orphans()
    finally:
        database.close()
    return _list_lines(list_fleet_problems(clusters, orphans, agent_silence_s=agent_silence_s, now=clock.now()))


async def _fetch(url: str, token_file: str) -> list[tuple[str, str]]:
    from plimsoll.cli.fleet.api_calls import fetch_list

    found: list[tuple[str, str]] = []
    page = 1
    while True:
        document = await fetch_list(url, token_file, _CLUSTERS, {"page": page, "size": _PAGE_SIZE})
        for cluster in document["items"]:
            found += [(f"cluster/{cluster['id']}", str(problem)) for problem in cluster["problems"]]
        if page * _PAGE_SIZE >= document["total"]:
            return [*found, *(("orphan", str(problem)) for problem in document["problems"])]
        page += 1


def _list_lines(problems: Iterable[FleetProblem]) -> list[tuple[str, str]]:
    return [(problem.subject, problem.message) for problem in problems]


def _print(found: list[tuple[str, str]], output: Output) -> None:
    from plimsoll.journal.rendering import remove_control_characters

    match output:
        case Output.TABLE:
            parts = [Table(("SUBJECT", "PROBLEM"), found)] if found else ["no problems"]
            echo_parts(parts, clean=remove_control_characters)
        case Output.NAME:
            for subject, _ in found:
                typer.echo(subject)
        case _:
            problems: list[dict[str, Any]] = [{"subject": subject, "problem": text} for subject, text in found]
            echo_value({"problems": problems}, output)


def _read_silence_s(text: str) -> float:
    from plimsoll.core.errors import InvalidInput
    from plimsoll.core.value_parsing import read_duration_s

    seconds = read_duration_s(text)
    if seconds is None or seconds <= 0:
        raise InvalidInput(f'{text!r} is not a duration like "10m"', path="--agent-silence")
    return seconds
