"""`plimsoll tidb …`: plans, names of groups, validation and simulation of TiDB auto-scaling."""

from __future__ import annotations

import json
from enum import Enum
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from plimsoll.cli.shared.output import Output, echo_value, read_file
from plimsoll.cli.tidb import planner, simulate
from plimsoll.core.errors import InvalidInput, NotEnoughData

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.core.plans import Reason
    from plimsoll.tidb.model.snapshot import Snapshot
    from plimsoll.tidb.model.strategy import Strategy

app = typer.Typer(no_args_is_help=True)
app.command(name="planner", short_help="Serve the planner of a cluster.")(planner.planner)
app.command(name="simulate", short_help="Simulate an autoscaler over a load curve.")(simulate.simulate)


class Profile(Enum):
    """Planner profiles; there is one."""

    DESIGN = "design"


@app.callback()
def tidb() -> None:
    """
    Plan, validate and simulate TiDB auto-scaling: how many TiKV and TiDB instances of which size.

    \b
    Examples:
      plimsoll tidb plan --strategy strategy.json --snapshot snapshot.json
      plimsoll tidb validate -f autoscaler.yaml --tc cluster.yaml
      plimsoll tidb simulate --load day.csv -f autoscaler.yaml --tc cluster.yaml --plot day.png
      plimsoll tidb name --seed seed.json
    """


# ---- plan


@app.command(name="plan", short_help="Plan instances for a snapshot.")
def plan(
    *,
    strategy: Annotated[str, typer.Option(help="File with the request body of POST /autoscaling.", metavar="FILE")],
    snapshot: Annotated[str, typer.Option(help="File with instances and their metrics.", metavar="FILE")],
    profile: Annotated[Profile, typer.Option(help="Planner profile.")] = Profile.DESIGN,
    fallback_heterogeneous: Annotated[
        bool,
        typer.Option("--fallback-heterogeneous", help="Scale out groups where the base cluster may not grow."),
    ] = False,
) -> None:
    """
    Print the plans for a strategy and a snapshot as a JSON array. Reasons go to stderr, one JSON object per line.

    Exit code 0: planned, even if there is nothing to do. 2: an input is invalid. 3: too few metrics to plan. In the
    last two cases stdout is empty and stderr is one JSON object.

    \b
    Examples:
      plimsoll tidb plan --strategy strategy.json --snapshot snapshot.json
    """
    del profile  # there is one
    from msgspec import structs

    from plimsoll.tidb.planning.planner.planner import plan as decide
    from plimsoll.tidb.planning.planner.result import CannotPlan
    from plimsoll.tidb.wire.plans import write_plans

    strategy_input, seen = _read_inputs(strategy, snapshot)
    answer = decide(structs.replace(strategy_input, falls_back=fallback_heterogeneous), seen)
    if isinstance(answer, CannotPlan):
        _refuse(answer.code, answer.detail, code=_NOT_ENOUGH if answer.is_for_lack_of_data else _BAD_INPUT)
    for line in _format_reasons(answer.reasons):
        typer.echo(line, err=True)
    typer.echo(write_plans(answer.plans).decode())


_BAD_INPUT = InvalidInput.exit_code
_NOT_ENOUGH = NotEnoughData.exit_code


def _read_inputs(strategy: str, snapshot: str) -> tuple[Strategy, Snapshot]:
    from plimsoll.tidb.wire.snapshots import read_snapshot
    from plimsoll.tidb.wire.strategy import read_strategies

    try:
        seen = read_snapshot(read_file(snapshot))
    except InvalidInput as error:
        _refuse("bad_snapshot", _with_file_name(snapshot, error), code=_BAD_INPUT)
    try:
        strategies = read_strategies(read_file(strategy))
    except InvalidInput as error:
        _refuse("bad_strategy", _with_file_name(strategy, error), code=_BAD_INPUT)
    matching = [candidate for candidate in strategies if candidate.component is seen.component]
    if not matching:
        _refuse("bad_strategy", f"{strategy}: rules: none is for {seen.component}", code=_BAD_INPUT)
    return matching[0], seen


def _with_file_name(name: str, error: InvalidInput) -> str:
    """The error with the file name, unless it has it already."""
    return str(error) if error.path == name else f"{name}: {error}"


def _format_reasons(reasons: Iterable[Reason]) -> Iterable[str]:
    for reason in reasons:
        yield json.dumps({"reason": reason.code, "detail": reason.message, **reason.facts})


def _refuse(error: str, detail: str, *, code: int) -> NoReturn:
    typer.echo(json.dumps({"error": error, "detail": detail}), err=True)
    raise typer.Exit(code)


# ---- name


@app.command(name="name", short_help="Print the name of a group's TidbCluster.")
def name(seed: Annotated[str, typer.Option(help="JSON file with the seed of the name.", metavar="FILE")]) -> None:
    """
    Print the name of a group's TidbCluster.

    The seed has namespace, tas (the autoscaler), component, cpu, memory, storage and labels. Amounts are whole
    numbers (thousandths of a core, bytes) or quantities such as "1000m" and "8Gi".

    \b
    Examples:
      plimsoll tidb name --seed seed.json
    """
    from plimsoll.tidb.wire.name_seeds import read_seed

    written = read_file(seed)
    try:
        found = read_seed(written)
    except InvalidInput as error:
        raise InvalidInput(str(error), path=seed) from error
    typer.echo(found.build_name())


# ---- validate


@app.command(name="validate", short_help="Validate an autoscaler for its cluster.")
def validate(
    *,
    filename: Annotated[
        str, typer.Option("-f", "--filename", help="File with the TidbClusterAutoScaler.", metavar="FILE")
    ],
    tc: Annotated[str, typer.Option("--tc", help="File with the TidbCluster.", metavar="FILE")],
    show_defaulted: Annotated[
        bool, typer.Option("--show-defaulted", help="If it is valid, print it with defaults applied.")
    ] = False,
) -> None:
    """
    Validate a TidbClusterAutoScaler for its TidbCluster: one error per line, exit code 1 if there is one.

    For a valid one nothing is printed. Warnings go to stderr. The file of the TidbCluster may contain Namespaces whose
    annotations admit autoscalers of other namespaces.

    \b
    Examples:
      plimsoll tidb validate -f autoscaler.yaml --tc cluster.yaml
      plimsoll tidb validate -f autoscaler.yaml --tc cluster.yaml --show-defaulted
    """
    from plimsoll.cli.tidb.files import read_autoscaler, read_cluster_file
    from plimsoll.tidb.planning.api.validation import find_warnings

    given = read_autoscaler(filename)
    world = read_cluster_file(tc)
    problems = given.find_problems(world)
    for line in problems:
        typer.echo(line)
    if given.autoscaler is not None:
        for warning in find_warnings(given.autoscaler):
            typer.echo(f"warning: {warning}", err=True)
    if problems:
        raise typer.Exit(1)
    if show_defaulted:
        echo_value(given.build_effective(world), Output.YAML)
