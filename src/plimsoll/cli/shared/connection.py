"""The options and the client of commands that talk to a cluster, as in kubectl."""

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
        help="Kubeconfig file. Default: $KUBECONFIG, ~/.kube/config, or the service account of this pod.",
        metavar="FILE",
        show_default=False,
    ),
]
ContextOption = Annotated[
    str, typer.Option("--context", help="Context of the kubeconfig. Default: its current context.", show_default=False)
]
NamespaceOption = Annotated[
    str, typer.Option("-n", "--namespace", help="Namespace. Default: that of the context.", show_default=False)
]
ServerOption = Annotated[
    str,
    typer.Option(
        "-s",
        "--server",
        help="Address of the API server. Default: that of the kubeconfig.",
        metavar="URL",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The options as given; empty means not given."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    server: str = ""

    @property
    def options(self) -> list[str]:
        """The given options as command-line words."""
        given = {
            "--kubeconfig": self.kubeconfig,
            "--context": self.context,
            "-n": self.namespace,
            "--server": self.server,
        }
        return [word for name, value in given.items() if value for word in (name, value)]

    def build_access(self, *, clock: Clock) -> Access:
        """Server and credentials. Raises `InvalidInput`, naming the file and the field."""
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
    """A client over the network, closed at the end of the block.

    Credentials are obtained first, because a plugin, or the person it asks, may take longer than one call is allowed
    to.
    """
    from plimsoll.kube.client import Client
    from plimsoll.kube.http import HttpTransport
    from plimsoll.objects.custom_kinds import OUR_KINDS
    from plimsoll.runtime.entropy import SystemEntropy

    async with HttpTransport(access, user_agent=settings.user_agent) as transport:
        await access.credentials.get_current()
        yield Client(transport, clock=clock, entropy=SystemEntropy(), settings=settings, kinds=OUR_KINDS)


def run_with_client(
    connection: Connection,
    work: Callable[[Client], Awaitable[T]],
    *,
    is_silent: bool = False,
    timeout_s: float = _TIMEOUT_S,
) -> T:
    """Run a short piece of work with the cluster and return its result. `timeout_s`: of one call.

    `is_silent`: with JSON output, errors are JSON too, so nothing else is written to stderr.
    """
    import asyncio

    from plimsoll.cli.shared.progress import Progress
    from plimsoll.kube.requests.options import ClientSettings
    from plimsoll.runtime.clocks import RealClock

    clock = RealClock()
    access = connection.build_access(clock=clock)
    settings = ClientSettings(timeout_s=timeout_s, deadline_s=2 * timeout_s + 1, qps=0)

    async def call_with_progress() -> T:
        with Progress(f"{access.server} has not answered yet; waiting …", is_silent=is_silent):
            async with open_client(access, settings, clock=clock) as client:
                return await work(client)

    return asyncio.run(call_with_progress())


if TYPE_CHECKING:
    from plimsoll.kube.client import Client


SYSTEM_NAMESPACE = "kube-system"


ControllerNamespaceOption = Annotated[
    str, typer.Option("-n", "--namespace", help="Namespace of Plimsoll's controllers.", metavar="NAMESPACE")
]
