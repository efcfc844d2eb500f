"""How the management cluster is asked: which version it serves, and what a call came to.

Reads raise `ProviderFailed`; changes give an `Outcome`. The one thing that is neither is `NotAllowed`: then it is we
who must not act, and the whole turn ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput, Unreachable
from plimsoll.core.values import Value
from plimsoll.kube.discovery import groups, resources
from plimsoll.kube.errors import AnswerLost, ApiError, Conflict, NotFound, ServerFailed, UnreadableAnswer
from plimsoll.nodes.providers.values import CallFailed, FailureKind, ProviderFailed
from plimsoll.objects.cluster_api import (
    ClusterMachine,
    MachineDeployment,
    MachinePool,
    MachineSet,
    cluster_api_resource,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import TypeVar

    from plimsoll.kube.client import Client
    from plimsoll.nodes.providers.clusterapi.settings import ClusterApiSettings
    from plimsoll.objects.cluster_api import Scalable
    from plimsoll.objects.meta import WireObject
    from plimsoll.objects.registry import Resource

    T = TypeVar("T")

TROUBLE: Final = (ApiError, Unreachable, UnreadableAnswer, InvalidInput)
# The first that fits decides.
_KINDS: Final = (
    (NotFound, FailureKind.NO_SUCH_GROUP),
    (Conflict, FailureKind.REFUSED),
    ((AnswerLost, ServerFailed, UnreadableAnswer), FailureKind.UNKNOWN),
)
_SCALABLE: Final[tuple[type[Scalable], ...]] = (MachineDeployment, MachineSet, MachinePool)


async def read(reading: Awaitable[T]) -> T:
    """What was asked, or `ProviderFailed`."""
    try:
        return await reading
    except TROUBLE as error:
        raise ProviderFailed(f"Cluster API: {error}") from error


async def read_if_there(reading: Awaitable[T]) -> T | None:
    """The same; None for what does not exist."""
    try:
        return await read(reading)
    except ProviderFailed as failed:
        if isinstance(failed.__cause__, NotFound):
            return None
        raise


def failure_of(error: Exception) -> CallFailed:
    """What became of a change that ended so."""
    kind = next((kind for kinds, kind in _KINDS if isinstance(error, kinds)), FailureKind.FAILED)
    return CallFailed(kind=kind, message=str(error))


def refused(message: str) -> CallFailed:
    return CallFailed(kind=FailureKind.REFUSED, message=message)


class Served(Value):
    """What of Cluster API the management cluster has, in one version."""

    group: str
    version: str
    plurals: frozenset[str]

    def resource(self, struct: type[WireObject]) -> Resource:
        return cluster_api_resource(struct, group=self.group, version=self.version)

    @property
    def scalable(self) -> tuple[type[Scalable], ...]:
        """MachinePools may not be there."""
        return tuple(one for one in _SCALABLE if self.resource(one).plural in self.plurals)


async def look_up_served(client: Client, settings: ClusterApiSettings) -> Served:
    """Raises `ProviderFailed` where Cluster API is not installed."""
    version = settings.version or await preferred_version(client, settings.group)
    if not version:
        raise ProviderFailed(f"the management cluster does not serve {settings.group}: is Cluster API installed there?")
    listed = await read(resources(client, f"{settings.group}/{version}"))
    served = Served(group=settings.group, version=version, plurals=frozenset(one.name for one in listed))
    if served.resource(ClusterMachine).plural not in served.plurals:
        raise ProviderFailed(f"the management cluster has no machines in {settings.group}/{version}")
    return served


async def preferred_version(client: Client, group: str) -> str:
    """Empty for a group that is not served."""
    found = await read(groups(client))
    return next((one.versions[0] for one in found if one.name == group and one.versions), "")
