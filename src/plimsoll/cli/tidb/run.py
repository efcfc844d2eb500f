"""`plimsoll run tidb`: the TiDB autoscaler, until it is told to stop, or for a single pass."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.cli.shared.connection import Connection, ContextOption, KubeconfigOption, ServerOption
from plimsoll.cli.shared.logs import log_events_to_stderr, log_to_stderr
from plimsoll.cli.shared.output import Output, OutputOption, echo_value
from plimsoll.cli.tidb.tokens import TokenFileOption, read_token
from plimsoll.core.errors import PlimsollError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.app.tidb_autoscaling import TidbAutoscalingSettings
    from plimsoll.core.clock import Clock
    from plimsoll.tidb.model.reconcile_result import ReconcileResult
    from plimsoll.tidb.reconciler import FailedReconcile
    from plimsoll.tidb.settings import TidbSettings


class DrainMode(Enum):
    """Who takes stores out."""

    GUARD = "guard"
    ACTIVE = "active"


class NodeCount(Enum):
    """Which nodes count."""

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
            "--planner", help="Who plans (POST URL/autoscaling); else this program does, from PD.", metavar="URL"
        ),
    ] = "",
    pd: Annotated[
        str, typer.Option("--pd", help="Address of PD, instead of http://CLUSTER-pd.NAMESPACE:2379.", metavar="URL")
    ] = "",
    prometheus: Annotated[
        str,
        typer.Option("--prometheus", help="For planning without --planner; else PD is asked for it.", metavar="URL"),
    ] = "",
    pd_token_file: TokenFileOption = "",
    fallback_heterogeneous: Annotated[
        bool,
        typer.Option(
            "--fallback-heterogeneous",
            help="Planning without --planner: let groups grow where the cluster itself may not.",
        ),
    ] = False,
    drain: Annotated[
        DrainMode,
        typer.Option("--drain", help="guard: TiDB Operator takes stores out. active: this program does."),
    ] = DrainMode.GUARD,
    peer_tolerance: Annotated[
        int,
        typer.Option(
            "--peer-tolerance", help="Regions that may miss a replica, or have a bad one, as a store leaves.", min=0
        ),
    ] = 0,
    tidb_drain_seconds: Annotated[
        float,
        typer.Option("--tidb-drain-seconds", help="Time for TiDB servers of a group that goes to end first.", min=0),
    ] = 0.0,
    once: Annotated[
        bool, typer.Option("--once", help="One pass over every autoscaler, told on stdout; then end.")
    ] = False,
    now: Annotated[
        str, typer.Option("--now", help="With --once: the time it is, e.g. for recorded data.", metavar="RFC3339")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would be done, and do nothing.")] = False,
    autoscaler_namespace: Annotated[
        str, typer.Option("-n", "--namespace", help="Only autoscalers of this namespace.", metavar="NAMESPACE")
    ] = "",
    home: Annotated[
        str, typer.Option("--home", help="Where its Lease, and the ConfigMap with the brake, are.", metavar="NAMESPACE")
    ] = "kube-system",
    node_count: Annotated[
        NodeCount,
        typer.Option("--node-count", help="Count nodes that are ready, or also those the node autoscaler may add."),
    ] = NodeCount.READY,
    resync: Annotated[
        float, typer.Option("--resync", help="Seconds between two looks at an autoscaler.", min=1)
    ] = 30.0,
    removal_confirmations: Annotated[
        int, typer.Option("--removal-confirmations", help="Answers in a row without a group before it goes.", min=1)
    ] = 2,
    trust_omission: Annotated[
        bool, typer.Option("--trust-omission", help="Remove a group that one answer does not name.")
    ] = False,
    registration_grace: Annotated[
        float, typer.Option("--registration-grace", help="Seconds a group may be without its instances.", min=0)
    ] = 600.0,
    out_consecutive: Annotated[
        int, typer.Option("--out-consecutive", help="Passes in a row that must want more.", min=1)
    ] = 1,
    in_consecutive: Annotated[
        int, typer.Option("--in-consecutive", help="Passes in a row that must want less.", min=1)
    ] = 1,
    endpoint_slice: Annotated[
        bool,
        typer.Option(
            "--tidb-endpointslice/--no-tidb-endpointslice", help="Let the cluster's Service serve added TiDB servers."
        ),
    ] = True,
    external_allow: Annotated[
        list[str] | None,
        typer.Option(
            "--external-allow",
            help="Hosts or networks that external services may be at, whatever they are.",
            metavar="HOST",
        ),
    ] = None,
    leader_elect: Annotated[
        bool, typer.Option("--leader-elect/--no-leader-elect", help="Act only while holding the Lease plimsoll-tidb.")
    ] = True,
    address: Annotated[
        str, typer.Option("--address", help="Where /metrics and /healthz are served.", metavar="HOST:PORT")
    ] = ":8087",
    data: Annotated[
        str, typer.Option("--data", help="Directory of the journal, for plimsoll why.", metavar="DIR")
    ] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Scale TiDB clusters as their TidbClusterAutoScalers say: raise them, and make, resize and remove groups beside them.

    --dry-run plans and tells but never acts, and takes no lease. --once makes one pass and ends with 0, also if
    something is held or blocked; with 1 if a pass failed, as of a write that was refused; with 4 if the server cannot
    be reached, or could not even list autoscalers.

    \b
    Examples:
      plimsoll run tidb --kubeconfig ./cluster/kubeconfig --dry-run --once
      plimsoll run tidb --planner http://planner:9092
      plimsoll run tidb --prometheus http://monitor:9090 --drain=active
    """
    from plimsoll.tidb.model.reconcile_types import ReconcilePolicy
    from plimsoll.tidb.settings import TidbSettings
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
        external_allow=tuple(one for given in external_allow or () for one in given.split(",") if one.strip()),
        policy=policy,
        dry_run=dry_run,
        namespace=autoscaler_namespace,
        controller_namespace=home,
        resync_s=resync,
    )
    log_to_stderr() if once else log_events_to_stderr()
    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    token = read_token(pd_token_file, settings.planner, settings.pd, settings.prometheus)
    chosen = replace(_chosen(connection, settings, data=data, address=address, leader_elect=leader_elect), token=token)
    clock = _clock(now, once=once)
    if once:
        _run_once(chosen, clock, output)
    else:
        _run(chosen, clock)


