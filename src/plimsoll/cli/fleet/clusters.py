"""`plimsoll fleet clusters`: the clusters of a fleet with their capacity, their state, its reason and their cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from plimsoll.cli.fleet.databases import DatabaseUrlFileOption, DatabaseUrlOption, find_database_url
from plimsoll.cli.shared.output import Output, OutputOption, Table, echo_parts, echo_value

if TYPE_CHECKING:
    from plimsoll.fleet.reporting.cluster_lines import ClusterLine

_CALL_TIMEOUT_S: Final = 2.0
_HEAD: Final = ("ID", "CLUSTER", "REGION", "STATUS", "UNITS", "NODES", "PER HOUR", "REASON")


def clusters(
    *,
    data: Annotated[
        Path, typer.Option("--data", help="Data directory of plimsoll up or plimsoll run fleet.", metavar="DIR")
    ] = Path(".plimsoll"),
    database_url: DatabaseUrlOption = "",
    database_url_file: DatabaseUrlFileOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    List the clusters of a fleet: capacity, state, the reason of the last decision, and what its machines cost.

    Rows and reasons come from the database of the fleet. Machines and their cost are those of clusters that plimsoll
    up runs; of others they are not known here. The exit code is 4 if the database cannot be reached.

    \b
    Examples:
      plimsoll fleet clusters
      plimsoll fleet clusters -o json
      plimsoll fleet clusters --database-url-file /etc/fleet/database
    """
    import asyncio

    from msgspec import to_builtins

    from plimsoll.app.fleet.process import build_default_url

    url = find_database_url(database_url, database_url_file) or build_default_url(data)
    lines = [_add_machines(line, data) for line in asyncio.run(_read(url))]
    match output:
        case Output.TABLE:
            _print_table(lines)
        case Output.NAME:
            for line in lines:
                typer.echo(f"cluster/{line.id}")
        case _:
            echo_value(to_builtins(lines), output)


async def _read(url: str) -> list[ClusterLine]:
    from plimsoll.app.fleet.journal_reading import open_fleet_journal
    from plimsoll.fleet.reporting.cluster_lines import list_cluster_lines
    from plimsoll.fleet.store.database import open_database
    from plimsoll.runtime.clocks import RealClock

    database = open_database(url, clock=RealClock(), reads_only=True)
    try:
        rows, _ = await database.transfer.export_rows()
    finally:
        database.close()
    with open_fleet_journal(url) as journal:
        return await list_cluster_lines(rows, journal)


def _add_machines(line: ClusterLine, data: Path) -> ClusterLine:
    """Add the machines of a cluster that runs on this machine; its folder has its kubeconfig."""
    from msgspec.structs import replace

    from plimsoll.cli.shared.connection import Connection, run_with_client
    from plimsoll.core.errors import PlimsollError

    kubeconfig = data / "clusters" / line.cluster_id / "kubeconfig"
    if not line.cluster_id or not kubeconfig.exists():
        return line
    connection = Connection(kubeconfig=str(kubeconfig))
    try:
        machines = run_with_client(connection, _list_machines, is_silent=True, timeout_s=_CALL_TIMEOUT_S)
    except PlimsollError:
        return line
    prices = [machine["spec"].get("price") or 0.0 for machine in machines]
    currency = next((str(machine["spec"].get("currency", "USD")) for machine in machines), "")
    return replace(line, nodes=len(machines), cost_per_hour=round(sum(prices), 4), currency=currency)


async def _list_machines(client: Any) -> list[dict[str, Any]]:
    """Those that cost something: they have started."""
    found = await client.get_json("/apis/cloud.plimsoll.io/v1alpha1/machines")
    return [machine for machine in found["items"] if (machine.get("status") or {}).get("startedTime")]


def _print_table(lines: list[ClusterLine]) -> None:
    from plimsoll.journal.rendering import remove_control_characters

    if not lines:
        typer.echo("the fleet has no clusters")
        return
    rows = [
        (
            line.id,
            line.cluster_id or "-",
            f"{line.cloud_provider} {line.region}",
            line.status,
            ", ".join(f"{name} {units.used}/{units.maximum}" for name, units in line.units.items()) or "-",
            "-" if line.nodes is None else str(line.nodes),
            "-" if line.cost_per_hour is None else f"{line.cost_per_hour:.2f} {line.currency}",
            line.reason or "-",
        )
        for line in lines
    ]
    echo_parts([Table(_HEAD, rows, is_spaced=False)], clean=remove_control_characters)
