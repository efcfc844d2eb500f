"""The options and the run of a controller process: `plimsoll run tidb` and `plimsoll run kafka`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Protocol, Self, TypeVar

import typer

from plimsoll.cli.shared.output import Output
from plimsoll.cli.shared.slow_notice import SlowNotice

if TYPE_CHECKING:
    from plimsoll.cli.shared.connection import Connection
    from plimsoll.operator.process import ControllerOptions

T_co = TypeVar("T_co", covariant=True)

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print what would be done without acting.")]
ControllerNamespaceOption = Annotated[
    str,
    typer.Option(
        "--home", help="Namespace of its Lease and of the ConfigMap with the pause annotation.", metavar="NAMESPACE"
    ),
]
ResyncOption = Annotated[float, typer.Option("--resync", help="Seconds between two reconciles of an object.", min=1)]
AddressOption = Annotated[str, typer.Option("--address", help="Address of /metrics and /healthz.", metavar="HOST:PORT")]
JournalOption = Annotated[
    str, typer.Option("--data", help="Directory of the journal, for plimsoll why.", metavar="DIR")
]


def declare_leader_elect(lease: str) -> Any:
    """The option of leader election."""
    return typer.Option("--leader-elect/--no-leader-elect", help=f"Act only while holding the Lease {lease}.")


class ProcessRun(Protocol[T_co]):
    """A process of controllers, connected for as long as its block lasts."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *error: object) -> None: ...

    async def run(self) -> None:
        """Runs until cancelled, or until leadership is lost."""
        ...

    async def run_once(self) -> T_co:
        """Reconciles every object once."""
        ...


def build_controller_options(
    connection: Connection, *, data: str, address: str, leader_elect: bool
) -> ControllerOptions:
    """The options of the process; creates the directory of the journal."""
    import socket
    from pathlib import Path

    from plimsoll.operator.process import ControllerOptions
    from plimsoll.runtime.clocks import RealClock

    directory = Path(data) if data else None
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    return ControllerOptions(
        access=connection.build_access(clock=RealClock()),
        data=directory,
        host=socket.gethostname(),
        address=address,
        leader_elect=leader_elect,
    )


def run_until_stopped(process: ProcessRun[object], activity: str, *, dry_run: bool) -> None:
    """Run a process until Ctrl-C or SIGTERM. `activity`: what it does, and where, for the first line."""
    import asyncio

    from plimsoll.runtime.signals import run_until_signalled

    async def run_process() -> None:
        async with process as running:
            mode = "dry run: nothing is changed" if dry_run else "acting while it holds the lease"
            typer.echo(f"{activity}, {mode}; Ctrl-C stops it", err=True)
            await running.run()

    if asyncio.run(run_until_signalled(run_process())) is not None:
        typer.echo("stopped", err=True)


def reconcile_once(process: ProcessRun[T_co], output: Output) -> T_co:
    """Reconcile every object once; if that takes long, a line on stderr says so."""
    import asyncio

    async def run_process() -> T_co:
        async with process as running:
            return await running.run_once()

    with SlowNotice("reconciling", is_silent=output in {Output.JSON, Output.YAML}):
        return asyncio.run(run_process())
