"""`plimsoll run …`: controllers against a cluster, until they are told to stop. A command for each of them."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plimsoll.cli.nodes.flag_listing import NodeFlagsCommand
from plimsoll.cli.nodes.provider import provider
from plimsoll.cli.nodes.run import PASS_THROUGH_FLAGS, nodes
from plimsoll.cli.shared.connection import Connection, ContextOption, KubeconfigOption, ServerOption
from plimsoll.cli.shared.logs import log_to_stderr
from plimsoll.cli.tidb.run import tidb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.access import Access
    from plimsoll.local.components import Components
    from plimsoll.local.kubelet.settings import KubeletSettings
    from plimsoll.runtime.services import Service

_PATIENCE_S: Final = 2.0

app = typer.Typer(help="Run controllers against a cluster, until Ctrl-C.", no_args_is_help=True)
app.command(
    name="nodes",
    cls=NodeFlagsCommand,
    short_help="Add and remove nodes as pods need them.",
    context_settings=PASS_THROUGH_FLAGS,
)(nodes)
app.command(name="tidb", short_help="Scale TiDB clusters as their load needs it.")(tidb)
app.command(name="provider", short_help="Serve a provider over gRPC.")(provider)


@app.callback()
def run() -> None:
    """
    Run controllers against a cluster, until Ctrl-C.

    \b
    Examples:
      plimsoll run nodes --kubeconfig ./cluster/kubeconfig --dry-run
      plimsoll run tidb --planner http://planner:9092
      plimsoll run provider --kubeconfig ./cluster/kubeconfig
      plimsoll run cloud --kubeconfig ./cluster/kubeconfig
      plimsoll run kubelet --kubeconfig ./cluster/kubeconfig
    """


@app.command(name="kubelet", short_help="Play nodes and the pods on them.")
def kubelet(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    server: ServerOption = "",
    selector: Annotated[
        str, typer.Option("-l", "--selector", help="Labels of the nodes to play.", metavar="SELECTOR")
    ] = "plimsoll.io/virtual=true",
    boot_seconds: Annotated[
        float, typer.Option("--boot-seconds", help="From a node's creation until it is Ready.", min=0)
    ] = 0.0,
    start_seconds: Annotated[
        float, typer.Option("--start-seconds", help="From when a node takes a pod until it runs.", min=0)
    ] = 1.0,
    stop_seconds: Annotated[
        float, typer.Option("--stop-seconds", help="How long pods take to end when they are deleted.", min=0)
    ] = 0.0,
    events: Annotated[bool, typer.Option("--events/--no-events", help="Write the events a kubelet writes.")] = True,
) -> None:
    """
    Play nodes and the pods on them, without machines: Node objects become Ready and stay so, pods run and end.

    Nodes are made by you, or by an autoscaler; those that carry the label are played. Annotations on nodes and pods
    say how one of them behaves: plimsoll.io/boot-seconds, start-seconds, run-seconds, exit-code, stop-seconds, silent.

    \b
    Examples:
      plimsoll run kubelet --kubeconfig ./cluster/kubeconfig
      plimsoll run kubelet --context dev --selector pool=played --boot-seconds 30 --start-seconds 2
    """
    import asyncio

    from plimsoll.core.label_selector_parsing import parse_label_selector
    from plimsoll.local.kubelet.settings import KubeletSettings
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.signals import run_until_signalled

    log_to_stderr()
    parse_label_selector(selector)
    settings = KubeletSettings(
        selector=selector, boot_s=boot_seconds, start_s=start_seconds, stop_s=stop_seconds, tells_events=events
    )
    clock = RealClock()
    access = Connection(kubeconfig=kubeconfig, context=context, server=server).access(clock=clock)
    if asyncio.run(run_until_signalled(_play(access, settings, clock=clock))) is not None:
        typer.echo("stopped", err=True)


@app.command(name="cloud", short_help="Play a cloud that sells machines.")
def cloud(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    server: ServerOption = "",
    boot_seconds: Annotated[
        float, typer.Option("--boot-seconds", help="Of machines of a new cloud, from order to node.", min=0)
    ] = 10.0,
) -> None:
    """
    Play a cloud: machines come and go as NodeGroup objects say, each with a Node, and cost what they cost.

    Brings its definitions along (cloud.plimsoll.io), and a Cloud that sells common machine types if there is none.
    The nodes want a kubelet: plimsoll run kubelet. docs/simulated-cloud.md tells what can go wrong with this cloud.

    \b
    Examples:
      plimsoll run cloud --kubeconfig ./cluster/kubeconfig
      plimsoll run cloud --context dev --boot-seconds 30
    """
    import asyncio

    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.signals import run_until_signalled

    log_to_stderr()
    clock = RealClock()
    access = Connection(kubeconfig=kubeconfig, context=context, server=server).access(clock=clock)
    if asyncio.run(run_until_signalled(_sell(access, boot_s=boot_seconds, clock=clock))) is not None:
        typer.echo("stopped", err=True)


@contextmanager
def report_if_slow(sentence: str) -> Iterator[None]:
    """Say what is waited for, to who has waited for it long enough to wonder."""
    import asyncio

    reminder = asyncio.get_running_loop().call_later(_PATIENCE_S, lambda: typer.echo(sentence, err=True))
    try:
        yield
    finally:
        reminder.cancel()


@dataclass(frozen=True, slots=True)
class SimulatedParts:
    """Tools of simulated parts that play on a cluster which somebody else runs."""

    components: Components
    clock: Clock
    entropy: Entropy

    async def run(self, services: Sequence[Service]) -> None:
        """Until cancelled."""
        from plimsoll.runtime.supervisor import Supervisor

        everything = [*self.components.services(), *services]
        await Supervisor(everything, clock=self.clock, entropy=self.entropy).run()


@asynccontextmanager
async def open_simulated_parts(access: Access, *, clock: Clock) -> AsyncIterator[SimulatedParts]:
    """Connected, and known to be let in."""
    from plimsoll.kube.client import Client
    from plimsoll.kube.http import HttpTransport
    from plimsoll.kube.requests.options import USER_AGENT, ClientSettings
    from plimsoll.local.components import KUBELET, Components
    from plimsoll.objects.custom_kinds import OUR_KINDS
    from plimsoll.runtime.chance import SystemEntropy

    entropy = SystemEntropy()
    async with HttpTransport(access, user_agent=USER_AGENT) as transport:

        def connect(manager: str) -> Client:
            # No rate limit: so many at a time is limit enough, and heartbeats must not queue behind pods.
            settings = ClientSettings(field_manager=manager, qps=0)
            return Client(transport, clock=clock, entropy=entropy, settings=settings, kinds=OUR_KINDS)

        # A plugin may take its time, more than a call has. What cannot be reached, or refuses us, is told now, and
        # not again and again by an informer in the background.
        await access.credentials.current()
        with report_if_slow(f"{access.server} does not answer yet; trying on"):
            await connect(KUBELET).get_json("/api/v1/nodes", [("limit", "1")])
        yield SimulatedParts(Components(connect, clock=clock, entropy=entropy), clock, entropy)


async def _play(access: Access, settings: KubeletSettings, *, clock: Clock) -> None:
    from plimsoll.local.components import KUBELET
    from plimsoll.local.kubelet import Kubelet

    async with open_simulated_parts(access, clock=clock) as parts:
        played = Kubelet(parts.components.component("kubelet", manager=KUBELET), settings=settings)
        typer.echo(f"playing nodes with {settings.selector} on {access.server}; Ctrl-C ends it")
        await parts.run(played.services())


async def _sell(access: Access, *, boot_s: float, clock: Clock) -> None:
    from plimsoll.local.cloud.controller import controllers
    from plimsoll.local.cluster import CLOUD
    from plimsoll.local.initial_cluster import prepare_cloud
    from plimsoll.runtime.services import Service

    async with open_simulated_parts(access, clock=clock) as parts:
        component = parts.components.component("cloud", manager=CLOUD)
        await prepare_cloud(component.client, boot_s=boot_s, clock=clock)
        made = controllers(component)
        typer.echo(f"playing the cloud of {access.server}; Ctrl-C ends it")
        await parts.run([Service(name=controller.name, run=controller.run) for controller in made])
