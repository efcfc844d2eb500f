"""`plimsoll kafka …`: status, plans and rebalances of a Kafka cluster, and a server with Cruise Control's API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.cli.journal.files import DEFAULT_DATA, DataOption
from plimsoll.cli.kafka import cruise_control, rebalance, trying
from plimsoll.cli.kafka.options import (
    RECORD_DIRECTORY,
    BootstrapOption,
    ConfigOption,
    DumpOption,
    SourceOptions,
    choose_dump,
    name_file_in_errors,
    read_cluster,
    takes_source,
)
from plimsoll.cli.kafka.request_options import takes_request
from plimsoll.cli.shared.connection import Connection, ContextOption, KubeconfigOption, ServerOption
from plimsoll.cli.shared.output import Output, OutputOption, echo_parts, echo_value

if TYPE_CHECKING:
    from plimsoll.kafka.model.description import ClusterDescription
    from plimsoll.kafka.model.requests import RebalanceRequest

app = typer.Typer(no_args_is_help=True)
app.command(name="rebalance", short_help="Move replicas: plan, execute, stop, resume.")(rebalance.rebalance)
app.command(name="try", short_help="Real brokers on this machine, to scale.")(trying.try_kafka)
app.command(name="cruise-control", short_help="Serve Cruise Control's REST API.")(cruise_control.cruise_control)


@app.callback()
def kafka() -> None:
    """
    See the balance of a Kafka cluster, plan what would move and why, and move it with a throttle.

    \b
    Examples:
      plimsoll kafka try
      plimsoll kafka status --bootstrap localhost:9092
      plimsoll kafka plan --bootstrap localhost:9092 --mode add-brokers --brokers 3
      plimsoll kafka rebalance --bootstrap localhost:9092 --mode remove-brokers --brokers 3 --throttle 50000000
      plimsoll kafka cruise-control --bootstrap localhost:9092 --port 9090
    """


@app.command(name="dump", short_help="Save the state of a cluster, for plans without it.")
@takes_source
def dump(*, bootstrap: BootstrapOption, source: SourceOptions) -> None:
    """
    Print the brokers, partitions, replicas and sizes of a cluster as JSON. Other commands read it with -f.

    A broker that does not answer is in the dump without its log directories; its replicas are not moved.

    Exit code 2: the input is wrong. 4: no broker can be reached.

    \b
    Examples:
      plimsoll kafka dump --bootstrap localhost:9092 > cluster.json
      plimsoll kafka plan -f cluster.json --mode add-brokers --brokers 3
    """
    from plimsoll.kafka.brokers.dump import write_dump

    description = _read(bootstrap=bootstrap, source=source)
    typer.echo(write_dump(description).decode(), nl=False)


@app.command(name="status", short_help="Clusters and their rebalances, or the brokers of one.")
def status(
    *,
    bootstrap: BootstrapOption = "",
    command_config: ConfigOption = "",
    filename: DumpOption = None,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", help="Only Kafkas of this namespace.", metavar="NAMESPACE")
    ] = "",
    server: ServerOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Show the Kafkas of a Kubernetes cluster: state of automatic rebalancing, brokers that come and go, rebalances.

    With --bootstrap or -f, show the brokers of one cluster with replicas, leaders and data, and partitions that are
    under-replicated or move.

    Exit code 2: the input is wrong. 3: a dump in which no broker answered. 4: no broker can be reached, or none answers
    with its log directories.

    \b
    Examples:
      plimsoll kafka status
      plimsoll kafka status --bootstrap localhost:9092
      plimsoll kafka status -f cluster.json -o json
    """
    dump_file = choose_dump(filename)
    if not bootstrap and not dump_file:
        from plimsoll.cli.kafka.objects import print_clusters

        connection = Connection(kubeconfig=kubeconfig, context=context, namespace=namespace, server=server)
        print_clusters(connection, output)
        return
    from plimsoll.cli.kafka.tables import build_status, check_answers, list_status
    from plimsoll.kafka.model.cluster import build_model

    source = SourceOptions(command_config=command_config)
    description = _read(bootstrap=bootstrap, source=source, filename=dump_file, output=output)
    with name_file_in_errors(dump_file):
        model = build_model(description)
    match output:
        case Output.TABLE:
            echo_parts(list_status(model), title=f"Kafka cluster {model.cluster_id}".rstrip())
        case Output.NAME:
            for broker in model.brokers:
                typer.echo(f"broker/{broker.id}")
        case _:
            echo_value(build_status(model), output)
    check_answers(model, is_dump=bool(dump_file))