def _chosen(
    connection: Connection, settings: TidbSettings, *, data: str, address: str, leader_elect: bool
) -> TidbAutoscalingSettings:
    import socket
    from pathlib import Path

    from plimsoll.app.tidb_autoscaling import TidbAutoscalingSettings
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.web.address_guard import parse_exceptions

    parse_exceptions(settings.external_allow)
    directory = Path(data) if data else None
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    return TidbAutoscalingSettings(
        access=connection.access(clock=RealClock()),
        settings=settings,
        data=directory,
        host=socket.gethostname(),
        address=address,
        leader_elect=leader_elect,
    )


def _clock(now: str, *, once: bool) -> Clock:
    from plimsoll.app.tidb_autoscaling import FixedClock
    from plimsoll.cli.shared.times import read_time
    from plimsoll.core.errors import InvalidInput
    from plimsoll.runtime.clocks import RealClock

    if not now:
        return RealClock()
    if not once:
        raise InvalidInput("only a single pass can be at another time; add --once", path="--now")
    return FixedClock(read_time(now, path="--now"))


def _run_once(chosen: TidbAutoscalingSettings, clock: Clock, output: Output) -> None:
    import asyncio

    from plimsoll.app.tidb_autoscaling import TidbAutoscalerProcess
    from plimsoll.runtime.chance import SystemEntropy
    from plimsoll.tidb.reconciler import FailedReconcile

    async def once() -> tuple[ReconcileResult | FailedReconcile, ...]:
        async with TidbAutoscalerProcess(chosen, clock=clock, entropy=SystemEntropy()) as running:
            return await running.run_once()

    results = asyncio.run(once())
    _tell(results, output)
    failed = [result for result in results if isinstance(result, FailedReconcile)]
    if failed:
        raise _why_failed(failed)
    if any(
        component.problem
        for result in results
        if not isinstance(result, FailedReconcile)
        for component in result.components
    ):
        raise typer.Exit(1)


class ReconcileFailed(PlimsollError):
    """The server answered, and passes could not be brought to their end."""


def _why_failed(failed: Sequence[FailedReconcile]) -> PlimsollError:
    """A server that answers with an error is reached, whatever it says: that is not exit code 4."""
    told = "; ".join(f"{one.namespace}/{one.name}: {one.error}" for one in failed)
    lost = any(isinstance(one.error, Unreachable) for one in failed)
    return Unreachable(told) if lost else ReconcileFailed(told)


def _run(chosen: TidbAutoscalingSettings, clock: Clock) -> None:
    import asyncio

    from plimsoll.app.tidb_autoscaling import TidbAutoscalerProcess
    from plimsoll.runtime.chance import SystemEntropy
    from plimsoll.runtime.signals import run_until_signalled

    async def running() -> None:
        async with TidbAutoscalerProcess(chosen, clock=clock, entropy=SystemEntropy()) as autoscaler:
            mode = "dry run: nothing is changed" if chosen.settings.dry_run else "acting as the lease allows"
            typer.echo(f"scaling TiDB clusters of {chosen.access.server}, {mode}; Ctrl-C ends it", err=True)
            await autoscaler.run()

    if asyncio.run(run_until_signalled(running())) is not None:
        typer.echo("stopped", err=True)


def _tell(results: Sequence[ReconcileResult | FailedReconcile], output: Output) -> None:
    from plimsoll.journal.rendering import harmless
    from plimsoll.tidb.reconciler import FailedReconcile
    from plimsoll.tidb.reporting.messages import build_sentences

    told = [result for result in results if not isinstance(result, FailedReconcile)]
    match output:
        case Output.TABLE:
            for reconcile_result in told:
                for sentence in build_sentences(reconcile_result):
                    typer.echo(harmless(sentence))
            if not results:
                typer.echo("there is no TidbClusterAutoScaler")
        case Output.NAME:
            for result in told:
                typer.echo(f"tidbclusterautoscaler/{result.autoscaler.namespace}/{result.autoscaler.name}")
        case _:
            echo_value([_plain(one) for one in told], output)


def _plain(result: ReconcileResult) -> dict[str, Any]:
    """For programs: what was said, and the plan with its reasons."""
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
