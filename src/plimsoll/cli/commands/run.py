"""`plimsoll run …`: controllers against a cluster, until they are stopped. One command per controller."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plimsoll.cli.fleet.agent import agent
from plimsoll.cli.fleet.run import fleet
from plimsoll.cli.kafka.run import kafka
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
    from plimsoll.runtime.supervisor import Service

_PATIENCE_S: Final = 2.0

app = typer.Typer(no_args_is_help=True)
app.command(
    name="nodes",
    cls=NodeFlagsCommand,
    short_help="Add and remove nodes as pods need them.",
    context_settings=PASS_THROUGH_FLAGS,
)(nodes)
app.command(name="tidb", short_help="Scale TiDB clusters by load and disk usage.")(tidb)
app.command(name="kafka", short_help="Scale Kafka clusters, and rebalance them.")(kafka)
app.command(name="fleet", short_help="Manage a fleet of Kafka clusters, with a REST API.")(fleet)
app.command(name="agent", short_help="Run what the fleet manager places on a cluster.")(agent)
app.command(name="provider", short_help="Serve a provider over gRPC.")(provider)


@app.callback()
def run() -> None:
    """
    Run controllers against a cluster, until Ctrl-C.

    \b
    Examples:
      plimsoll run nodes --kubeconfig ./cluster/kubeconfig --dry-run
      plimsoll run tidb --planner http://planner:9092
      plimsoll run kafka --namespace kafka
      plimsoll run fleet --config-dir examples/fleet/config --dry-run --once
      plimsoll run agent --secret plimsoll-agent-parameters
      plimsoll run provider --kubeconfig ./cluster/kubeconfig
      plimsoll run cloud --kubeconfig ./cluster/kubeconfig
      plimsoll run kubelet --kubeconfig ./cluster/kubeconfig
    """


@app.command(name="kubelet", short_help="Simulate nodes and the pods on them.")
def kubelet(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    server: ServerOption = "",
    selector: Annotated[
        str, typer.Option("-l", "--selector", help="Labels of the nodes to simulate.", metavar="SELECTOR")
    ] = "plimsoll.io/virtual=true",
    boot_seconds: Annotated[
        float, typer.Option("--boot-seconds", help="Seconds from the creation of a node until it is Ready.", min=0)
    ] = 0.0,
    start_seconds: Annotated[
        float, typer.Option("--start-seconds", help="Seconds from the binding of a pod until it runs.", min=0)
    ] = 1.0,
    stop_seconds: Annotated[
        float, typer.Option("--stop-seconds", help="Seconds until a deleted pod has stopped.", min=0)
    ] = 0.0,
    events: Annotated[bool, typer.Option("--events/--no-events", help="Write the Events of a kubelet.")] = True,
) -> None:
    """
    Simulate nodes and the pods on them: Node objects become Ready, pods run and end, without machines.

    You or an autoscaler create the nodes; those with the label are simulated. Annotations on nodes and pods set their
    behaviour: plimsoll.io/boot-seconds, start-seconds, run-seconds, exit-code, stop-seconds, silent.

    \b
    Examples:
      plimsoll run kubelet --kubeconfig ./cluster/kubeconfig
      plimsoll run kubelet --context dev --selector pool=simulated --boot-seconds 30 --start-seconds 2
    """
    import asyncio

    from plimsoll.core.label_selector_parsing import parse_label_selector
    from plimsoll.local.kubelet.settings import KubeletSettings
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.signals import run_until_signalled

    log_to_stderr()
    parse_label_selector(selector)
    settings = KubeletSettings(
        selector=selector, boot_s=boot_seconds, start_s=start_seconds, stop_s=stop_seconds, emits_events=events
    )
    clock = RealClock()
    access = Connection(kubeconfig=kubeconfig, context=context, server=server).build_access(clock=clock)
    if asyncio.run(run_until_signalled(_run_kubelet(access, settings, clock=clock))) is not None:
        typer.echo("stopped", err=True)


@app.command(name="cloud", short_help="Simulate a cloud.")
def cloud(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    server: ServerOption = "",
    boot_seconds: Annotated[
        float, typer.Option("--boot-seconds", help="Seconds until a machine of a new cloud is a node.", min=0)
    ] = 10.0,
) -> None:
    """
    Simulate a cloud: machines are created and deleted as NodeGroup objects say, each with a Node and a price.

    The command installs its custom resources (cloud.plimsoll.io), and a Cloud with common machine types if there is
    none. The nodes need a kubelet: plimsoll run kubelet. docs/simulated-cloud.md describes the faults it can inject.

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
    access = Connection(kubeconfig=kubeconfig, context=context, server=server).build_access(clock=clock)
    if asyncio.run(run_until_signalled(_run_cloud(access, boot_s=boot_seconds, clock=clock))) is not None:
        typer.echo("stopped", err=True)


