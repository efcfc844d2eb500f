"""`plimsoll doctor`: checks whether a cluster has what the controllers need."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.cli.shared.connection import (
    Connection,
    ContextOption,
    KubeconfigOption,
    NamespaceOption,
    ServerOption,
    open_client,
)
from plimsoll.cli.shared.logs import log_to_stderr
from plimsoll.cli.shared.output import Output, OutputOption, echo_value

if TYPE_CHECKING:
    from plimsoll.kube.diagnosis import Examination, Finding

_TIMEOUT_S = 10.0
_COLOURS = {"ok": typer.colors.GREEN, "warn": typer.colors.YELLOW, "fail": typer.colors.RED}


class Controller(Enum):
    """Controllers that can be checked; a test compares them with the permission tables."""

    NODES = "nodes"
    REQUESTS = "requests"
    KAFKA = "kafka"
    TIDB = "tidb"
    FLEET = "fleet"
    FLEET_AGENT = "fleet-agent"
    KUBELET = "kubelet"
    ALL = "all"


def doctor(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: NamespaceOption = "",
    server: ServerOption = "",
    controller: Annotated[
        list[Controller] | None,
        typer.Option(
            "--controller",
            metavar="nodes|requests|kafka|tidb|fleet|fleet-agent|kubelet|all",
            help="Check only this controller; may be repeated.",
            case_sensitive=True,
            show_default=False,
        ),
    ] = None,
    cloud_config: Annotated[
        str,
        typer.Option(
            "--cloud-config",
            help="Kubeconfig of the management cluster of Cluster API; checks what the provider needs there.",
            metavar="FILE",
            show_default=False,
        ),
    ] = "",
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds to wait for one response.", min=0.1, max=3600)
    ] = _TIMEOUT_S,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Check whether a cluster has what the controllers need: access, version and permissions.

    It also checks clocks, custom resources, unreadable objects and other autoscalers that do the same work. Nothing
    is changed. With -n, the Kafka and TiDB controllers are checked for that namespace only; without it, permissions
    for Secrets are checked only where their resources exist. Without --controller all controllers are checked, and a
    missing custom resource is only a warning. CAPI_GROUP and CAPI_VERSION count as they do for the node autoscaler.

    Exit code 0: all checks passed. 1: something is missing. 2: the configuration or the credentials cannot be used.
    4: no Kubernetes API can be reached.

    \b
    Examples:
      plimsoll doctor
      plimsoll doctor --kubeconfig ./cluster/kubeconfig --controller nodes --controller requests
      plimsoll doctor --context prod -n kafka --controller kafka -o json
    """
    import asyncio

    log_to_stderr()
    connection = Connection(kubeconfig=kubeconfig, context=context, namespace=namespace, server=server)
    selected = _select_controllers(controller or [])
    again = _format_invocation(connection, controller or [], timeout_s=timeout)
    examination = asyncio.run(
        _examine(connection, selected, cloud_config=cloud_config, timeout_s=timeout, output=output, invocation=again)
    )
    _print(examination, output)
    if not examination.is_healthy:
        raise typer.Exit(1)


def _select_controllers(controllers: list[Controller]) -> tuple[str, ...]:
    """The named controllers, in the order of the enum; `all` names every one."""
    given = set(controllers)
    return tuple(
        controller.value
        for controller in Controller
        if controller is not Controller.ALL and (controller in given or Controller.ALL in given)
    )


def _format_invocation(connection: Connection, controllers: list[Controller], *, timeout_s: float) -> str:
    """The same command with JSON output, to be shown as advice."""
    import shlex

    named = [word for controller in controllers for word in ("--controller", controller.value)]
    patience = ["--timeout", f"{timeout_s:g}"] if timeout_s != _TIMEOUT_S else []
    return shlex.join(["plimsoll", "doctor", *connection.options, *named, *patience, "-o", "json"])


async def _examine(
    connection: Connection,
    controllers: tuple[str, ...],
    *,
    cloud_config: str,
    timeout_s: float,
    output: Output,
    invocation: str,
) -> Examination:
    import os

    from msgspec.structs import replace

    from plimsoll.cli.commands.management_cluster import ManagementCluster
    from plimsoll.cli.commands.requirements import select_requirements
    from plimsoll.cli.shared.progress import Progress
    from plimsoll.core.errors import InvalidInput
    from plimsoll.kube.diagnosis import ExaminationOptions, Namespaces, Target, examine
    from plimsoll.kube.errors import CredentialsLate
    from plimsoll.kube.requests.options import ClientSettings
    from plimsoll.runtime.backoff import Backoff
    from plimsoll.runtime.clocks import RealClock

    clock = RealClock()
    environment = {name: value for name, value in os.environ.items() if name.startswith("CAPI_")}
    access = connection.build_access(clock=clock)
    # Few requests at a time instead of few per second, and only one retry, so that problems are not hidden.
    settings = ClientSettings(
        timeout_s=timeout_s, deadline_s=2 * timeout_s + 1, qps=0, retry=Backoff(initial_s=0.5, max_attempts=2)
    )
    with Progress(f"checking {access.server}", is_silent=output in {Output.JSON, Output.YAML}) as progress:
        progress.step("waiting for credentials")
        async with open_client(access, settings, clock=clock) as client:
            options = ExaminationOptions(
                requirements=select_requirements(controllers),
                are_selected=bool(controllers),
                namespaces=Namespaces(own=access.namespace, watched=connection.namespace),
                target=Target.from_access(access, await access.credentials.get_current()),
                environment=environment,
                invocation=invocation,
            )
            management = ManagementCluster(cloud_config, settings=settings, environment=environment, clock=clock)
            try:
                examination = await examine(client, options, clock=clock, on_step=progress.step)
                if controllers and "nodes" not in controllers and not cloud_config:
                    return examination
                added = await management.check(client, namespace=access.namespace)
                return replace(examination, findings=(*examination.findings, *added))
            except CredentialsLate as error:
                raise InvalidInput(f"{error.problem}; increase --timeout", path=error.path) from error


# ---- output


def _print(examination: Examination, output: Output) -> None:
    match output:
        case Output.TABLE:
            _print_table(examination)
        case Output.NAME:
            for finding in examination.findings:
                if finding.level == "fail":
                    typer.echo(finding.check)
        case _:
            echo_value(_as_data(examination), output)


def _as_data(examination: Examination) -> dict[str, Any]:
    import msgspec

    return {
        "healthy": examination.is_healthy,
        "level": examination.level.value,
        **msgspec.to_builtins(examination),
    }


def _print_table(examination: Examination) -> None:
    findings = examination.findings
    width = max(len(finding.check) for finding in findings)
    typer.echo(f"{'CHECK':{width}}  RESULT   WHAT")
    for finding in findings:
        level = typer.style(f"{finding.level.value:7}", fg=_COLOURS.get(finding.level.value))
        typer.echo(f"{finding.check:{width}}  {level}  {_on_one_line(finding.message)}")
    for finding in findings:
        if finding.fix and finding.level != "ok":
            typer.echo(f"\n{finding.check}: {finding.message if finding.level == 'fail' else finding.level.value}")
            for line in finding.fix.splitlines():
                typer.echo(f"  {line}")
    typer.echo(f"\n{_format_summary(findings)}")


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _format_summary(findings: tuple[Finding, ...]) -> str:
    failed = sum(finding.level == "fail" for finding in findings)
    warned = sum(finding.level == "warn" for finding in findings)
    warnings = f", {warned} warning{'s' if warned > 1 else ''}" if warned else ""
    if failed:
        return f"{failed} of {len(findings)} checks failed{warnings}"
    return f"all checks passed{warnings}"
