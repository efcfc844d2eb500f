"""The cluster that the suite runs on: the one of PLIMSOLL_E2E_KUBECONFIG, or a `plimsoll apiserver` of its own.

Tests do not ask which it is. A cluster may have controllers that act on what tests make (and a garbage collector, and
a scheduler), or none; it need not have nodes.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.client import Client
from plimsoll.kube.configuration import find_access
from plimsoll.kube.errors import NotFound
from plimsoll.kube.http import HttpTransport
from plimsoll.kube.selections import ClientSettings
from plimsoll.objects.configuration import Namespace
from plimsoll.objects.rbac import ServiceAccount
from plimsoll.runtime.chance import SystemEntropy
from plimsoll.runtime.clocks import RealClock
from tests.e2e.apiserver.processes import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from plimsoll.kube.access import Access
    from plimsoll.kube.exchange import Transport

KUBECONFIG_VARIABLE: Final = "PLIMSOLL_E2E_KUBECONFIG"
PATIENCE_S: Final = 30.0
CLOCK: Final = RealClock()
ENTROPY: Final = SystemEntropy()
USER_AGENT: Final = "plimsoll-e2e"


@contextmanager
def cluster_access(directory: Path) -> Iterator[Access]:
    if kubeconfig := os.environ.get(KUBECONFIG_VARIABLE):
        yield access_of(Path(kubeconfig))
        return
    with running(directory) as server:
        yield access_of(server.kubeconfig)


def access_of(kubeconfig: Path) -> Access:
    return find_access(kubeconfig=str(kubeconfig), environment=os.environ, clock=CLOCK)


@asynccontextmanager
async def connected(
    access: Access, *, wrapped: Callable[[Transport], Transport] = lambda one: one
) -> AsyncIterator[Client]:
    """A client without a rate limit: the suite is short of time, the cluster is not."""
    settings = ClientSettings(user_agent=USER_AGENT, field_manager=USER_AGENT, qps=0)
    async with HttpTransport(access, user_agent=USER_AGENT) as transport:
        yield Client(wrapped(transport), clock=CLOCK, entropy=ENTROPY, settings=settings)


@asynccontextmanager
async def fresh_namespace(client: Client) -> AsyncIterator[str]:
    """A namespace in which pods can be made, which takes its ServiceAccount; removed whatever happens."""
    body = {"metadata": {"generateName": "plimsoll-e2e-"}}
    made = await client.create(Namespace, body)
    name = made.metadata.name
    try:
        await until(lambda: exists(client, ServiceAccount, "default", namespace=name))
        yield name
    finally:
        with suppress(NotFound):
            await client.delete(Namespace, name)


async def exists(client: Client, of: Any, name: str, *, namespace: str = "") -> bool:
    try:
        await client.get(of, name, namespace=namespace)
    except NotFound:
        return False
    return True


async def until(condition: Callable[[], Awaitable[Any]], *, within_s: float = PATIENCE_S) -> Any:
    """Ask again until the answer is true; a condition that does not come about fails the test."""
    async with asyncio.timeout(within_s):
        while not (found := await condition()):
            await asyncio.sleep(0.02)
    return found


async def until_so(condition: Callable[[], Any], *, within_s: float = PATIENCE_S) -> Any:
    """The same for what can be asked at once."""

    async def ask() -> Any:
        return condition()

    return await until(ask, within_s=within_s)
