"""`plimsoll fleet …`: what-if evaluations and configuration of the fleet manager."""

from __future__ import annotations

import typer

from plimsoll.cli.fleet import clusters, doctor, evaluate, simulate, token, transfer, validate_config

app = typer.Typer(no_args_is_help=True)


@app.callback()
def fleet() -> None:
    """
    Evaluate and configure a fleet of Kafka clusters in regions.

    \b
    Examples:
      plimsoll fleet evaluate -f examples/fleet/evaluate.yaml
      plimsoll fleet simulate -f examples/fleet/day.yaml
      plimsoll fleet validate-config --config-dir examples/fleet/config
      plimsoll fleet export | plimsoll fleet evaluate -f -
    """


app.command(name="clusters", short_help="List clusters: capacity, state, reason, cost.")(clusters.clusters)
app.command(name="evaluate", short_help="Evaluate rows in a file: what would be decided.")(evaluate.evaluate)
app.command(name="simulate", short_help="Simulate a day of requests under several options.")(simulate.simulate)
app.command(name="validate-config", short_help="Validate configuration files.")(validate_config.validate_config)
app.command(name="doctor", short_help="List orphans, drift and failures of clusters.")(doctor.doctor)
app.command(name="export", short_help="Export the rows of a fleet as a document.")(transfer.export_rows)
app.command(name="import", short_help="Import rows into the database of a fleet.")(transfer.import_rows)
app.command(name="token", short_help="Print a token of the built-in issuer.")(token.token)
