"""`plimsoll apiserver`: only the embedded Kubernetes API server."""

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


def apiserver(
    data: Annotated[
        Path, typer.Option("--data", help="Directory to keep everything in; made if it is not there.", metavar="DIR")
    ] = DEFAULT_DATA,
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes any.", min=0, max=65535)] = 6443,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    durability: Annotated[
        DurabilityChoice,
        typer.Option("--durability", help="What an acknowledged write survives: kill -9, or a power failure."),
    ] = DurabilityChoice.PROCESS,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help='Further users, one a line: token,user,uid,"group1,group2".', metavar="FILE"),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget the objects of earlier starts; certificates and token stay.")
    ] = False,
) -> None:
    """
    Run a Kubernetes API server on this machine, until Ctrl-C.

    It speaks TLS with a certificate of its own making, and writes a kubeconfig that kubectl and every other client
    can use. There are no controllers and no nodes: it stores, checks and tells.

    \b
    Examples:
      plimsoll apiserver --data ./cluster
      plimsoll apiserver --data ./cluster --port 7443 --durability power
      kubectl --kubeconfig ./cluster/kubeconfig get namespaces
    """
    from plimsoll.core.errors import InvalidInput
    from plimsoll.local.apiserver.run import Settings
    from plimsoll.local.apiserver.storage import Durability

    if not data.name:  # an empty text, or the folder we stand in: keys would lie among other files
        raise InvalidInput("names no directory of its own; say e.g. --data ./cluster", path="--data")
    _serve(
        Settings(
            data=data,
            host=host,
            port=port,
            durability=Durability(durability.value),
            token_file=token_file,
            fresh=fresh,
        )
    )


def _serve(settings: Settings) -> None:
    import asyncio

    from plimsoll.local.apiserver.run import run
    from plimsoll.runtime.chance import SystemEntropy
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.signals import run_until_signalled

    log_to_stderr()
    serving = run(settings, clock=RealClock(), entropy=SystemEntropy(), on_ready=_tell)
    stopped_by = asyncio.run(run_until_signalled(serving))
    if stopped_by is not None:
        typer.echo("stopped", err=True)


def _tell(ready: Ready) -> None:
    typer.echo(f"kubeconfig {ready.kubeconfig}")
    typer.echo(f"ready at {ready.url}; try: kubectl --kubeconfig {ready.kubeconfig} get namespaces")
