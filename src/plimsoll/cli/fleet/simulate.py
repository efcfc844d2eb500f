"""`plimsoll fleet simulate`: a day of requests, played under several options."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.cli.fleet.evaluate import refuse_mistakes
from plimsoll.cli.shared.output import Output, Table, echo_parts, echo_value, read_file
from plimsoll.cli.shared.slow_notice import SlowNotice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.simulation.fleet.document import DayInput
    from plimsoll.simulation.fleet.outcome import DayOutcome


class DayOutput(Enum):
    """Output formats."""

    TABLE = "table"
    JSON = "json"


def simulate(
    *,
    filename: Annotated[str, typer.Option("-f", "--filename", help="The day; - is stdin.", metavar="FILE")],
    seed: Annotated[int | None, typer.Option("--seed", help="Draw another day than that of the file.", min=0)] = None,
    output: Annotated[DayOutput, typer.Option("-o", "--output", help="Output format.")] = DayOutput.TABLE,
) -> None:
    """
    Simulate a day of a fleet in virtual time: clusters created, hours paid for, requests that waited.

    The decisions are those of the service. Each variant of the file gets the same requests, and the n-th creation of
    a region fails in all variants or in none; the first row is the configuration as it is. Nothing is changed, and
    equal files give equal output.

    \b
    Examples:
      plimsoll fleet simulate -f examples/fleet/day.yaml
      plimsoll fleet simulate -f examples/fleet/day.yaml --seed 7 -o json
    """
    import msgspec

    from plimsoll.simulation.fleet.run import simulate_day

    day = _read(filename, seed)
    with SlowNotice("simulating a day", is_silent=output is DayOutput.JSON):
        outcomes = simulate_day(day)
    if output is DayOutput.JSON:
        echo_value({"variants": msgspec.to_builtins(outcomes)}, Output.JSON)
    else:
        echo_parts(_list_parts(outcomes))


def _read(name: str, seed: int | None) -> DayInput:
    from plimsoll.core.errors import UnreadableDocument
    from plimsoll.fleet.config.strict import Mistake
    from plimsoll.objects.codec.yaml import load_first
    from plimsoll.simulation.fleet.document import read_day_document

    try:
        document = load_first(read_file(name).decode("utf-8"))
    except (UnreadableDocument, UnicodeDecodeError) as error:
        refuse_mistakes([Mistake(name, f"is not YAML or JSON: {error}")])
    if seed is not None and isinstance(document, dict):
        document["seed"] = seed
    found = read_day_document(document)
    if isinstance(found, list):
        refuse_mistakes(found)
    return found


def _list_parts(outcomes: tuple[DayOutcome, ...]) -> Iterator[str | Table]:
    yield Table(
        ("VARIANT", "CREATED", "FAILED", "DELETED", "RESTORED", "UNDONE <2H", "CLUSTER HOURS", "NODE HOURS"),
        [
            (
                outcome.variant,
                outcome.created,
                outcome.failed,
                outcome.deleted,
                outcome.restored,
                f"{outcome.undone} ({outcome.undone_share:.1%})",
                f"{outcome.cluster_hours:.1f}",
                f"{outcome.node_hours:.0f}",
            )
            for outcome in outcomes
        ],
        is_spaced=False,
    )
    yield Table(
        ("VARIANT", "REQUESTS", "PLACED", "WAITED", "MEDIAN WAIT", "LONGEST WAIT", "GAVE UP", "REFUSED", "LEFT"),
        [
            (
                outcome.variant,
                outcome.requests,
                outcome.placed,
                outcome.waited,
                _format_minutes(outcome.median_wait_s),
                _format_minutes(outcome.longest_wait_s),
                outcome.gave_up,
                outcome.refused,
                outcome.waiting,
            )
            for outcome in outcomes
        ],
        is_spaced=False,
    )


def _format_minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds else "-"