@contextmanager
def report_if_slow(sentence: str) -> Iterator[None]:
    """Print the sentence if the block takes long."""
    import asyncio

    reminder = asyncio.get_running_loop().call_later(_PATIENCE_S, lambda: typer.echo(sentence, err=True))
    try:
        yield
    finally:
        reminder.cancel()


@dataclass(frozen=True, slots=True)
class SimulatedParts:
    """What simulated components need on an existing cluster."""

    components: Components
    clock: Clock
    entropy: Entropy

    async def run(self, services: Sequence[Service]) -> None:
        """Run until cancelled."""
        from plimsoll.runtime.supervisor import Supervisor

        everything = [*self.components.list_services(), *services]
        await Supervisor(everything, clock=self.clock, entropy=self.entropy).run()


@asynccontextmanager
async def open_simulated_parts(access: Access, *, clock: Clock) -> AsyncIterator[SimulatedParts]:
    """The parts, after a first successful request."""
    from plimsoll.kube.client import Client
    from plimsoll.kube.http import HttpTransport
    from plimsoll.kube.requests.options import USER_AGENT, ClientSettings
    from plimsoll.local.components import KUBELET, Components
    from plimsoll.objects.custom_kinds import OUR_KINDS
    from plimsoll.runtime.entropy import SystemEntropy

    entropy = SystemEntropy()
    async with HttpTransport(access, user_agent=USER_AGENT) as transport:

        def connect(manager: str) -> Client:
            # No rate limit: the limit on concurrent requests is enough, and heartbeats must not queue behind pods.
            settings = ClientSettings(field_manager=manager, qps=0)
            return Client(transport, clock=clock, entropy=entropy, settings=settings, kinds=OUR_KINDS)

        # A credential plugin may take longer than a call. An unreachable server or a refusal is reported now, not by an
        # informer in the background.
        await access.credentials.get_current()
        with report_if_slow(f"{access.server} does not answer yet; still trying"):
            await connect(KUBELET).get_json("/api/v1/nodes", [("limit", "1")])
        yield SimulatedParts(Components(connect, clock=clock, entropy=entropy), clock, entropy)


async def _run_kubelet(access: Access, settings: KubeletSettings, *, clock: Clock) -> None:
    from plimsoll.local.components import KUBELET
    from plimsoll.local.kubelet import Kubelet

    async with open_simulated_parts(access, clock=clock) as parts:
        kubelet = Kubelet(parts.components.build_component("kubelet", manager=KUBELET), settings=settings)
        typer.echo(f"simulating nodes with {settings.selector} on {access.server}; Ctrl-C stops it")
        await parts.run(kubelet.list_services())


async def _run_cloud(access: Access, *, boot_s: float, clock: Clock) -> None:
    from plimsoll.local.cloud.controller import build_controllers
    from plimsoll.local.cluster import CLOUD
    from plimsoll.local.initial_cluster import prepare_cloud
    from plimsoll.runtime.supervisor import Service

    async with open_simulated_parts(access, clock=clock) as parts:
        component = parts.components.build_component("cloud", manager=CLOUD)
        await prepare_cloud(component.client, boot_s=boot_s, clock=clock)
        made = build_controllers(component)
        typer.echo(f"simulating the cloud of {access.server}; Ctrl-C stops it")
        await parts.run([Service(name=controller.name, run=controller.run) for controller in made])
