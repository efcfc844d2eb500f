"""`plimsoll run agent`: what the fleet manager places on a cluster is run there, and reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.cli.shared.connection import Connection, ContextOption, KubeconfigOption, ServerOption
from plimsoll.cli.shared.controllers import (
    AddressOption,
    ControllerNamespaceOption,
    DryRunOption,
    JournalOption,
    build_controller_options,
    declare_leader_elect,
    reconcile_once,
    run_until_stopped,
)
from plimsoll.cli.shared.logs import log_events_to_stderr, log_to_stderr
from plimsoll.cli.shared.output import Output, OutputOption, echo_value

if TYPE_CHECKING:
    import ssl

    from plimsoll.fleet.agent.builder import AgentCycle
    from plimsoll.fleet.agent.instance_reconciler import InstanceResult
    from plimsoll.fleet.agent.intake_executor import IntakeResult


def agent(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    server: ServerOption = "",
    secret: Annotated[
        str,
        typer.Option(
            "--secret",
            help="The Secret in the namespace of --home with the parameters, under the names of the flags below.",
            metavar="NAME",
        ),
    ] = "",
    control_plane_url: Annotated[
        str, typer.Option("--control-plane-url", help="The fleet manager.", metavar="URL")
    ] = "",
    cluster_id: Annotated[
        str, typer.Option("--cluster-id", help="The id of this cluster at the fleet manager.", metavar="ID")
    ] = "",
    sso_auth_server_url: Annotated[
        str, typer.Option("--sso-auth-server-url", help="The issuer of the agent's tokens.", metavar="URL")
    ] = "",
    sso_client_id: Annotated[
        str, typer.Option("--sso-client-id", help="The account of the agent at the issuer.", metavar="ID")
    ] = "",
    sso_secret_file: Annotated[
        str, typer.Option("--sso-secret-file", help="A file with the secret of that account.", metavar="FILE")
    ] = "",
    poll_interval: Annotated[
        str, typer.Option("--poll-interval", help="How often the list is read; 15s if absent.", metavar="DURATION")
    ] = "",
    resync_interval: Annotated[
        str,
        typer.Option("--resync-interval", help="How often everything is reported; 60s if absent.", metavar="DURATION"),
    ] = "",
    ca_file: Annotated[
        str,
        typer.Option(
            "--ca-file", help="Certificates that the fleet manager and the issuer are trusted by.", metavar="FILE"
        ),
    ] = "",
    node_autoscaler_namespace: Annotated[
        str,
        typer.Option(
            "--node-autoscaler-namespace", help="Namespace of cluster-autoscaler-status.", metavar="NAMESPACE"
        ),
    ] = "kube-system",
    once: Annotated[bool, typer.Option("--once", help="Poll, act and report once, print the result and exit.")] = False,
    dry_run: DryRunOption = False,
    controller_namespace: ControllerNamespaceOption = "kube-system",
    leader_elect: Annotated[bool, declare_leader_elect("plimsoll-agent")] = True,
    address: AddressOption = ":8089",
    data: JournalOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Run what the fleet manager places on this cluster, and report.

    The agent polls its control plane, keeps the answer as ManagedKafka objects, makes Kafka objects and reserved pods
    of them, and reports what became of them. Without its control plane everything runs on. Nothing with data is
    removed because a list is empty, short or unreadable.

    Parameters come from flags or, where a flag is absent, from the Secret.

    --dry-run prints what would be done: it takes no lease and reports nothing. Exit code of --once: 1 if an instance
    has an error, 2 if parameters are missing, 4 if the cluster cannot be reached.

    \b
    Examples:
      plimsoll run agent --secret plimsoll-agent-parameters
      plimsoll run agent --secret plimsoll-agent-parameters --dry-run --once
      plimsoll run agent --control-plane-url https://fleet.example.com --cluster-id 2abc \\
        --sso-auth-server-url https://sso.example.com/realms/agents --sso-client-id agent-2abc --sso-secret-file secret
    """
    from plimsoll.app.fleet.agent_process import AgentProcess, AgentProcessSettings
    from plimsoll.fleet.agent.settings import AgentSettings
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.entropy import SystemEntropy

    parameters = {
        "control-plane-url": control_plane_url,
        "cluster-id": cluster_id,
        "sso-auth-server-url": sso_auth_server_url,
        "sso-client-id": sso_client_id,
        "sso-secret": _read_file(sso_secret_file, "--sso-secret-file"),
        "poll-interval": poll_interval,
        "resync-interval": resync_interval,
    }
    log_to_stderr() if once else log_events_to_stderr()
    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    options = build_controller_options(connection, data=data, address=address, leader_elect=leader_elect)
    settings = AgentSettings(
        namespace=controller_namespace, node_autoscaler_namespace=node_autoscaler_namespace, dry_run=dry_run
    )
    process = AgentProcess(
        AgentProcessSettings(
            process=options,
            settings=settings,
            parameters=parameters,
            secret=secret,
            tls=_read_trust(ca_file),
        ),
        clock=RealClock(),
        entropy=SystemEntropy(),
    )
    if once:
        _print_results(reconcile_once(process, output), output)
    else:
        run_until_stopped(process, f"running instances on {options.access.server}", dry_run=dry_run)


def _read_file(path: str, flag: str) -> str:
    from pathlib import Path

    from plimsoll.core.errors import InvalidInput

    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}", path=flag) from error


def _read_trust(path: str) -> ssl.SSLContext | None:
    import ssl

    from plimsoll.core.errors import InvalidInput

    if not path:
        return None
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        raise InvalidInput(f"{path} holds no certificates: {error}", path="--ca-file") from error


def _print_results(cycle: AgentCycle, output: Output) -> None:
    from plimsoll.fleet.agent.model.reports import ERROR
    from plimsoll.journal.rendering import remove_control_characters

    results, taken = cycle.instances, cycle.taken
    if taken is None:
        typer.echo("the control plane does not answer; what runs here was looked at", err=True)
    match output:
        case Output.TABLE:
            for line in (*taken.outcomes, *taken.not_done) if taken is not None else ():
                typer.echo(remove_control_characters(str(line)))
            for result in results:
                report = result.report
                state = "Ready" if report.is_ready else f"{report.reason}: {report.message}"
                done = "".join(f"; {outcome}" for outcome in result.outcomes)
                typer.echo(remove_control_characters(f"{result.ref}: {state}{done}"))
            if not results and taken is not None and not taken.outcomes:
                typer.echo("there is no ManagedKafka, and the list has none")
        case Output.NAME:
            for result in results:
                typer.echo(str(result.ref))
        case _:
            echo_value({"list": _describe_list(taken), "instances": [_describe(found) for found in results]}, output)
    if any(result.report.reason == ERROR for result in results):
        raise typer.Exit(1)


def _describe_list(taken: IntakeResult | None) -> dict[str, object] | None:
    import msgspec

    if taken is None:
        return None
    return {"outcomes": msgspec.to_builtins(taken.outcomes), "notDone": msgspec.to_builtins(taken.not_done)}


def _describe(result: InstanceResult) -> dict[str, object]:
    import msgspec

    return {
        "namespace": result.ref.namespace,
        "name": result.ref.name,
        "units": result.units,
        "report": msgspec.to_builtins(result.report),
        "outcomes": msgspec.to_builtins(result.outcomes),
        "notDone": msgspec.to_builtins(result.not_done),
    }
