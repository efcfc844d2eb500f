"""`plimsoll up`: a simulated cluster with all controllers, until Ctrl-C."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

import plimsoll
from plimsoll.app.ports import HIGHEST_PORT_BASE, read_port_base
from plimsoll.cli.commands.apiserver import DEFAULT_DATA
from plimsoll.cli.shared.logs import log_sentences_to_stderr
from plimsoll.cli.shared.slow_notice import SlowNotice

if TYPE_CHECKING:
    from plimsoll.app.up import UpSettings, UpStatus

_FIRST_SCREEN = """\
ready at {url}

Plimsoll {version} runs a simulated Kubernetes cluster on this machine: {nodes}.
{waiting}Nothing is really executed; machines, nodes and pods are simulated. The state is
kept in {data} and used at the next start (--fresh starts over).

Try it in another terminal:

  export KUBECONFIG={kubeconfig}
  kubectl get nodes
  kubectl create deployment web --image=nginx --replicas=5
  kubectl get pods -o wide

{pages}{servers}{fleet}More to try: examples/first-steps.md, examples/tidb/breathing.yaml,
examples/kafka/cluster.yaml. Ctrl-C stops it.
"""

# The maximum number of unready nodes to list with their cause.
_NAMED = 5


class UpPart(StrEnum):
    """A part of Plimsoll that `up` runs."""

    NODES = "nodes"
    TIDB = "tidb"
    KAFKA = "kafka"
    FLEET = "fleet"


def up(
    *,
    data: Annotated[
        Path, typer.Option("--data", help="Directory for all data; created if missing.", metavar="DIR")
    ] = DEFAULT_DATA,
    port_base: Annotated[
        int | None,
        typer.Option(
            "--port-base",
            help="Port of the Kubernetes API; other ports are relative to it. 0 selects free ports. "
            "Default: as before, 6443 at first.",
            min=0,
            max=HIGHEST_PORT_BASE,
            show_default=False,
        ),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes",
            help="Machines in the node group 'workers'. Default: as before, 3 at first.",
            min=0,
            max=5_000,
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", help="Delete all objects and the journal of earlier runs. Certificates and token are kept."
        ),
    ] = False,
    autoscaler: Annotated[
        bool, typer.Option("--autoscaler/--no-autoscaler", help="Add and remove nodes as pods need them.")
    ] = True,
    tidb_autoscaler: Annotated[
        bool, typer.Option("--tidb-autoscaler/--no-tidb-autoscaler", help="Scale TiDB clusters.")
    ] = True,
    kafka_operator: Annotated[
        bool, typer.Option("--kafka-operator/--no-kafka-operator", help="Operate Kafka clusters.")
    ] = True,
    only: Annotated[
        list[UpPart] | None,
        typer.Option("--only", help="Run these parts beside the simulated cluster, and no others; repeatable."),
    ] = None,
    max_clusters: Annotated[
        int, typer.Option("--max-clusters", help="Clusters that the fleet may have on this machine.", min=1, max=50)
    ] = 5,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more on stderr.")] = False,
) -> None:
    """
    Run a simulated cluster on this machine, until Ctrl-C: API server, scheduler, controllers, nodes and a cloud.

    A fleet manager runs beside it, with a simulated OCM that makes further clusters: the first one for the region of
    its configuration (fleet/ in the data directory), others when Kafkas need them. Each has a context in the
    kubeconfig. plimsoll fleet clusters lists them; --only nodes runs without a fleet.

    \b
    Examples:
      plimsoll up
      plimsoll up --fresh --nodes 10
      plimsoll up --only fleet --max-clusters 3
      plimsoll up --data ./other --port-base 7443
    """
    from plimsoll.app.up import UpSettings
    from plimsoll.core.errors import InvalidInput

    if not data.name:  # an empty path or the current directory: keys would lie among other files
        raise InvalidInput("must name a directory of its own, e.g. --data ./cluster", path="--data")
    if data.exists() and not data.is_dir():
        raise InvalidInput(f"{data} is a file; --data must name a directory, e.g. {data}.d", path="--data")
    log_sentences_to_stderr(is_verbose=verbose)
    base = read_port_base(data) if port_base is None else port_base
    words = tuple(sys.argv[sys.argv.index("up") + 1 :]) if "up" in sys.argv else ()
    parts = frozenset(only or UpPart)
    settings = UpSettings(
        data=data,
        port_base=base,
        fresh=fresh,
        nodes=nodes,
        autoscales=autoscaler and UpPart.NODES in parts,
        scales_tidb=tidb_autoscaler and UpPart.TIDB in parts,
        operates_kafka=kafka_operator and UpPart.KAFKA in parts,
        runs_fleet=UpPart.FLEET in parts,
        most_clusters=max_clusters,
        words=words,
    )
    _run(settings)


def _run(settings: UpSettings) -> None:
    import asyncio
    from contextlib import ExitStack

    from plimsoll.app.up import run
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.entropy import SystemEntropy
    from plimsoll.runtime.signals import run_until_signalled

    with ExitStack() as starting:
        starting.enter_context(SlowNotice("starting the cluster"))

        def print_first_screen(up: UpStatus) -> None:
            starting.close()
            typer.echo(format_first_screen(up), nl=False)

        running = run(settings, clock=RealClock(), entropy=SystemEntropy(), on_up=print_first_screen)
        if asyncio.run(run_until_signalled(running)) is not None:
            typer.echo("stopped", err=True)


def format_first_screen(up: UpStatus) -> str:
    """The first output: what runs, where, and what to try."""
    import shlex

    return _FIRST_SCREEN.format(
        url=up.url,
        version=plimsoll.__version__,
        nodes=_format_nodes(up),
        waiting=_format_waiting(up),
        data=up.kubeconfig.parent,
        kubeconfig=shlex.quote(str(up.kubeconfig)),
        pages=_format_pages(up),
        servers=_format_servers(up),
        fleet=_format_fleet(up),
    )


def _format_servers(up: UpStatus) -> str:
    """Addresses of the other servers; with free ports they differ at every start."""
    if not up.planner:
        return ""
    return (
        f"TiDB planner at {up.planner}, PD at {up.pd},\n"
        f"Cruise Control's API of Kafka clusters at {up.cruise_control} (token: admin.token).\n"
    )


def _format_fleet(up: UpStatus) -> str:
    if not up.fleet:
        return ""
    return (
        f"Fleet API at {up.fleet}, simulated OCM at {up.ocm}.\n"
        "Clusters of the fleet: plimsoll fleet clusters, kubectl config get-contexts.\n"
    )


def _format_pages(up: UpStatus) -> str:
    if not up.pages:
        return ""
    console = f"Console, what happens and why: {up.console}\n" if up.console else ""
    return f"{console}Metrics, health and plans: {up.pages} (/metrics, /healthz, /plan, /explain).\n"


def _format_nodes(up: UpStatus) -> str:
    noun = "node" if up.nodes_expected == 1 else "nodes"
    if up.nodes_ready == up.nodes_expected:
        return f"{up.nodes_ready} {noun}, ready" if up.nodes_ready else "no nodes yet"
    return f"{up.nodes_ready} of {up.nodes_expected} {noun} ready"


def _format_waiting(up: UpStatus) -> str:
    """One line for each of the first unready nodes."""
    lines = [f"  not ready: {node}\n" for node in up.waiting_for[:_NAMED]]
    if more := len(up.waiting_for) - len(lines):
        lines.append(f"  and {more} more: kubectl get nodes,machines\n")
    return "".join(lines)
