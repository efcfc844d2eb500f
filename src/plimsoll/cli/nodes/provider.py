"""`plimsoll run provider`: one of our providers, served over gRPC."""

from __future__ import annotations

from typing import Annotated

import typer

from plimsoll.cli.shared.connection import Connection, ContextOption, KubeconfigOption, ServerOption
from plimsoll.cli.shared.logs import log_events_to_stderr


def provider(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    server: ServerOption = "",
    cloud_provider: Annotated[
        str, typer.Option("--cloud-provider", help="The provider to serve: simulated or clusterapi.", metavar="NAME")
    ] = "simulated",
    cloud_config: Annotated[
        str,
        typer.Option(
            "--cloud-config", help="Kubeconfig of the management cluster of clusterapi, if another.", metavar="FILE"
        ),
    ] = "",
    discovery: Annotated[
        list[str] | None,
        typer.Option(
            "--node-group-auto-discovery",
            help="Which node groups clusterapi finds, as clusterapi:namespace=NAMESPACE; may be repeated.",
            metavar="RULE",
        ),
    ] = None,
    address: Annotated[
        str, typer.Option("--address", help="Address to listen on, as host:port.", metavar="ADDRESS")
    ] = "127.0.0.1:8086",
    cert: Annotated[
        str, typer.Option("--cert", help="Certificate of this server; with --key and --cacert.", metavar="FILE")
    ] = "",
    key: Annotated[str, typer.Option("--key", help="Private key of --cert.", metavar="FILE")] = "",
    cacert: Annotated[
        str, typer.Option("--cacert", help="Authorities that client certificates are checked with.", metavar="FILE")
    ] = "",
    extension: Annotated[
        bool,
        typer.Option(
            "--extension/--no-extension",
            help="Serve Plimsoll's extension too: atomic scale-up, forced deletion, creation of node groups.",
        ),
    ] = True,
) -> None:
    """
    Serve a provider over Cluster Autoscaler's externalgrpc protocol, until Ctrl-C.

    Clients are an upstream Cluster Autoscaler, or plimsoll run nodes --cloud-provider=externalgrpc. Without --cert,
    --key and --cacert nothing is encrypted, and the address must be on this machine.

    \b
    Examples:
      plimsoll run provider --kubeconfig ./cluster/kubeconfig
      plimsoll run provider --address 0.0.0.0:8086 --cert tls.crt --key tls.key --cacert ca.crt
      plimsoll run provider --cloud-provider clusterapi --node-group-auto-discovery clusterapi:namespace=prod
    """
    import asyncio
    import os

    from plimsoll.app.provider_serving import ProviderProcess, Settings
    from plimsoll.nodes.providers.externalgrpc.configuration import parse_configuration
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.entropy import SystemEntropy
    from plimsoll.runtime.signals import run_until_signalled

    log_events_to_stderr()
    clock = RealClock()
    tls = {name: file for name, file in (("cert", cert), ("key", key), ("cacert", cacert)) if file}
    settings = Settings(
        access=Connection(kubeconfig=kubeconfig, context=context, server=server).build_access(clock=clock),
        options={
            "cloud-provider": cloud_provider,
            "cloud-config": cloud_config,
            "node-group-auto-discovery": discovery or [],
        },
        listen=parse_configuration({"address": address, **tls}),
        with_extension=extension,
        environment=os.environ,
    )
    process = ProviderProcess(settings, clock=clock, entropy=SystemEntropy())

    def announce(port: int) -> None:
        host = address.rpartition(":")[0]
        typer.echo(f"serving the provider {cloud_provider} on {host}:{port}; Ctrl-C ends it", err=True)

    if asyncio.run(run_until_signalled(process.run(announce))) is not None:
        typer.echo("stopped", err=True)
