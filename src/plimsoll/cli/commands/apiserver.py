"""`plimsoll apiserver`: the embedded Kubernetes API server alone."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.cli.shared.logs import log_to_stderr

if TYPE_CHECKING:
    from plimsoll.local.apiserver.run import Ready, Settings

DEFAULT_DATA = Path(".plimsoll")


class DurabilityChoice(Enum):
    """What an acknowledged write survives."""

    PROCESS = "process"
    POWER = "power"


def apiserver(  # noqa: PLR0917 - an option each, named by their callers
    data: Annotated[
        Path, typer.Option("--data", help="Directory for all data; created if missing.", metavar="DIR")
    ] = DEFAULT_DATA,
    port: Annotated[
        int, typer.Option("--port", help="Port to listen on; 0 selects a free one.", min=0, max=65535)
    ] = 6443,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    durability: Annotated[
        DurabilityChoice,
        typer.Option("--durability", help="What an acknowledged write survives: kill -9, or a power failure."),
    ] = DurabilityChoice.PROCESS,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", help='File with more users, one per line: token,user,uid,"group1,group2".', metavar="FILE"
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete all objects of earlier runs. Certificates and token are kept.")
    ] = False,
    event_ttl: Annotated[
        str, typer.Option("--event-ttl", help="How long an event is kept after its last write.", metavar="DURATION")
    ] = "1h",
) -> None:
    """
    Run a Kubernetes API server on this machine, until Ctrl-C.

    It uses TLS with a self-signed certificate and writes a kubeconfig for kubectl and other clients. There are no
    controllers and no nodes: it stores, validates and serves objects.

    \b
    Examples:
      plimsoll apiserver --data ./cluster
      plimsoll apiserver --data ./cluster --port 7443 --durability power
      kubectl --kubeconfig ./cluster/kubeconfig get namespaces
    """
    from plimsoll.core.errors import InvalidInput
    from plimsoll.local.apiserver.run import Settings
    from plimsoll.local.apiserver.storage import Durability

    if not data.name:  # an empty path or the current directory: keys would be mixed with other files
        raise InvalidInput("must name a directory of its own, e.g. --data ./cluster", path="--data")
    _serve(
        Settings(
            data=data,
            host=host,
            port=port,
            durability=Durability(durability.value),
            token_file=token_file,
            fresh=fresh,
            event_ttl_s=_read_event_ttl(event_ttl),
        )
    )


def _read_event_ttl(text: str) -> float:
    from plimsoll.core.errors import InvalidInput
    from plimsoll.core.value_parsing import read_duration_s

    ttl_s = read_duration_s(text)
    if ttl_s is None or ttl_s <= 0:
        raise InvalidInput(f"{text!r} is not a duration above zero, e.g. --event-ttl 1h or 30m", path="--event-ttl")
    return ttl_s


def _serve(settings: Settings) -> None:
    import asyncio

    from plimsoll.local.apiserver.run import run
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.entropy import SystemEntropy
    from plimsoll.runtime.signals import run_until_signalled

    log_to_stderr()
    serving = run(settings, clock=RealClock(), entropy=SystemEntropy(), on_ready=_report_ready)
    stopped_by = asyncio.run(run_until_signalled(serving))
    if stopped_by is not None:
        typer.echo("stopped", err=True)


def _report_ready(ready: Ready) -> None:
    typer.echo(f"kubeconfig {ready.kubeconfig}")
    typer.echo(f"ready at {ready.url}; try: kubectl --kubeconfig {ready.kubeconfig} get namespaces")
