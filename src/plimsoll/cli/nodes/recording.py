"""`plimsoll record` and `plimsoll replay`: record the input of the node autoscaler, and plan again from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.cli.nodes.active_options import read_active_options
from plimsoll.cli.nodes.run import read_config, read_flags
from plimsoll.cli.shared.connection import (
    SYSTEM_NAMESPACE,
    Connection,
    ContextOption,
    ControllerNamespaceOption,
    KubeconfigOption,
    ServerOption,
)
from plimsoll.cli.shared.output import STDIN, Output, OutputOption, Table, echo_parts, echo_value, read_file
from plimsoll.cli.shared.slow_notice import SlowNotice
from plimsoll.core.errors import PlimsollError

if TYPE_CHECKING:
    from plimsoll.journal.recordings import Recording
    from plimsoll.nodes.loop_result import LoopResult

_DIFFERENCES_SHOWN = 20


class PlansDiffer(PlimsollError):
    """The replayed plan differs from the recorded one."""


def record(
    words: typer.Context,
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: ControllerNamespaceOption = SYSTEM_NAMESPACE,
    server: ServerOption = "",
    out: Annotated[
        str, typer.Option("--out", help="File to write; - is stdout.", metavar="FILE")
    ] = "plimsoll-recording.json.gz",
    keep_names: Annotated[bool, typer.Option("--keep-names", help="Keep names instead of anonymising them.")] = False,
    config: Annotated[
        str,
        typer.Option(
            "--config", help="YAML file with flags, without dashes, as for plimsoll run nodes.", metavar="FILE"
        ),
    ] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Record what the node autoscaler observes now, its policy, and the resulting plan.

    Names of objects, namespaces, groups and machine types, label values, addresses and texts are replaced by salted
    hashes; the salt is discarded. Equal names stay equal, so the plan has the same shape. Secrets, environment and
    commands are never read. Options are those of the running autoscaler as far as its status has them, then --config,
    then flags as in plimsoll run nodes. Nothing in the cluster is changed.

    Exit code 0: the recording was written. 3: the cluster or its cloud cannot be read. 4: no cluster can be reached.

    \b
    Examples:
      plimsoll record --out problem.json.gz
      plimsoll record --kubeconfig ./cluster/kubeconfig --keep-names --out mine.json.gz
      plimsoll record --cloud-provider=clusterapi --node-autoprovisioning=true
      plimsoll replay problem.json.gz
    """
    from plimsoll.cli.shared.logs import log_to_stderr

    log_to_stderr()
    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    given = {**read_config(config), **dict(read_flags(words.args))}
    in_force = read_active_options(connection, namespace, output)
    options = {**in_force, **given, "namespace": namespace}
    with SlowNotice("observing the cluster", is_silent=output in {Output.JSON, Output.YAML}):
        recording = _record_snapshot(connection, options, keep_names=keep_names)
    from plimsoll.journal.recordings import write_recording

    _write(out, write_recording(recording))
    _print_recorded(recording, out, output)


