"""`plimsoll nodes …`: status and options of a running node autoscaler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.cli.nodes.run import PASS_THROUGH_FLAGS, read_flags
from plimsoll.cli.shared.connection import (
    SYSTEM_NAMESPACE,
    Connection,
    ContextOption,
    ControllerNamespaceOption,
    KubeconfigOption,
    ServerOption,
    run_with_client,
)
from plimsoll.cli.shared.output import Output, OutputOption, Table, echo_parts, echo_value
from plimsoll.cli.shared.watching import WatchOption, watch_changes
from plimsoll.core.formatting import format_limit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kube.client import Client
    from plimsoll.nodes.config.configure import ConfigDiff, RuntimeConfig
    from plimsoll.objects.api.core import ConfigMap

STATUS_MAP = "cluster-autoscaler-status"

app = typer.Typer(no_args_is_help=True)


@app.callback()
def nodes() -> None:
    """
    Status and options of the node autoscaler of a cluster.

    \b
    Examples:
      plimsoll nodes status
      plimsoll nodes configure --enable-node-autoprovisioning --max-cpu 200 --max-memory 800
    """


@app.command(name="status", short_help="Show the status of the node autoscaler.")
def status(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: ControllerNamespaceOption = SYSTEM_NAMESPACE,
    server: ServerOption = "",
    name: Annotated[
        str, typer.Option("--status-config-map-name", help="Name of the status ConfigMap.", metavar="NAME")
    ] = STATUS_MAP,
    watch: WatchOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Show the status of the node autoscaler: node groups, last action, pause.

    Reads the status ConfigMap, so it works for Cluster Autoscaler too. An outdated status causes a warning on stderr.
    Exit code 0: there is a status. 3: there is none. 4: no cluster can be reached.

    \b
    Examples:
      plimsoll nodes status
      plimsoll nodes status --context prod -o json
      plimsoll nodes status --watch
    """
    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)

    def read() -> tuple[ConfigMap, RuntimeConfig]:
        found, config = _read(connection, namespace, name, output)
        if found is None:
            raise _build_no_status_error(namespace, name, config)
        return found, config

    if watch:
        watch_changes(read, lambda found: _print_status(*found, output))
    else:
        _print_status(*read(), output)


def _print_status(found: ConfigMap, config: RuntimeConfig, output: Output) -> None:
    from plimsoll.nodes.reporting.status.reader import build_status_report
    from plimsoll.runtime.clocks import RealClock

    report = build_status_report(found, config, now=RealClock().now())
    match output:
        case Output.TABLE:
            from plimsoll.journal.rendering import remove_control_characters

            echo_parts(_format_status(report), clean=remove_control_characters)
            for warning in _list_warnings(report):
                typer.echo(f"warning: {remove_control_characters(warning)}", err=True)
        case Output.NAME:
            for group in report["groups"]:
                typer.echo(f"nodegroup/{group['name']}")
        case _:
            echo_value(report, output)


