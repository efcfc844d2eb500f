"""`plimsoll run tidb`: the TiDB autoscaler, until it is stopped, or for one reconcile of each autoscaler."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from plimsoll.cli.tidb.tokens import TokenFileOption, read_token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.operator.reconcile_all import FailedReconcile
    from plimsoll.tidb.model.reconcile_result import ReconcileResult


class DrainMode(Enum):
    """Which program removes stores."""

    GUARD = "guard"
    ACTIVE = "active"


class NodeCount(Enum):
    """Which nodes are counted."""

    READY = "ready"
    POTENTIAL = "potential"


def tidb(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    server: ServerOption = "",
    planner: Annotated[
        str,
        typer.Option(
            "--planner", help="Planner (POST URL/autoscaling). Default: plan in this process, from PD.", metavar="URL"
        ),
    ] = "",
    pd: Annotated[
        str, typer.Option("--pd", help="Address of PD. Default: http://CLUSTER-pd.NAMESPACE:2379.", metavar="URL")
    ] = "",
    prometheus: Annotated[
        str,
        typer.Option(
            "--prometheus",
            help="Prometheus for planning without --planner. Default: the one that PD knows.",
            metavar="URL",
        ),
    ] = "",
    pd_token_file: TokenFileOption = "",
    fallback_heterogeneous: Annotated[
        bool,
        typer.Option(
            "--fallback-heterogeneous",
            help="Without --planner: scale out groups where the base cluster may not grow.",
        ),
    ] = False,
    drain: Annotated[
        DrainMode,
        typer.Option("--drain", help="guard: TiDB Operator removes stores. active: this program does."),
    ] = DrainMode.GUARD,
    peer_tolerance: Annotated[
        int,
        typer.Option("--peer-tolerance", help="Number of unhealthy regions allowed while a store is removed.", min=0),
    ] = 0,
    tidb_drain_seconds: Annotated[
        float,
        typer.Option("--tidb-drain-seconds", help="Seconds for TiDB servers of a removed group to shut down.", min=0),
    ] = 0.0,
    once: Annotated[
        bool, typer.Option("--once", help="Reconcile every autoscaler once, print the result and exit.")
    ] = False,
    now: Annotated[
        str, typer.Option("--now", help="With --once: the time to assume, e.g. for recorded data.", metavar="RFC3339")
    ] = "",
    dry_run: DryRunOption = False,
    autoscaler_namespace: Annotated[
        str, typer.Option("-n", "--namespace", help="Only autoscalers of this namespace.", metavar="NAMESPACE")
    ] = "",
    controller_namespace: ControllerNamespaceOption = "kube-system",
    node_count: Annotated[
        NodeCount,
        typer.Option("--node-count", help="Count ready nodes, or also those that the node autoscaler may add."),
    ] = NodeCount.READY,
    resync: ResyncOption = 30.0,
    removal_confirmations: Annotated[
        int,
        typer.Option(
            "--removal-confirmations", help="Consecutive answers that must omit a group before it is removed.", min=1
        ),
    ] = 2,
    trust_omission: Annotated[
        bool, typer.Option("--trust-omission", help="Remove a group that one answer omits.")
    ] = False,
    registration_grace: Annotated[
        float,
        typer.Option("--registration-grace", help="Seconds that the instances of a group may take to register.", min=0),
    ] = 600.0,
    out_consecutive: Annotated[
        int, typer.Option("--out-consecutive", help="Consecutive reconciles that must want a scale-out.", min=1)
    ] = 1,
    in_consecutive: Annotated[
        int, typer.Option("--in-consecutive", help="Consecutive reconciles that must want a scale-in.", min=1)
    ] = 1,
    endpoint_slice: Annotated[
        bool,
        typer.Option(
            "--tidb-endpointslice/--no-tidb-endpointslice", help="Let the cluster's Service reach added TiDB servers."
        ),
    ] = True,
    external_allow: Annotated[
        list[str] | None,
        typer.Option(
            "--external-allow",
            help="Hosts or networks that are always allowed for external services.",
            metavar="HOST",
        ),
    ] = None,
    leader_elect: Annotated[bool, declare_leader_elect("plimsoll-tidb")] = True,
    address: AddressOption = ":8087",
    data: JournalOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Scale TiDB clusters as their TidbClusterAutoScalers say: scale out clusters, and create, resize and remove groups.

    --dry-run plans and reports but never acts, and takes no lease. --once reconciles once. Its exit code is 0 even if
    something is held or blocked, 1 if a reconcile failed, for example by a refused write, and 4 if the server cannot be
    reached.

    \b
    Examples:
      plimsoll run tidb --kubeconfig ./cluster/kubeconfig --dry-run --once
      plimsoll run tidb --planner http://planner:9092
      plimsoll run tidb --prometheus http://monitor:9090 --drain=active
    """
    from plimsoll.app.tidb_autoscaling import TidbAutoscalerProcess, TidbAutoscalingSettings
    from plimsoll.runtime.entropy import SystemEntropy
    from plimsoll.tidb.model.reconcile_types import ReconcilePolicy
    from plimsoll.tidb.settings import TidbSettings
    from plimsoll.web.address_guard import parse_exceptions
    from plimsoll.web.client import check_base_url

    policy = ReconcilePolicy(
        removal_confirmations=1 if trust_omission else removal_confirmations,
        registration_grace_s=registration_grace,
        out_consecutive=out_consecutive,
        in_consecutive=in_consecutive,
        tidb_drain_s=tidb_drain_seconds,
    )
    settings = TidbSettings(
        planner=check_base_url(planner, path="--planner") if planner else "",
        pd=check_base_url(pd, path="--pd") if pd else "",
        prometheus=check_base_url(prometheus, path="--prometheus") if prometheus else "",
        falls_back=fallback_heterogeneous,
        drains_actively=drain is DrainMode.ACTIVE,
        peer_tolerance=peer_tolerance,
        potential_nodes=node_count is NodeCount.POTENTIAL,
        makes_endpoint_slices=endpoint_slice,
        external_allow=tuple(
            network for given in external_allow or () for network in given.split(",") if network.strip()
        ),
        policy=policy,
        dry_run=dry_run,
        namespace=autoscaler_namespace,
        controller_namespace=controller_namespace,
        resync_s=resync,
    )
    log_to_stderr() if once else log_events_to_stderr()
    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    token = read_token(pd_token_file, settings.planner, settings.pd, settings.prometheus)
    parse_exceptions(settings.external_allow)
    options = build_controller_options(connection, data=data, address=address, leader_elect=leader_elect)
    process = TidbAutoscalerProcess(
        TidbAutoscalingSettings(process=options, settings=settings, token=token),
        clock=_build_clock(now, once=once),
        entropy=SystemEntropy(),
    )
    if once:
        results = reconcile_once(process, output)
        _print_results(results, output)
        _raise_failures(results)
    else:
        run_until_stopped(process, f"scaling TiDB clusters of {options.access.server}", dry_run=dry_run)


