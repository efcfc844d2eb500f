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
from plimsoll.kube.requests.options import ClientSettings, DeleteOptions, Selection
from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.core import ConfigMap, Namespace
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.policy import PodDisruptionBudget
from plimsoll.objects.api.rbac import Role, RoleBinding, ServiceAccount
from plimsoll.objects.api.workloads import Deployment, ReplicaSet
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SystemEntropy
from tests.e2e.apiserver.processes import running
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from plimsoll.kube.access import Access
    from plimsoll.kube.transport import Transport

KUBECONFIG_VARIABLE: Final = "PLIMSOLL_E2E_KUBECONFIG"
CLOCK: Final = RealClock()
ENTROPY: Final = SystemEntropy()
USER_AGENT: Final = "plimsoll-e2e"

# Owners before what they own. Events stay: they end with the namespace, and tests ask for their own ones.
_MADE_KINDS: Final = (
    Deployment,
    ReplicaSet,
    Pod,
    PodDisruptionBudget,
    ConfigMap,
    Lease,
    RoleBinding,
    Role,
    ServiceAccount,
)
_MADE_BY_THE_CLUSTER: Final = ("default", "kube-root-ca.crt")
_AT_ONCE: Final = DeleteOptions(grace_s=0, propagation="Background")


@contextmanager
def cluster_kubeconfig(directory: Path) -> Iterator[Path]:
    if kubeconfig := os.environ.get(KUBECONFIG_VARIABLE):
        yield Path(kubeconfig)
        return
    with running(directory) as server:
        yield server.kubeconfig


def access_of(kubeconfig: Path) -> Access:
    return find_access(kubeconfig=str(kubeconfig), environment=os.environ, clock=CLOCK)


@asynccontextmanager
async def connected(
    access: Access, *, wrapped: Callable[[Transport], Transport] = lambda transport: transport
) -> AsyncIterator[Client]:
    """A client without a rate limit: the suite is short of time, the cluster is not."""
    settings = ClientSettings(user_agent=USER_AGENT, field_manager=USER_AGENT, qps=0)
    async with HttpTransport(access, user_agent=USER_AGENT) as transport:
        yield Client(wrapped(transport), clock=CLOCK, entropy=ENTROPY, settings=settings)


async def make_namespace(access: Access) -> str:
    """A namespace in which pods can be made, which takes its ServiceAccount."""
    async with connected(access) as client:
        made = await client.create(Namespace, {"metadata": {"generateName": "plimsoll-e2e-"}})
        name = made.metadata.name
        try:
            await until(lambda: exists(client, ServiceAccount, "default", namespace=name))
        except TimeoutError:
            await client.delete(Namespace, name)
            raise
        return name


async def delete_namespace(access: Access, name: str) -> None:
    """Ask for its end, which a cluster with a namespace controller brings about in its own time."""
    async with connected(access) as client:
        with suppress(NotFound):
            await client.delete(Namespace, name)


async def empty_namespace(client: Client, name: str) -> None:
    """Delete what tests and, on their behalf, controllers made, until nothing of it is left."""
    await until(lambda: _delete_all(client, Selection(namespace=name)))


async def _delete_all(client: Client, selection: Selection) -> bool:
    """Whether there was nothing to delete any more."""
    found = 0
    for kind in _MADE_KINDS:
        listed = await client.list(kind, selection)
        for wire_object in listed.items:
            if wire_object.metadata.name in _MADE_BY_THE_CLUSTER:
                continue
            found += 1
            with suppress(NotFound):
                # No kubelet may be there to confirm the end of a pod.
                await client.delete(kind, wire_object.metadata.name, namespace=selection.namespace, options=_AT_ONCE)
    return not found


async def exists(client: Client, of: Any, name: str, *, namespace: str = "") -> bool:
    try:
        await client.get(of, name, namespace=namespace)
    except NotFound:
        return False
    return True


async def until(condition: Callable[[], Awaitable[Any]], *, within_s: float = PATIENCE_S) -> Any:
    """Ask again until the answer is true; a condition that does not come about fails the test."""
    async with asyncio.timeout(within_s):
        while not (found := await condition()):  # noqa: ASYNC110 -- a cluster causes no event
            await asyncio.sleep(0.02)
    return found


async def until_so(condition: Callable[[], Any], *, within_s: float = PATIENCE_S) -> Any:
    """The same for what can be asked at once."""

    async def ask() -> Any:
        return condition()

    return await until(ask, within_s=within_s)
