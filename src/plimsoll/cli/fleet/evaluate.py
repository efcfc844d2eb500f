"""`plimsoll fleet evaluate`: what the fleet manager would decide about rows in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from plimsoll.cli.shared.output import Output, OutputOption, Table, echo_parts, echo_value, read_file
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.fleet.config.strict import Mistake
    from plimsoll.fleet.wire.fleet_document import FleetDocument


def evaluate(
    *,
    filename: Annotated[
        str, typer.Option("-f", "--filename", help="File with rows and configuration; - is stdin.", metavar="FILE")
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Evaluate rows and configuration from one file, as the workers of the fleet manager do.

    The result says which clusters would be created, removed, restored or deleted, and where Kafkas would be placed. It
    needs no database, network or clock, and changes nothing. Exit code 0: evaluated. 2: the input is invalid; every
    mistake is one line on stderr.

    \b
    Examples:
      plimsoll fleet evaluate -f examples/fleet/evaluate.yaml
      plimsoll fleet evaluate -f examples/fleet/evaluate.yaml -o json
      plimsoll fleet export | plimsoll fleet evaluate -f -
    """
    from plimsoll.fleet.planning.evaluation import evaluate as evaluate_document

    result = evaluate_document(_read_document(filename))
    match output:
        case Output.TABLE:
            echo_parts(_list_parts(result))
        case Output.NAME:
            for name in _list_names(result):
                typer.echo(name)
        case _:
            echo_value(result, output)


def _read_document(name: str) -> FleetDocument:
    from plimsoll.core.errors import UnreadableDocument
    from plimsoll.fleet.config.strict import Mistake
    from plimsoll.fleet.wire.fleet_document import read_fleet_document
    from plimsoll.objects.codec.yaml import load_first

    try:
        document = load_first(read_file(name).decode("utf-8"))
    except (UnreadableDocument, UnicodeDecodeError) as error:
        refuse_mistakes([Mistake(name, f"is not YAML or JSON: {error}")])
    found = read_fleet_document(document)
    if isinstance(found, list):
        refuse_mistakes(found)
    return found


def refuse_mistakes(mistakes: list[Mistake]) -> NoReturn:
    """One mistake per line on stderr, as `<path>: <reason>`; then the command ends."""
    for mistake in mistakes:
        typer.echo(f"{mistake.path or 'document'}: {mistake.reason}", err=True)
    raise typer.Exit(InvalidInput.exit_code)


def _list_parts(result: dict[str, Any]) -> Iterator[str | Table]:
    for name in ("scale_up", "scale_down"):
        if name in result:
            found = result[name]
            state = "" if found.enabled else " (not enabled: evaluated only)"
            yield f"{name.replace('_', '-')}{state}"
            rows = [(item.decision, item.reason, item.message) for item in found.evaluations]
            yield Table(("DECISION", "REASON", "MESSAGE"), rows)
    if "deprovisioning" in result:
        yield "deprovisioning"
        rows = [(item.decision, item.reason, item.message) for item in result["deprovisioning"]]
        yield Table(("DECISION", "REASON", "MESSAGE"), rows)
    if "placement" in result:
        yield "placement"
        placed = [
            (f"kafka/{item['kafka_id']}", item["decision"], item["cluster"] or "-", item["reason"])
            for item in result["placement"]
        ]
        yield Table(("KAFKA", "DECISION", "CLUSTER", "REASON"), placed)
    if "prewarming" in result:
        yield "prewarming"
        reserves = [
            (f"cluster/{item['id']}", len(item["order"]), len(item["reserved"])) for item in result["prewarming"]
        ]
        yield Table(("CLUSTER", "LISTED", "RESERVED"), reserves, is_spaced=False)


def _list_names(result: dict[str, Any]) -> Iterator[str]:
    """What would change: capacities that get a cluster, clusters that are removed, Kafkas that are placed."""
    if "scale_up" in result:
        yield from (f"capacity/{item.locator}" for item in result["scale_up"].register)
    if "scale_down" in result:
        yield from (f"cluster/{row_id}" for row_id in result["scale_down"].deprovision)
    yield from (f"cluster/{item.id}" for item in result.get("deprovisioning", ()))
    yield from (f"kafka/{item['kafka_id']}" for item in result.get("placement", ()) if item["cluster"])