@app.command(name="plan", short_help="What a rebalance would move, and why.")
@takes_source
@takes_request
def plan(
    *,
    bootstrap: BootstrapOption = "",
    filename: DumpOption = None,
    source: SourceOptions,
    request: RebalanceRequest,
    throttle: Annotated[
        int, typer.Option("--throttle", help="Show the time at this rate, in bytes per second per broker.", min=0)
    ] = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Plan a rebalance of a live cluster or of a dump. Nothing is moved.

    Exit code 0: planned, even if there is nothing to move. 1: a hard goal cannot hold, or a removal is not
    complete; the reason has the numbers. 2: the input is wrong. 3: a dump in which no broker answered. 4: no broker can
    be reached, or none answers with its log directories.

    \b
    Examples:
      plimsoll kafka plan --bootstrap localhost:9092
      plimsoll kafka plan --bootstrap localhost:9092 --mode add-brokers --brokers 3,4 --throttle 50000000
      plimsoll kafka plan -f cluster.json --mode remove-brokers --brokers 2 -o json
    """
    from plimsoll.cli.kafka.tables import build_plan_data, check_answers, check_removal, end_with_refusal, list_plan
    from plimsoll.kafka.model.cluster import build_model
    from plimsoll.kafka.model.proposals import Refusal
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.planning.optimizer import optimize

    dump_file = choose_dump(filename)
    description = _read(bootstrap=bootstrap, source=source, filename=dump_file, output=output)
    with name_file_in_errors(dump_file):
        model = build_model(description)
    check_answers(model, is_dump=bool(dump_file))
    result = optimize(model, request, AnalyzerSettings())
    if isinstance(result, Refusal):
        end_with_refusal(result, output, lambda refusal: {"refused": refusal})
    match output:
        case Output.TABLE:
            echo_parts(list_plan(result, throttle=throttle), title=f"Plan: {request.mode}")
        case Output.NAME:
            for proposal in result.proposals:
                typer.echo(f"{proposal.topic}-{proposal.partition}")
        case _:
            echo_value(build_plan_data(result), output)
    check_removal(result)


@app.command(name="pause", short_help="Begin no further movements.")
def pause(
    *,
    reason: Annotated[str, typer.Option("--reason", help="Shown in the state of the executor.")] = "",
    data: DataOption = "",
) -> None:
    """
    Pause executions whose record is in --data: movements under way end, no further ones begin.

    \b
    Examples:
      plimsoll kafka pause --reason "maintenance of rack b"
      plimsoll kafka resume
    """
    from plimsoll.cli.kafka.executing import write_pause

    write_pause(Path(data or DEFAULT_DATA) / RECORD_DIRECTORY, reason)
    typer.echo("paused; plimsoll kafka resume ends it", err=True)


@app.command(name="resume", short_help="End a pause.")
def resume(*, data: DataOption = "") -> None:
    """
    End a pause of executions whose record is in --data.

    \b
    Examples:
      plimsoll kafka resume
    """
    from plimsoll.cli.kafka.executing import remove_pause

    was_paused = remove_pause(Path(data or DEFAULT_DATA) / RECORD_DIRECTORY)
    typer.echo("resumed" if was_paused else "was not paused", err=True)


def _read(
    *, bootstrap: str, source: SourceOptions, filename: str = "", output: Output = Output.TABLE
) -> ClusterDescription:
    """The description of a live cluster or of a dump, with progress if it takes long."""
    import asyncio

    from plimsoll.cli.shared.progress import Progress

    async def read() -> ClusterDescription:
        with Progress("reading the cluster", is_silent=output in {Output.JSON, Output.YAML}):
            return await read_cluster(bootstrap=bootstrap, filename=filename, source=source)

    return asyncio.run(read())
