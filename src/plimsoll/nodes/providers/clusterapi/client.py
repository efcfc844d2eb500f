"""Calls to the management cluster of Cluster API: the served version, reads, and changes of sizes.

Reads raise `ProviderFailed`; changes return an `Outcome`. `NotAllowed` is neither: this process must not act, and the
loop iteration ends.

Sizes are changed through the scale subresource, and only if they are still what the caller saw. Every change carries
the version of the object, so that no concurrent change is overwritten. A version is often outdated for an unimportant
reason (the status was written), so after a conflict the size is read again and the change is retried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.kube.discovery import fetch_groups, fetch_resources
from plimsoll.kube.errors import AnswerLost, Conflict, NotFound, ServerFailed, ServerTrouble, UnreadableAnswer
from plimsoll.kube.requests.retry import retry_on_conflict
from plimsoll.nodes.model.call_outcomes import CallFailed, Done, FailureKind
from plimsoll.nodes.providers.values import ProviderFailed
from plimsoll.objects.api.cluster_api import (
    ClusterMachine,
    MachineDeployment,
    MachinePool,
    MachineSet,
    build_cluster_api_resource,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from plimsoll.kube.client import Client
    from plimsoll.nodes.providers.clusterapi.cache import ClusterApiCache, GroupObject
    from plimsoll.nodes.providers.clusterapi.settings import ClusterApiSettings
    from plimsoll.objects.api.cluster_api import Scalable
    from plimsoll.objects.api.meta import WireObject
    from plimsoll.objects.api.resource import Resource

    T = TypeVar("T")
    Decide = Callable[[int], int | Done | CallFailed]


CALL_FAILED: Final = (ServerTrouble, ProviderFailed, InvalidInput)
"""The errors that become an outcome. `NotAllowed` is none of them: it ends the loop iteration."""
# The first that fits decides.
_KINDS: Final = (
    (NotFound, FailureKind.NO_SUCH_GROUP),
    (Conflict, FailureKind.REFUSED),
    ((AnswerLost, ServerFailed, UnreadableAnswer), FailureKind.UNKNOWN),
)
_SCALABLE: Final[tuple[type[Scalable], ...]] = (MachineDeployment, MachineSet, MachinePool)


async def read(reading: Awaitable[T]) -> T:
    """The answer. Raises `ProviderFailed`."""
    try:
        return await reading
    except CALL_FAILED as error:
        raise ProviderFailed(f"Cluster API: {error}") from error


async def read_if_there(reading: Awaitable[T]) -> T | None:
    """The answer; None if the object does not exist. Raises `ProviderFailed`."""
    try:
        return await read(reading)
    except ProviderFailed as failed:
        if isinstance(failed.__cause__, NotFound):
            return None
        raise


def to_failure(error: Exception) -> CallFailed:
    """The outcome of a change that raised this error."""
    kind = next((kind for kinds, kind in _KINDS if isinstance(error, kinds)), FailureKind.FAILED)
    return CallFailed(kind=kind, message=str(error))


def build_refusal(message: str) -> CallFailed:
    return CallFailed(kind=FailureKind.REFUSED, message=message)


class ServedApi(Value):
    """The resources of Cluster API that the management cluster serves, in one version."""

    group: str
    version: str
    plurals: frozenset[str]

    def get_resource(self, struct: type[WireObject]) -> Resource:
        return build_cluster_api_resource(struct, group=self.group, version=self.version)

    @property
    def scalable(self) -> tuple[type[Scalable], ...]:
        """The served kinds that can be node groups; MachinePools are optional."""
        return tuple(cls for cls in _SCALABLE if self.get_resource(cls).plural in self.plurals)


async def look_up_served(client: Client, settings: ClusterApiSettings) -> ServedApi:
    """The served resources. Raises `ProviderFailed` if Cluster API is not installed."""
    version = settings.version or await find_preferred_version(client, settings.group)
    if not version:
        raise ProviderFailed(f"the management cluster does not serve {settings.group}: is Cluster API installed there?")
    listed = await read(fetch_resources(client, f"{settings.group}/{version}"))
    served = ServedApi(group=settings.group, version=version, plurals=frozenset(resource.name for resource in listed))
    if served.get_resource(ClusterMachine).plural not in served.plurals:
        raise ProviderFailed(f"the management cluster has no machines in {settings.group}/{version}")
    return served


async def find_preferred_version(client: Client, group: str) -> str:
    """The preferred version of an API group; empty if it is not served."""
    found = await read(fetch_groups(client))
    return next((api_group.versions[0] for api_group in found if api_group.name == group and api_group.versions), "")


_TRIES: Final = 5


async def resize(cache: ClusterApiCache, group: GroupObject, decide: Decide) -> Done | CallFailed:
    """Set the size that `decide` returns for the current one; after a conflict, read and decide again."""
    meta = group.object.metadata
    resource = (await cache.get_served()).get_resource(type(group.object))

    async def attempt() -> Done | CallFailed:
        try:
            scale = await cache.client.get_scale(resource, meta.name, namespace=meta.namespace)
        except CALL_FAILED as error:
            return _as_not_applied(to_failure(error))
        wanted = decide(scale.spec.replicas)
        if not isinstance(wanted, int):
            cache.record_replicas(group, scale.spec.replicas)
            return wanted
        version = scale.metadata.resource_version
        try:
            await cache.client.scale(resource, meta.name, wanted, namespace=meta.namespace, resource_version=version)
        except Conflict:
            raise
        except CALL_FAILED as error:
            return to_failure(error)
        cache.record_replicas(group, wanted)
        return Done()

    try:
        return await retry_on_conflict(attempt, attempts=_TRIES)
    except Conflict:
        return build_refusal(f"node group {group.id} is changed by others all the time")


def from_expected(group: GroupObject, delta: int, *, expected: int) -> Decide:
    """Decide on `expected + delta`: done if the size is that already, refused if it is not `expected`."""

    def decide(replicas: int) -> int | Done | CallFailed:
        if replicas == expected + delta:
            return Done()
        if replicas != expected:
            return build_refusal(f"target of node group {group.id} is {replicas}, not {expected}")
        return expected + delta

    return decide


def _as_not_applied(failure: CallFailed) -> CallFailed:
    """The failure of a read: nothing was changed, so the outcome is not unknown."""
    if failure.kind is not FailureKind.UNKNOWN:
        return failure
    return CallFailed(kind=FailureKind.FAILED, message=failure.message)
