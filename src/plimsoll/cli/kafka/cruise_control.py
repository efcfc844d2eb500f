"""`plimsoll kafka cruise-control`: a server with Cruise Control's REST API, next to any Kafka 4 cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.cli.journal.files import DEFAULT_DATA, DataOption
from plimsoll.cli.kafka.options import (
    RECORD_DIRECTORY,
    BootstrapOption,
    SourceOptions,
    add_capacities,
    connect,
    open_source,
    takes_source,
)
from plimsoll.cli.kafka.request_options import split_list
from plimsoll.cli.kafka.serving import (
    CertificateOption,
    KeyOption,
    UsersOption,
    read_authentication,
    read_tls_files,
)
from plimsoll.cli.shared.logs import log_events_to_stderr
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kafka.cruise_control.server.authentication import Authentication
    from plimsoll.kafka.executor.record import RecordedPlan
    from plimsoll.kafka.model.description import ClusterDescription
    from plimsoll.kafka.model.executions import ExecutionOptions
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.web.serving import TlsFiles


@takes_source
def cruise_control(
    *,
    bootstrap: BootstrapOption,
    port: Annotated[int, typer.Option("--port", help="Port to listen on.", min=0, max=65_535)] = 9090,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    source: SourceOptions,
    users_file: UsersOption = "",
    tls_cert: CertificateOption = "",
    tls_key: KeyOption = "",
    default_goals: Annotated[
        str, typer.Option("--default-goals", help="Goals of requests without goals, by priority.", metavar="NAMES")
    ] = "",
    hard_goals: Annotated[
        str, typer.Option("--hard-goals", help="Goals that requests with goals must name.", metavar="NAMES")
    ] = "",
    concurrency: Annotated[
        int, typer.Option("--concurrency", help="Reassignments under way per broker, by default.", min=1, max=10_000)
    ] = 5,
    data: DataOption = "",
) -> None:
    """
    Serve Cruise Control's REST API. cccli, Strimzi's operator and our own operator use it.

    There are no sampling windows: the first answer comes from what the brokers report. An execution that an earlier
    process began is resumed. Without --users-file every client may do everything, so the server then listens on
    loopback only.

    \b
    Examples:
      plimsoll kafka cruise-control --bootstrap localhost:9092 --port 9090
      plimsoll kafka cruise-control --bootstrap kafka:9093 --command-config client.properties --users-file users
      cccli -a localhost:9090 rebalance --dry-run
    """
    import asyncio

    from plimsoll.kafka.model.executions import ExecutionOptions
    from plimsoll.runtime.signals import run_until_signalled
    from plimsoll.web.serving import check_address

    tls = read_tls_files(tls_cert, tls_key)
    authentication = read_authentication(users_file, host=host, path="--host")
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    check_address(address, example=f"--port {port % 65_535 + 1}")
    log_events_to_stderr()
    serving = _serve(
        address,
        bootstrap=bootstrap,
        source=source,
        settings=_build_settings(default_goals, hard_goals),
        execution=ExecutionOptions(concurrent_partition_movements_per_broker=concurrency),
        authentication=authentication,
        directory=Path(data or DEFAULT_DATA),
        tls=tls,
    )
    if asyncio.run(run_until_signalled(serving)) is not None:
        typer.echo("stopped", err=True)


def _build_settings(default_goals: str, hard_goals: str) -> AnalyzerSettings:
    from msgspec import structs

    from plimsoll.kafka.model.settings import AnalyzerSettings

    given = {
        "default_goals": _read_goals(default_goals, path="--default-goals"),
        "hard_goals": _read_goals(hard_goals, path="--hard-goals"),
    }
    return structs.replace(AnalyzerSettings(), **{name: goals for name, goals in given.items() if goals})


def _read_goals(text: str, *, path: str) -> tuple[str, ...]:
    from plimsoll.kafka.planning.goal_list import SUPPORTED_GOALS, find_goal

    goals = []
    for name in split_list(text, path=path):
        goal = find_goal(name)
        if goal is None:
            raise InvalidInput(f"no goal is named {name!r}; there are {', '.join(SUPPORTED_GOALS)}", path=path)
        goals.append(goal)
    return tuple(goals)


async def _serve(
    address: str,
    *,
    bootstrap: str,
    source: SourceOptions,
    settings: AnalyzerSettings,
    execution: ExecutionOptions,
    authentication: Authentication,
    directory: Path,
    tls: TlsFiles | None,
) -> None:
    """Serve until cancelled."""
    import asyncio

    from plimsoll.cli.kafka.executing import open_executor, open_journal
    from plimsoll.kafka.cruise_control.server.application import CruiseControlServer
    from plimsoll.kafka.cruise_control.server.context import Dependencies
    from plimsoll.kafka.reporting.metrics import KafkaMetrics
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.entropy import SystemEntropy
    from plimsoll.web.serving import serve

    async with (
        connect(bootstrap, source.command_config) as admin,
        open_source(admin, source, remembers_offsets=True) as opened,
        open_journal(directory) as journal,
        open_executor(admin, directory / RECORD_DIRECTORY, journal) as executor,
    ):

        async def describe(*, warns: bool = False) -> ClusterDescription:
            return add_capacities(await opened.describe(), source.capacity, warns=warns)

        async def run_in_thread(work: Callable[[], Any]) -> Any:
            return await asyncio.to_thread(work)

        found = await describe(warns=True)
        dependencies = Dependencies(
            describe=describe,
            executor=executor,
            settings=settings,
            clock=RealClock(),
            run_blocking=run_in_thread,
            execution=execution,
            journal=journal,
            metrics=KafkaMetrics(executor.get_progress),
        )
        server = CruiseControlServer(dependencies, entropy=SystemEntropy(), authentication=authentication)
        async with server:
            unfinished = await executor.find_unfinished()
            _warn_of_others(found, unfinished)
            server.resume_execution(unfinished)
            cleaning = asyncio.create_task(executor.keep_clean())
            url = f"{'http' if tls is None else 'https'}://{address}/kafkacruisecontrol/"
            typer.echo(f"serving Cruise Control's API on {url}; Ctrl-C stops it", err=True)
            try:
                await serve(server, address, tls=tls)
            finally:
                cleaning.cancel()


def _warn_of_others(found: ClusterDescription, unfinished: RecordedPlan | None) -> None:
    """Name reassignments that are not ours: another server on this cluster, or a person, moves replicas."""
    from plimsoll.kafka.executor.reasons import name_some
    from plimsoll.kafka.model.description import TopicPartition

    ours = set() if unfinished is None else {(move.topic, move.partition) for move in unfinished.proposals}
    others = [
        TopicPartition(topic.name, partition.partition)
        for topic in found.topics
        for partition in topic.partitions
        if (partition.adding or partition.removing) and (topic.name, partition.partition) not in ours
    ]
    if others:
        typer.echo(
            f"warning: another client reassigns {name_some(others)}; these reassignments are left alone. "
            "Run one Plimsoll or Cruise Control per cluster",
            err=True,
        )