@app.command(name="configure", short_help="Change options of the node autoscaler.", context_settings=PASS_THROUGH_FLAGS)
def configure(
    words: typer.Context,
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: ControllerNamespaceOption = SYSTEM_NAMESPACE,
    server: ServerOption = "",
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", help="Remove this flag; may be repeated.", metavar="FLAG", show_default=False),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Show the configured flags and exit.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Change options of the node autoscaler while it runs.

    All flags of plimsoll run nodes are accepted, except those that are read only at start. They are validated
    together with the configured ones; if one is invalid, nothing is written. They are stored in the ConfigMap
    plimsoll, which the autoscaler reloads, and take precedence over its command line. Exit code 0: done. 2: a flag is
    invalid (all errors are listed). 4: no cluster can be reached.

    \b
    Examples:
      plimsoll nodes configure --enable-node-autoprovisioning --min-cpu 4 --max-cpu 200 --max-memory 800
      plimsoll nodes configure --nodes=0:10:workers --nodes=1:3:gpu
      plimsoll nodes configure --unset max-memory --unset nodes
      plimsoll nodes configure --show -o yaml
    """
    from plimsoll.core.errors import InvalidInput

    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    if show:
        _, config = _read(connection, namespace, STATUS_MAP, output)
        _show(config, output)
        return
    flags = dict(read_flags(words.args))
    if not flags and not unset:
        raise InvalidInput("no flag is given; use e.g. --max-cpu 200, --unset max-cpu or --show")
    _warn_of_no_effect(flags)
    changed, is_running = _configure(connection, namespace, flags, unset or [], output)
    _print_changes(changed, namespace, output)
    if changed.list_differences() and output is Output.TABLE:
        runs = "the autoscaler applies it in its next loop iteration; plimsoll nodes status warns until then"
        rests = f"no autoscaler writes its status in {namespace}: it takes effect once one runs there"
        typer.echo(runs if is_running else rests, err=True)


# ---- with the cluster


def _read(connection: Connection, namespace: str, name: str, output: Output) -> tuple[ConfigMap | None, RuntimeConfig]:
    from plimsoll.nodes.config.configure import read_runtime_config

    async def read_both(client: Client) -> tuple[ConfigMap | None, RuntimeConfig]:
        return await _read_status_map(client, namespace, name), await read_runtime_config(client, namespace)

    return run_with_client(connection, read_both, is_silent=output in {Output.JSON, Output.YAML})


def _configure(
    connection: Connection, namespace: str, flags: dict[str, Any], unset: list[str], output: Output
) -> tuple[ConfigDiff, bool]:
    """What changed, and whether an autoscaler runs that reloads it."""
    from plimsoll.nodes.config import configure
    from plimsoll.nodes.reporting.status.configmap import read_options_annotation
    from plimsoll.runtime.clocks import RealClock

    async def update_config(client: Client) -> tuple[ConfigDiff, bool]:
        found = await _read_status_map(client, namespace, STATUS_MAP)
        in_force = None if found is None else read_options_annotation(found.metadata.annotations)
        now = RealClock().now()
        wanted = configure.ConfigChange(options=flags, unset=unset, in_force=in_force or {}, now=now)
        return await configure.configure(client, namespace, wanted), found is not None

    return run_with_client(connection, update_config, is_silent=output in {Output.JSON, Output.YAML})


async def _read_status_map(client: Client, namespace: str, name: str) -> ConfigMap | None:
    from plimsoll.kube.errors import NotFound
    from plimsoll.objects.api.core import ConfigMap

    try:
        return await client.get(ConfigMap, name, namespace=namespace)
    except NotFound:
        return None


# ---- output


def _build_no_status_error(namespace: str, name: str, config: RuntimeConfig) -> Exception:
    from plimsoll.journal.errors import NothingKnown

    paused = f"; it is paused: {config.paused}" if config.paused else ""
    return NothingKnown(
        f"there is no ConfigMap {namespace}/{name}: no autoscaler writes its status there{paused}",
        hint="start one with plimsoll run nodes (a dry run writes no status); -n selects another namespace, "
        "--status-config-map-name another ConfigMap",
    )


def _format_status(report: dict[str, Any]) -> Iterator[str | Table]:
    from plimsoll.operator.health import describe_loop

    age = "" if report["ageSeconds"] is None else f", {report['ageSeconds']:.0f} s ago"
    health = report["health"] or "health not known"
    if (loop_s := report["loopUnderWaySeconds"]) is not None:
        # The health is that of the last iteration: what is true now is that another one is under way.
        health = f"{describe_loop(loop_s)}, before it {health}"
        age = f"; reported{age.removeprefix(',')}"
    yield f"autoscaler   {report['status']}, {health}{age}"
    guards = ["paused" if report["paused"] == "true" else f"paused: {report['paused']}"] if report["paused"] else []
    guards += ["dry run"] if report["dryRun"] else []
    guards += [f"another autoscaler is at work: {report['otherAutoscaler']}"] if report["otherAutoscaler"] else []
    yield f"held back    {', '.join(guards) or 'no'}"
    nodes = report["nodes"]
    others = [f"{nodes[key]} {_format_key(key)}" for key in nodes if key not in {"registered", "ready"} and nodes[key]]
    ready = f"{nodes['ready']} of {nodes['registered']} ready"
    yield f"nodes        {', '.join([ready, *others])}"
    yield f"scale-up     {report['scaleUp'] or '-'}"
    candidates = f", {report['candidates']} nodes could go" if report["candidates"] else ""
    yield f"scale-down   {report['scaleDown'] or '-'}{candidates}"
    if last_loop := report["lastTurn"] or report["message"]:
        yield f"last loop    {last_loop}"
    yield ""
    rows = [
        (
            group["name"],
            group["min"],
            group["target"],
            format_limit(group["max"]),
            group["nodes"]["ready"],
            group["health"],
            group["scaleUp"],
            group["candidates"],
            group["backoff"] or "-",
        )
        for group in report["groups"]
    ]
    head = ("NODE GROUP", "MIN", "TARGET", "MAX", "READY", "HEALTH", "SCALE-UP", "COULD GO", "BACK-OFF")
    yield Table(head, rows, is_spaced=False)
    if not rows:
        yield "no autoscaled node groups"


def _format_key(key: str) -> str:
    return "".join(f" {mark.lower()}" if mark.isupper() else mark for mark in key)


def _list_warnings(report: dict[str, Any]) -> Iterator[str]:
    if report["ageSeconds"] is None:
        yield f"the status does not say when it was written ({report['time'] or 'no time'}); it may be old"
    elif report["stale"]:
        yield f"the status is {report['ageSeconds']:.0f} s old: no autoscaler renews it, or it is a dry run now"
    yield from report["problems"]


def _warn_of_no_effect(flags: dict[str, Any]) -> None:
    from plimsoll.nodes.config.options import find_flags_without_effect

    for flag in find_flags_without_effect(flags):
        typer.echo(f"warning: --{flag.name} has no effect: {flag.note}", err=True)


def _show(config: RuntimeConfig, output: Output) -> None:
    from plimsoll.objects.codec.yaml import dump

    match output:
        case Output.TABLE:
            typer.echo(dump(dict(config.options)) if config.options else "no flags are configured\n", nl=False)
            if config.problem:
                typer.echo(f"warning: it cannot be used: {config.problem}", err=True)
        case Output.NAME:
            for flag in config.options:
                typer.echo(flag)
        case _:
            echo_value(dict(config.options), output)


def _print_changes(changed: ConfigDiff, namespace: str, output: Output) -> None:
    differences = changed.list_differences()
    match output:
        case Output.TABLE:
            if not differences:
                typer.echo("nothing changed")
            rows = [(f"--{flag}", _format_value(before), _format_value(after)) for flag, before, after in differences]
            echo_parts([Table(("FLAG", "BEFORE", "NOW"), rows, is_spaced=False)])
        case Output.NAME:
            for flag, _, _ in differences:
                typer.echo(flag)
        case _:
            listed = [{"flag": flag, "before": before, "after": after} for flag, before, after in differences]
            echo_value({"namespace": namespace, "changed": listed, "options": dict(changed.after)}, output)


def _format_value(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
