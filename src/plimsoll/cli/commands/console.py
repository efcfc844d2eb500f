"""`plimsoll console`: the pages of `plimsoll up` on any cluster, read-only, with the rights of the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.cli.shared.connection import (
    SYSTEM_NAMESPACE,
    Connection,
    ContextOption,
    ControllerNamespaceOption,
    KubeconfigOption,
    ServerOption,
    open_client,
)

if TYPE_CHECKING:
    from plimsoll.kube.client import Client

_TIMEOUT_S = 30.0
_HOST = "127.0.0.1"
_DEFAULT_PORT = 8080


def console(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    server: ServerOption = "",
    namespace: ControllerNamespaceOption = SYSTEM_NAMESPACE,
    port: Annotated[
        int, typer.Option("--port", help="Port on 127.0.0.1; 0: any free one.", min=0, max=65_535)
    ] = _DEFAULT_PORT,
) -> None:
    """
    Show the console of a cluster on this machine, until Ctrl-C.

    It reads with your own rights and changes nothing: what kubectl get would refuse is not shown. Decisions are the
    last ones that the controllers keep in the cluster.

    \b
    Examples:
      plimsoll console
      plimsoll console --context prod
      plimsoll console --kubeconfig ./cluster/kubeconfig --port 8090
    """
    import asyncio

    from plimsoll.kube.requests.options import ClientSettings
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.signals import run_until_signalled

    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    clock = RealClock()
    access = connection.build_access(clock=clock)
    settings = ClientSettings(timeout_s=_TIMEOUT_S, deadline_s=2 * _TIMEOUT_S, qps=0)

    async def run() -> None:
        async with open_client(access, settings, clock=clock) as client:
            await _serve(client, access.server, namespace=namespace, port=port)

    if asyncio.run(run_until_signalled(run())) is not None:
        typer.echo("stopped", err=True)


async def _serve(client: Client, server: str, *, namespace: str, port: int) -> None:
    from functools import partial

    from plimsoll.app.console import Console, ConsoleDependencies, build_last_plan_decisions, format_address
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.requests.options import Selection
    from plimsoll.objects.api.nodes import Node
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.entropy import SystemEntropy
    from plimsoll.runtime.supervisor import Service, Supervisor
    from plimsoll.web.serving import bind_socket, serve_on_socket

    clock, entropy = RealClock(), SystemEntropy()
    listening = bind_socket(_HOST, port)
    await client.list(Node, Selection(page_size=1))
    informers = SharedInformerFactory(client, clock=clock, entropy=entropy)
    shown = Console(
        ConsoleDependencies(
            client=client,
            informers=informers,
            decisions=build_last_plan_decisions(client, namespace),
            clock=clock,
            entropy=entropy,
        )
    )
    bound: int = listening.getsockname()[1]
    application = shown.build_application(port=bound)
    services = [
        *informers.list_services(),
        *shown.list_services(),
        Service(name="console", run=partial(serve_on_socket, application, listening)),
    ]
    typer.echo(f"console of {server}: {format_address(bound, shown.sessions.issue_code())}")
    typer.echo("The address works once, within 15 minutes. Ctrl-C stops the console.")
    await Supervisor(services, clock=clock, entropy=entropy).run()
