"""`plimsoll kafka rebalance`: plans and executes, with progress; stops and resumes what an earlier run began."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plimsoll.cli.journal.files import DEFAULT_DATA, DataOption
from plimsoll.cli.kafka.options import BootstrapOption, SourceOptions, takes_source
from plimsoll.cli.kafka.request_options import split_list, takes_request
from plimsoll.cli.shared.logs import log_sentences_to_stderr
from plimsoll.cli.shared.output import Output, OutputOption, echo_parts, echo_value
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from plimsoll.kafka.model.executions import ExecutionOutcome
    from plimsoll.kafka.model.proposals import OptimizationResult
    from plimsoll.kafka.model.requests import RebalanceRequest

_OPTIONS_OF_EARLIER_RUNS: Final = {"bootstrap", "command_config", "data", "output", "yes", "resume", "stop"}


@takes_source
@takes_request
def rebalance(
    context: typer.Context,
    *,
    bootstrap: BootstrapOption,
    source: SourceOptions,
    request: RebalanceRequest,
    throttle: Annotated[
        int, typer.Option("--throttle", help="Replication rate, in bytes per second per broker; 0: none.", min=0)
    ] = 0,
    concurrency: Annotated[
        int, typer.Option("--concurrency", help="Reassignments under way per broker.", min=1, max=10_000)
    ] = 5,
    strategies: Annotated[
        str, typer.Option("--strategies", help="Order of movements, e.g. PrioritizeSmallReplicaMovementStrategy.")
    ] = "",
    require_in_sync: Annotated[
        bool, typer.Option("--require-in-sync", help="Refuse while partitions are under-replicated.")
    ] = False,
    max_bytes: Annotated[
        int | None, typer.Option("--max-bytes", help="Ask only if more than this would be moved; 0: always.", min=0)
    ] = None,
    max_bytes_per_hour: Annotated[
        int | None, typer.Option("--max-bytes-per-hour", help="Start at most so many bytes per hour.", min=1)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Plan and record the plan, move nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what an earlier run began.")] = False,
    stop: Annotated[
        bool, typer.Option("--stop", help="Cancel what an earlier run began, and wait until it is rolled back.")
    ] = False,
    data: DataOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Move replicas and leaders of a live cluster.

    The plan is shown first, and nothing moves without a confirmation (--yes in scripts). Ctrl-C cancels what is under
    way and waits until it is rolled back. A run that was killed leaves a record in --data: --resume goes on with it,
    --stop undoes it. Throttles that this command sets are always removed.

    Exit code 0: done, or nothing to do. 1: refused, stopped, or something was not moved. 2: wrong input. 4: no broker
    can be reached, or none answers with its log directories.

    \b
    Examples:
      plimsoll kafka rebalance --bootstrap localhost:9092 --mode add-brokers --brokers 3 --throttle 50000000
      plimsoll kafka rebalance --bootstrap localhost:9092 --mode remove-brokers --brokers 3 --yes
      plimsoll kafka rebalance --bootstrap localhost:9092 --resume
      plimsoll kafka rebalance --bootstrap localhost:9092 --stop
    """
    import asyncio

    from plimsoll.cli.kafka.rebalancing import RebalanceRun
    from plimsoll.cli.kafka.tables import check_removal
    from plimsoll.kafka.executor.strategies import check_strategies
    from plimsoll.kafka.model.executions import ExecutionOptions

    if resume and stop:
        raise InvalidInput("say either --resume or --stop", path="--stop")
    if resume or stop:
        _refuse_plan_options(context, option="--resume" if resume else "--stop")
    options = ExecutionOptions(
        concurrent_partition_movements_per_broker=concurrency,
        replication_throttle=throttle or None,
        replica_movement_strategies=check_strategies(split_list(strategies, path="--strategies"), path="--strategies"),
        require_in_sync=require_in_sync,
        require_planned_replicas=True,
        max_bytes_per_hour=max_bytes_per_hour,
        max_bytes_unconfirmed=max_bytes or None,
        is_confirmed=yes,
    )
    run = RebalanceRun(bootstrap=bootstrap, source=source, directory=Path(data or DEFAULT_DATA), output=output)
    log_sentences_to_stderr(is_verbose=False)
    if resume or stop:
        result, outcome = None, asyncio.run(run.finish_earlier(stops=stop))
    else:
        result, outcome = asyncio.run(run.rebalance(request, options, confirms=not yes, is_dry_run=dry_run))
    _report(result, outcome, output)
    if result is not None:
        check_removal(result)
    if outcome is not None and not _is_complete(outcome):
        raise typer.Exit(1)


def _refuse_plan_options(context: typer.Context, *, option: str) -> None:
    """Options of a new plan change nothing of an execution that has begun, so they are refused by name."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in _OPTIONS_OF_EARLIER_RUNS or source is None or source.name != "COMMANDLINE":
            continue
        problem = f"{option} takes the plan of the earlier run, which this cannot change"
        raise InvalidInput(problem, path=parameter.opts[0])


def _is_complete(outcome: ExecutionOutcome) -> bool:
    from plimsoll.kafka.model.executions import ExecutionEnd

    return outcome.end is ExecutionEnd.COMPLETED and not outcome.not_completed


def _report(result: OptimizationResult | None, outcome: ExecutionOutcome | None, output: Output) -> None:
    """Print how it ended. The table of the plan was printed before anything moved."""
    from plimsoll.cli.kafka.tables import build_rebalance_data, describe_outcome

    if output in {Output.JSON, Output.YAML}:
        echo_value(build_rebalance_data(result, outcome=outcome), output)
    elif outcome is not None and output is Output.TABLE:
        echo_parts(describe_outcome(outcome))
    elif outcome is not None:
        typer.echo(outcome.execution_id)
