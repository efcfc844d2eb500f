"""`plimsoll run kafka`: the Kafka operator, until it is stopped, or for one reconcile of each object."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.cli.kafka.serving import (
    CertificateOption,
    KeyOption,
    UsersOption,
    read_authentication,
    read_tls_files,
)
from plimsoll.cli.shared.connection import Connection, ContextOption, KubeconfigOption, ServerOption
from plimsoll.cli.shared.controllers import (
    AddressOption,
    ControllerNamespaceOption,
    DryRunOption,
    JournalOption,
    ResyncOption,
    build_controller_options,
    declare_leader_elect,
    reconcile_once,
    run_until_stopped,
)
from plimsoll.cli.shared.logs import log_events_to_stderr, log_to_stderr
from plimsoll.cli.shared.output import Output, OutputOption, echo_value
from plimsoll.cli.shared.reconcile_failures import build_failure
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from plimsoll.app.kafka.kafka_operator import CruiseControlServing, ReconciledOnce


class ModeName(Enum):
    """Which program owns the Kafka objects."""

    OPERATOR = "operator"
    COMPANION = "companion"


class EngineName(Enum):
    """What plans and moves."""

    PLIMSOLL = "plimsoll"
    CRUISE_CONTROL = "cruise-control"


def kafka(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    server: ServerOption = "",
    mode: Annotated[
        ModeName,
        typer.Option(
            "--kafka-mode",
            help="operator: Kafkas, node pools and pod sets are reconciled. companion, beside Strimzi: they are never "
            "written; KafkaRebalances are created for Kafkas that ask for it.",
        ),
    ] = ModeName.OPERATOR,
    engine: Annotated[
        EngineName,
        typer.Option(
            "--rebalance-engine",
            help="plimsoll: this process plans and moves. cruise-control: the Cruise Control of each cluster does.",
        ),
    ] = EngineName.PLIMSOLL,
    once: Annotated[
        bool, typer.Option("--once", help="Reconcile every object once, print the result and exit. No pod is created.")
    ] = False,
    dry_run: DryRunOption = False,
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", help="Only Kafkas of this namespace.", metavar="NAMESPACE")
    ] = "",
    controller_namespace: ControllerNamespaceOption = "kube-system",
    resync: ResyncOption = 120.0,
    workers: Annotated[
        int, typer.Option("--workers", help="Clusters that are reconciled at the same time.", min=1, max=100)
    ] = 4,
    leader_elect: Annotated[bool, declare_leader_elect("plimsoll-kafka")] = True,
    address: AddressOption = ":8088",
    cruise_control_address: Annotated[
        str,
        typer.Option(
            "--cruise-control-address",
            help="Serve the engine of each cluster as its Cruise Control here, under /NAMESPACE/KAFKA.",
            metavar="HOST:PORT",
        ),
    ] = "",
    users_file: UsersOption = "",
    tls_cert: CertificateOption = "",
    tls_key: KeyOption = "",
    data: JournalOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Scale Kafka clusters: move replicas onto new brokers, and empty brokers before their pods go.

    The operator mode does not start beside a Strimzi operator that watches the same namespaces (exit code 1). The
    companion mode creates KafkaRebalances for Kafkas with the annotation plimsoll.io/auto-rebalancing: "true" when they
    scale; Strimzi carries them out.

    --cruise-control-address serves Cruise Control's API of every cluster with spec.cruiseControl. Without it the
    companion starts no engine, and Strimzi's Cruise Controls plan and move.

    --dry-run plans and reports but never acts, takes no lease, and starts no engine. --once reconciles once. Its exit
    code is 1 if a reconcile failed, if brokers cannot be seen, or if another process leads: it waits for the lease of a
    dead process only, and says on stderr which one. It is 4 if the server cannot be reached.

    \b
    Examples:
      plimsoll run kafka --kubeconfig ./cluster/kubeconfig --dry-run --once
      plimsoll run kafka --namespace kafka
      plimsoll run kafka --rebalance-engine=cruise-control
    """
    from msgspec.structs import replace

    from plimsoll.app.kafka.kafka_operator import KafkaOperatorProcess, KafkaOperatorSettings
    from plimsoll.kafka.settings import KafkaMode, KafkaSettings, RebalanceEngine
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.entropy import SystemEntropy

    settings = KafkaSettings(
        mode=KafkaMode(mode.value),
        engine=RebalanceEngine(engine.value),
        dry_run=dry_run,
        namespace=namespace,
        controller_namespace=controller_namespace,
        resync_s=resync,
        workers=workers,
    )
    serving = _read_serving(cruise_control_address, users_file, tls_cert, tls_key)
    if serving is not None:
        if settings.engine is not RebalanceEngine.PLIMSOLL or once or dry_run:
            other = "--once" if once else "--dry-run" if dry_run else "--rebalance-engine=cruise-control"
            raise InvalidInput(f"there is no engine to serve with {other}", path="--cruise-control-address")
        settings = replace(settings, serves_engines=True)
    log_to_stderr() if once else log_events_to_stderr()
    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    options = build_controller_options(connection, data=data, address=address, leader_elect=leader_elect)
    process = KafkaOperatorProcess(
        KafkaOperatorSettings(process=options, settings=settings, serving=serving),
        clock=RealClock(),
        entropy=SystemEntropy(),
    )
    if once:
        results = reconcile_once(process, output)
        _print_results(results, output)
        _raise_failures(results)
    else:
        run_until_stopped(process, f"operating Kafka clusters of {options.access.server}", dry_run=dry_run)