def replay(
    file: Annotated[str, typer.Argument(help="File written by plimsoll record; - is stdin.", metavar="FILE")],
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Plan again from a recording and compare the plan with the recorded one, byte for byte.

    Needs no cluster. Exit code 0: the plans are equal. 1: they differ; the differences are printed. 2: the file is
    not a recording.

    \b
    Examples:
      plimsoll replay problem.json.gz
      plimsoll replay problem.json.gz -o json
    """
    import plimsoll
    from plimsoll.core.errors import InvalidInput
    from plimsoll.journal.recordings import read_recording
    from plimsoll.nodes.recording import replay

    try:
        recording = read_recording(read_file(file))
        with SlowNotice(f"replaying {file}", is_silent=output in {Output.JSON, Output.YAML}):
            loop = replay.replay_recording(recording)
        before, now = recording.get_part(replay.PLAN), replay.encode_result(loop)
    except InvalidInput as error:
        raise error if error.path == file else InvalidInput(str(error), path=file) from error
    is_same = replay.is_same(before, now)
    differences = [] if is_same else list(replay.find_differences(before, now))
    report = {
        "same": is_same,
        "recordedAt": f"{recording.made_at:%Y-%m-%dT%H:%M:%SZ}",
        "recordedBy": recording.plimsoll,
        "replayedBy": plimsoll.__version__,
        "differences": [dict(zip(("path", "recorded", "now"), difference, strict=True)) for difference in differences],
        "plan": now,
    }
    _print_replay(report, loop, output)
    if not is_same:
        by = "" if recording.plimsoll == plimsoll.__version__ else f" (recorded by Plimsoll {recording.plimsoll})"
        raise PlansDiffer(f"the plan differs from the recorded one in {len(differences)} places{by}")


# ---- recording


def _record_snapshot(connection: Connection, options: dict[str, Any], *, keep_names: bool) -> Recording:
    from dataclasses import replace

    import plimsoll
    from plimsoll.core.errors import NotEnoughData
    from plimsoll.journal.recordings import About
    from plimsoll.nodes.config.options import read_options
    from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
    from plimsoll.nodes.recording import replay
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.entropy import SystemEntropy

    loop = _run_one_loop(connection, options)
    if loop.snapshot is None:
        raise NotEnoughData(f"there is nothing to record: {loop.ended_early}")
    wanted = read_options(options).operation
    operation = replace(loop.policy.operation, dry_run=wanted.dry_run, client_qps=wanted.client_qps)
    return replay.build_recording(
        loop.snapshot,
        replace(loop.policy, operation=operation),
        loop.scale_down.known or ScaleDownState(),
        about=About(subsystem=replay.SUBSYSTEM, made_at=RealClock().now(), plimsoll=plimsoll.__version__),
        salt=None if keep_names else SystemEntropy().generate_token(),
    )


def _run_one_loop(connection: Connection, options: dict[str, Any]) -> LoopResult:
    """Run one loop iteration as a dry run: the autoscaler observes and plans, and nothing is changed."""
    import asyncio
    import os

    from plimsoll.app.node_autoscaling import NodeAutoscalerProcess, NodeAutoscalingSettings
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.entropy import SystemEntropy

    clock = RealClock()
    # A single loop needs no rate limit.
    dry = {**options, "dry-run": True, "kube-client-qps": 0}
    settings = NodeAutoscalingSettings(access=connection.build_access(clock=clock), options=dry, environment=os.environ)

    async def run() -> LoopResult:
        async with NodeAutoscalerProcess(settings, clock=clock, entropy=SystemEntropy()) as autoscaler:
            return await autoscaler.run_once()

    return asyncio.run(run())


def _write(out: str, data: bytes) -> None:
    import os
    import sys

    from plimsoll.core.errors import InvalidInput

    if out == STDIN:
        sys.stdout.buffer.write(data)
        return
    try:
        # Readable by the owner only: with --keep-names it describes the cluster.
        with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", path=out) from error


def _print_recorded(recording: Recording, out: str, output: Output) -> None:
    snapshot = recording.get_part("snapshot")
    pods = sum(len(node_pods["pods"]) for node_pods in snapshot["homes"])
    report = {
        "file": out,
        "anonymised": recording.anonymised,
        "nodes": len(snapshot["homes"]),
        "pods": pods,
        "pending": sum(entry["count"] for entry in snapshot["pending"]),
        "groups": len(snapshot["groups"]),
    }
    if output in {Output.JSON, Output.YAML}:
        echo_value(report, output)
        return
    names = "names are hidden" if recording.anonymised else "WITH NAMES: it shows what runs in the cluster"
    counts = f"{report['nodes']} nodes, {pods} pods, {report['pending']} pending, {report['groups']} groups"
    typer.echo(out if output is Output.NAME else f"{out}: {counts}; {names}", err=out == STDIN)


# ---- replaying


def _print_replay(report: dict[str, Any], loop: LoopResult, output: Output) -> None:
    match output:
        case Output.TABLE:
            from plimsoll.journal.rendering import remove_control_characters
            from plimsoll.nodes.reporting.journal.plan_entries import build_plan

            for line in build_plan(loop).format_lines():
                typer.echo(remove_control_characters(line))
            verdict = "the same plan, byte for byte, as" if report["same"] else "another plan than"
            typer.echo(f"{verdict} recorded at {report['recordedAt']} by Plimsoll {report['recordedBy']}")
            shown = report["differences"][:_DIFFERENCES_SHOWN]
            rows = [
                tuple(remove_control_characters(str(difference[key])) for key in ("path", "recorded", "now"))
                for difference in shown
            ]
            echo_parts([Table(("WHERE", "RECORDED", "NOW"), list(rows))])
            if more := len(report["differences"]) - len(shown):
                typer.echo(f"and {more} more; -o json has all")
        case Output.NAME:
            for difference in report["differences"]:
                typer.echo(difference["path"])
        case _:
            echo_value(report, output)
