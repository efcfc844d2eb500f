"""How every command that talks to a cluster finds it: kubectl's options, and the client they lead to."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.kube.access import Access
    from plimsoll.kube.client import Client
    from plimsoll.kube.requests.options import ClientSettings

T = TypeVar("T")

_TIMEOUT_S = 10.0
KubeconfigOption = Annotated[
    str,
    typer.Option(
        "--kubeconfig",
        help="Kubeconfig to use; else $KUBECONFIG, ~/.kube/config, or the service account of this pod.",
        metavar="FILE",
        show_default=False,
    ),
]
ContextOption = Annotated[
    str, typer.Option("--context", help="Context of the kubeconfig; else its current one.", show_default=False)
]
NamespaceOption = Annotated[
    str, typer.Option("-n", "--namespace", help="Namespace to work in; else the context's.", show_default=False)
]
ServerOption = Annotated[
    str,
    typer.Option(
        "-s",
        "--server",
        help="Address of the API server, instead of the kubeconfig's.",
        metavar="URL",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The options as they were given; empty means not given."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    server: str = ""

    @property
    def options(self) -> list[str]:
        """The words that were given, to be given again."""
        given = {
            "--kubeconfig": self.kubeconfig,
            "--context": self.context,
            "-n": self.namespace,
            "--server": self.server,
        }
        return [word for name, value in given.items() if value for word in (name, value)]

    def access(self, *, clock: Clock) -> Access:
        """Which server, as whom. Raises `InvalidInput` naming the file and the field."""
        import os

        from plimsoll.kube.configuration import find_access

        return find_access(
            kubeconfig=self.kubeconfig,
            context=self.context,
            namespace=self.namespace,
            server=self.server,
            environment=os.environ,
            clock=clock,
        )


@asynccontextmanager
async def open_client(access: Access, settings: ClientSettings, *, clock: Clock) -> AsyncIterator[Client]:
    """A client over the network, whose connections end with the block.

    Credentials are had first: a plugin, or the person it asks, takes longer than one call may.
    """
    from plimsoll.kube.client import Client
    from plimsoll.kube.http import HttpTransport
    from plimsoll.runtime.chance import SystemEntropy

    async with HttpTransport(access, user_agent=settings.user_agent) as transport:
        await access.credentials.current()
        yield Client(transport, clock=clock, entropy=SystemEntropy(), settings=settings)


def run_with_client(connection: Connection, work: Callable[[Client], Awaitable[T]], *, is_silent: bool = False) -> T:
    """What a short piece of work with the cluster comes to, for commands that ask once and end.

    `is_silent`: whoever reads JSON reads errors as JSON too, so nothing else goes to stderr.
    """
    import asyncio

    from plimsoll.cli.shared.progress import Progress
    from plimsoll.kube.requests.options import ClientSettings
    from plimsoll.runtime.clocks import RealClock

    clock = RealClock()
    access = connection.access(clock=clock)
    settings = ClientSettings(timeout_s=_TIMEOUT_S, deadline_s=2 * _TIMEOUT_S + 1, qps=0)

    async def asked() -> T:
        with Progress(f"asking {access.server}", is_silent=is_silent):
            async with open_client(access, settings, clock=clock) as client:
                return await work(client)

    return asyncio.run(asked())


if TYPE_CHECKING:
    from plimsoll.kube.client import Client


SYSTEM_NAMESPACE = "kube-system"


ControllerNamespaceOption = Annotated[
    str, typer.Option("-n", "--namespace", help="Where the controllers of Plimsoll run.", metavar="NAMESPACE")
]