def _read_serving(address: str, users_file: str, tls_cert: str, tls_key: str) -> CruiseControlServing | None:
    """Where the engines are served; None: nowhere. Raises `InvalidInput`."""
    from plimsoll.app.kafka.kafka_operator import CruiseControlServing
    from plimsoll.web.serving import parse_address

    if not address:
        flags = {"--users-file": users_file, "--tls-cert": tls_cert, "--tls-key": tls_key}
        for flag in (flag for flag, value in flags.items() if value):
            raise InvalidInput(f"{flag} has no effect without --cruise-control-address", path=flag)
        return None
    if ":" not in address:
        raise InvalidInput(f"{address!r} is not HOST:PORT", path="--cruise-control-address")
    host, _ = parse_address(address)
    authentication = read_authentication(users_file, host=host, path="--cruise-control-address")
    return CruiseControlServing(address=address, authentication=authentication, tls=read_tls_files(tls_cert, tls_key))


def _raise_failures(results: ReconciledOnce) -> None:
    """Raises if a reconcile failed, or if a cluster has a problem or brokers that cannot be seen."""
    from plimsoll.operator.reconcile_all import FailedReconcile

    failed = [result for result in (*results.clusters, *results.rebalances) if isinstance(result, FailedReconcile)]
    if failed:
        raise build_failure(failed)
    if any(result.failure is not None for result in results.clusters if not isinstance(result, FailedReconcile)):
        raise typer.Exit(1)


def _print_results(results: ReconciledOnce, output: Output) -> None:
    from plimsoll.journal.rendering import remove_control_characters

    described = _describe(results)
    match output:
        case Output.TABLE:
            for entry in described:
                typer.echo(remove_control_characters(entry["sentence"]))
            if not described:
                typer.echo("there is no Kafka and no KafkaRebalance")
        case Output.NAME:
            for entry in described:
                typer.echo(f"{entry['kind']}/{entry['namespace']}/{entry['name']}")
        case _:
            echo_value(described, output)


def _describe(results: ReconciledOnce) -> list[dict[str, Any]]:
    """The results as plain data: sentence, plan and outcomes."""
    import msgspec

    from plimsoll.kafka.reporting import cluster_reporter, rebalance_reporter
    from plimsoll.operator.reconcile_all import FailedReconcile

    clusters = [
        (result.ref, cluster_reporter.build_sentence(result), cluster_reporter.build_journal_plan(result, number=0))
        for result in results.clusters
        if not isinstance(result, FailedReconcile)
    ]
    rebalances = [
        (result.ref, rebalance_reporter.build_sentence(result), rebalance_reporter.build_journal_plan(result, number=0))
        for result in results.rebalances
        if not isinstance(result, FailedReconcile)
    ]
    return [
        {
            "kind": ref.kind,
            "namespace": ref.namespace,
            "name": ref.name,
            "sentence": sentence,
            "plan": msgspec.to_builtins(plan),
            "outcomes": msgspec.to_builtins(outcomes),
        }
        for ref, sentence, (plan, outcomes) in (*clusters, *rebalances)
    ]
