"""`plimsoll run nodes`: the node autoscaler, with Cluster Autoscaler's flags as it spells them.

There are more than a hundred of them, in one table (`nodes.config.options.FLAGS`). They are read here instead of being
declared one by one, so the help text cannot name a flag that does not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from plimsoll.cli.nodes.flag_listing import list_flags
from plimsoll.cli.shared.connection import Connection, ContextOption, KubeconfigOption, ServerOption
from plimsoll.cli.shared.logs import log_events_to_stderr, log_to_stderr
from plimsoll.cli.shared.output import Output, OutputOption, echo_value, read_file
from plimsoll.cli.shared.slow_notice import SlowNotice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from plimsoll.app.node_autoscaling import NodeAutoscalingSettings
    from plimsoll.nodes.loop_result import LoopResult

PASS_THROUGH_FLAGS: Final = {"allow_extra_args": True, "ignore_unknown_options": True}


def nodes(
    context_of_command: typer.Context,
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    server: ServerOption = "",
    config: Annotated[
        str,
        typer.Option(
            "--config", help="YAML file with flags, without dashes; the command line takes precedence.", metavar="FILE"
        ),
    ] = "",
    data: Annotated[
        str, typer.Option("--data", help="Directory of the journal. Default: kept in memory.", metavar="DIR")
    ] = "",
    once: Annotated[bool, typer.Option("--once", help="Run one loop iteration, print the result and exit.")] = False,
    flags: Annotated[
        bool, typer.Option("--list-flags", help="List all flags with their defaults and descriptions, and exit.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Add and remove nodes as pods need them, and create and delete node groups where that is allowed.

    Flags are Cluster Autoscaler's and Plimsoll's own (--list-flags, docs/reference/node-flags.md).
    --dry-run plans and reports but never acts, and takes no lease, so it can run next to another autoscaler. --once
    without --dry-run waits for the lease of a dead autoscaler only; if another one leads, its exit code is 1.

    \b
    Examples:
      plimsoll run nodes --kubeconfig ./cluster/kubeconfig --dry-run --once
      plimsoll run nodes --cloud-provider=externalgrpc --cloud-config=provider.yaml --nodes=0:10:workers
      plimsoll run nodes --node-autoprovisioning --max-cpu=200 --max-memory=800 --scale-down-unneeded-time=5m
    """
    if flags:
        list_flags(output)
        return
    given = {**read_config(config), **dict(read_flags(context_of_command.args))}
    log_to_stderr() if once else log_events_to_stderr()
    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    given = {**_read_running_options(connection, given, output), **given}
    _run(_read_settings(connection, given, data), once, output)


def _read_running_options(connection: Connection, given: dict[str, Any], output: Output) -> dict[str, Any]:
    """For a dry run, the options of the autoscaler whose actions it predicts; empty if none runs."""
    from plimsoll.cli.nodes.active_options import read_active_options, select_planning_options
    from plimsoll.nodes.config.options import read_options

    operation = read_options(given, path="flags").operation
    if not operation.dry_run:
        return {}
    chosen = Connection(
        kubeconfig=connection.kubeconfig or operation.kubeconfig,
        context=connection.context,
        server=connection.server or operation.kubernetes,
    )
    found = select_planning_options(read_active_options(chosen, operation.namespace, output))
    if found and output is Output.TABLE:
        typer.echo("the options are those of the running autoscaler; flags take precedence", err=True)
    return found


def read_flags(words: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """`--name=value`, `--name value`, `--switch`; a flag that may be repeated gives a list."""
    from plimsoll.core.errors import InvalidInput
    from plimsoll.nodes.config.options import find_flag

    found: dict[str, list[str]] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("-"):
            raise InvalidInput(f"{word!r} is not a flag; flags start with dashes, e.g. --scan-interval=10s")
        name, separator, value = word.lstrip("-").partition("=")
        flag = find_flag(name)
        if not separator:
            follows = bool(left) and not left[0].startswith("--")
            # The word after an unknown flag is its value: the flag is wrong, not the word.
            takes_value = flag is None or flag.kind != "true or false"
            value = left.pop(0) if follows and takes_value else "true"
        found.setdefault(name, []).append(value)
    for name, values in found.items():
        flag = find_flag(name)
        is_list = flag is not None and flag.kind == "list"
        yield name, values if is_list and len(values) > 1 else values[-1]


def read_config(file: str) -> dict[str, Any]:
    """Flags of a YAML file; none without one."""
    if not file:
        return {}
    from plimsoll.core.errors import InvalidInput
    from plimsoll.objects.codec.manifests import read_documents

    documents = [document for _, document in read_documents(read_file(file), source=file)]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InvalidInput("must contain one mapping of flag names to values", path=file)
    return {str(name): value for name, value in documents[0].items()}


def _read_settings(connection: Connection, given: dict[str, Any], data: str) -> NodeAutoscalingSettings:
    import os
    import socket
    from pathlib import Path

    from plimsoll.app.node_autoscaling import NodeAutoscalingSettings
    from plimsoll.nodes.config.options import find_flags_without_effect, read_options
    from plimsoll.runtime.clocks import RealClock

    policy = read_options(given, path="flags")
    for flag in find_flags_without_effect(given):
        typer.echo(f"warning: --{flag.name} has no effect: {flag.note}", err=True)
    chosen = Connection(
        kubeconfig=connection.kubeconfig or policy.operation.kubeconfig,
        context=connection.context,
        server=connection.server or policy.operation.kubernetes,
    )
    directory: Path | None = Path(data) if data else None
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    access = chosen.build_access(clock=RealClock())
    return NodeAutoscalingSettings(
        access=access, options=given, data=directory, host=socket.gethostname(), environment=os.environ
    )


def _run(settings: NodeAutoscalingSettings, once: bool, output: Output) -> None:
    import asyncio

    from plimsoll.app.node_autoscaling import NodeAutoscalerProcess
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.entropy import SystemEntropy
    from plimsoll.runtime.signals import run_until_signalled

    async def run_process() -> None:
        async with NodeAutoscalerProcess(settings, clock=RealClock(), entropy=SystemEntropy()) as autoscaler:
            if once:
                _print_loop(await autoscaler.run_once(), output)
                return
            operation = autoscaler.policy.operation
            mode = "dry run: nothing is changed" if operation.dry_run else f"provider {operation.provider}"
            typer.echo(f"autoscaling nodes of {settings.access.server}, {mode}; Ctrl-C stops it", err=True)
            await autoscaler.run()

    is_silent = not once or output in {Output.JSON, Output.YAML}
    with SlowNotice("a loop iteration is under way", is_silent=is_silent):
        ended_by = asyncio.run(run_until_signalled(run_process()))
    if ended_by is not None:
        typer.echo("stopped", err=True)


def _print_loop(loop: LoopResult, output: Output) -> None:
    from plimsoll.nodes.reporting.journal.plan_entries import build_plan_and_outcomes
    from plimsoll.nodes.reporting.log_line import build_log_line
    from plimsoll.nodes.reporting.plan_json import build_loop_entry

    if output is not Output.TABLE:
        echo_value(build_loop_entry(loop), output)
        return
    typer.echo(build_log_line(loop))
    plan, _ = build_plan_and_outcomes(loop)
    for line in plan.format_lines():
        typer.echo(line)