def _build_clock(now: str, *, once: bool) -> Clock:
    from plimsoll.app.tidb_autoscaling import FixedClock
    from plimsoll.cli.shared.times import read_time
    from plimsoll.core.errors import InvalidInput
    from plimsoll.runtime.clocks import RealClock

    if not now:
        return RealClock()
    if not once:
        raise InvalidInput("needs --once", path="--now")
    return FixedClock(read_time(now, path="--now"))


def _raise_failures(results: Sequence[ReconcileResult | FailedReconcile]) -> None:
    """Raises if a reconcile failed, or if a component has a problem."""
    from plimsoll.operator.reconcile_all import FailedReconcile

    failed = [result for result in results if isinstance(result, FailedReconcile)]
    if failed:
        raise build_failure(failed)
    if any(
        component.problem
        for result in results
        if not isinstance(result, FailedReconcile)
        for component in result.components
    ):
        raise typer.Exit(1)


def _print_results(results: Sequence[ReconcileResult | FailedReconcile], output: Output) -> None:
    from plimsoll.journal.rendering import remove_control_characters
    from plimsoll.operator.reconcile_all import FailedReconcile
    from plimsoll.tidb.reporting.messages import build_sentences

    reported = [result for result in results if not isinstance(result, FailedReconcile)]
    match output:
        case Output.TABLE:
            for reconcile_result in reported:
                for sentence in build_sentences(reconcile_result):
                    typer.echo(remove_control_characters(sentence))
            if not results:
                typer.echo("there is no TidbClusterAutoScaler")
        case Output.NAME:
            for result in reported:
                typer.echo(f"tidbclusterautoscaler/{result.autoscaler.namespace}/{result.autoscaler.name}")
        case _:
            echo_value([_as_data(result) for result in reported], output)


def _as_data(result: ReconcileResult) -> dict[str, Any]:
    """The result as plain data: sentences, plan and outcomes."""
    import msgspec

    from plimsoll.tidb.reporting.messages import build_journal_plan, build_sentences

    plan, outcomes = build_journal_plan(result, number=0)
    return {
        "namespace": result.autoscaler.namespace,
        "name": result.autoscaler.name,
        "standing": result.phase.value,
        "sentences": build_sentences(result),
        "plan": msgspec.to_builtins(plan),
        "outcomes": msgspec.to_builtins(outcomes),
    }
