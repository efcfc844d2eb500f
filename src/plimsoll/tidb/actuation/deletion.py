"""What becomes of the TidbClusters that an autoscaler made when it is deleted itself.

`autoscaler` asks `Finalization.part` in every pass over an autoscaler that is on its way out. Stores of TiKV must be
emptied before their pods go, and the garbage collector knows nothing of that: so a finalizer keeps the autoscaler until
all is done, from before its first store is made. By default everything is drained (`Drains` asks the caller to go on
with that, through the same deciding and acting as ever); an annotation may ask to leave the clusters where they are, or
to delete them as they are. Without a base cluster there is nothing to drain into; one that cannot be seen is no such
case.

The base cluster keeps the replicas it has.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Protocol

import msgspec
import structlog

from plimsoll.core.values import Value
from plimsoll.kube.controller.finalizers import Finalizer, Kept
from plimsoll.kube.errors import NotFound
from plimsoll.kube.requests.options import DeleteOptions, Selection
from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.wire.annotations import BASE_CLUSTER, DELETION_POLICY, DRAIN, read_mark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import ObjectMeta

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class DeletionPolicy(StrEnum):
    """What the annotation may say."""

    DRAIN = "drain"
    ORPHAN = "orphan"
    """The clusters stay, and belong to nobody."""
    FORCE = "force"
    """The clusters go at once, with whatever their stores hold."""


class BaseStanding(Enum):
    """What is known of the cluster that was scaled."""

    THERE = "there"
    GONE = "gone"
    """The server says so."""
    OUT_OF_SIGHT = "out of sight"
    """Its namespace does not let the autoscaler in: neither the cluster nor what was made beside it was looked at."""


class Released(Value):
    """Nothing is left to do: the autoscaler may go."""

    told: str


class Drains(Value):
    """These are to be removed first, as if no answer named them any more, without regard for cool-downs."""

    clusters: tuple[str, ...]

    @property
    def told(self) -> str:
        return f"{', '.join(self.clusters)} must be emptied and removed first"


class Waits(Value):
    """It comes to its end by itself, or cannot be brought there now: look again."""

    told: str


class EndDrain(Protocol):
    """Ends the removal of a store that a mark on the cluster tells of; the problem if that cannot be done now.

    `Drainer.bring_back`, for the replicas that the cluster has.
    """

    async def __call__(self, cluster: TidbCluster, /) -> str: ...


def deletion_policy(annotations: Mapping[str, str]) -> DeletionPolicy:
    """What is not a policy is taken for the one that loses nothing."""
    written = annotations.get(DELETION_POLICY, "").strip().lower()
    return DeletionPolicy(written) if written in set(DeletionPolicy) else DeletionPolicy.DRAIN


class Finalization:
    """Of autoscalers from what they made."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._finalizer = Finalizer(client, DRAIN)

    async def hold(self, autoscaler: ObjectMeta, *, component: Component, namespace: str) -> bool:
        """Before a TidbCluster is made in `namespace`. False: none may be made, the autoscaler is on its way out.

        Stores need it. So does whatever is in another namespace, where no owner can be named and nobody else would
        ever remove it.
        """
        if self.is_held(autoscaler, component=component, namespace=namespace):
            return True
        return await self._finalizer.add(TidbClusterAutoScaler, autoscaler) in {Kept.CHANGED, Kept.UNCHANGED}

    def is_held(self, autoscaler: ObjectMeta, *, component: Component, namespace: str) -> bool:
        """Whether nothing is to be done for that, by what was read of it."""
        if component is not Component.TIKV and namespace == autoscaler.namespace:
            return True
        return self._finalizer.is_on(autoscaler) and autoscaler.deletion_timestamp is None

    async def part(
        self,
        autoscaler: TidbClusterAutoScaler,
        clusters: Sequence[TidbCluster],
        *,
        base: BaseStanding,
        end_drain: EndDrain,
    ) -> Released | Drains | Waits:
        """`clusters` are those that it made and that are still there."""
        policy = deletion_policy(autoscaler.metadata.annotations)
        others = await self._owned_beside(autoscaler, clusters)
        if policy is DeletionPolicy.ORPHAN:
            return await self._orphan(autoscaler, [*clusters, *others], end_drain)
        if base is BaseStanding.OUT_OF_SIGHT and policy is not DeletionPolicy.FORCE:
            return Waits(told=_out_of_sight(autoscaler))
        if not clusters and others and policy is not DeletionPolicy.FORCE:
            return Waits(told=_of_another_base(others))
        if not clusters:
            return await self._release(autoscaler, "nothing that it made is left")
        if base is BaseStanding.GONE:
            return await self._delete(autoscaler, clusters)
        if policy is DeletionPolicy.FORCE:
            await self._end_drains(clusters, end_drain)
            return await self._delete(autoscaler, clusters)
        return Drains(clusters=tuple(sorted(tidb_cluster.metadata.name for tidb_cluster in clusters)))

    async def _owned_beside(
        self, autoscaler: TidbClusterAutoScaler, clusters: Sequence[TidbCluster]
    ) -> list[TidbCluster]:
        """What the garbage collector would take with it, and was not made for the cluster it names now."""
        known, owner = {tidb_cluster.metadata.name for tidb_cluster in clusters}, autoscaler.metadata
        listed = await self._client.list(TidbCluster, Selection(namespace=owner.namespace))
        return [
            tidb_cluster
            for tidb_cluster in listed.items
            if tidb_cluster.metadata.name not in known
            and any(of.uid == owner.uid for of in tidb_cluster.metadata.owner_references)
        ]

    async def _orphan(
        self, autoscaler: TidbClusterAutoScaler, clusters: Sequence[TidbCluster], end_drain: EndDrain
    ) -> Released | Waits:
        if problem := await self._end_drains(clusters, end_drain):
            return Waits(told=f"a store is on its way out and cannot be brought back now: {problem}")
        for cluster in clusters:
            await self._disown(cluster.metadata, owner=autoscaler.metadata.uid)
        return await self._release(autoscaler, "what it made stays, without an owner")

    async def _delete(self, autoscaler: TidbClusterAutoScaler, clusters: Sequence[TidbCluster]) -> Released | Waits:
        left = [
            tidb_cluster.metadata.name for tidb_cluster in clusters if not await self._is_deleted(tidb_cluster.metadata)
        ]
        if left:
            return Waits(told=f"{', '.join(left)} is being deleted")
        return await self._release(autoscaler, "what it made was deleted as it was")

    async def _end_drains(self, clusters: Sequence[TidbCluster], end_drain: EndDrain) -> str:
        """All of them, whatever becomes of one; the first problem."""
        problems = [
            await end_drain(tidb_cluster)
            for tidb_cluster in clusters
            if read_mark(tidb_cluster.metadata.annotations) is not None
        ]
        return next((problem for problem in problems if problem), "")

    async def _is_deleted(self, metadata: ObjectMeta) -> bool:
        try:
            if metadata.deletion_timestamp is None:
                options = DeleteOptions(uid=metadata.uid)
                await self._client.delete(TidbCluster, metadata.name, namespace=metadata.namespace, options=options)
            found = await self._client.get(TidbCluster, metadata.name, namespace=metadata.namespace)
        except NotFound:
            return True
        return found.metadata.uid != metadata.uid

    async def _disown(self, metadata: ObjectMeta, *, owner: str) -> None:
        """Read anew: ending a drain has written to it."""
        name, namespace = metadata.name, metadata.namespace
        try:
            found = (await self._client.get(TidbCluster, name, namespace=namespace)).metadata
            others = [owner_reference for owner_reference in found.owner_references if owner_reference.uid != owner]
            if len(others) == len(found.owner_references):
                return
            kept = {"ownerReferences": msgspec.to_builtins(others) or None}
            patch = {"metadata": {"resourceVersion": found.resource_version, **kept}}
            await self._client.merge_patch(TidbCluster, name, patch, namespace=namespace)
        except NotFound:
            return

    async def _release(self, autoscaler: TidbClusterAutoScaler, told: str) -> Released:
        await self._finalizer.remove(TidbClusterAutoScaler, autoscaler.metadata)
        _log.info("autoscaler.released", namespace=autoscaler.metadata.namespace, name=autoscaler.metadata.name)
        return Released(told=told)


def _out_of_sight(autoscaler: TidbClusterAutoScaler) -> str:
    namespace = autoscaler.spec.cluster.namespace
    return (
        f"the namespace {namespace} does not let it in, or cannot be read: what it made there cannot be drained; "
        f"{DELETION_POLICY}: orphan lets it go without"
    )


def _of_another_base(clusters: Sequence[TidbCluster]) -> str:
    first = clusters[0].metadata
    base = first.labels.get(BASE_CLUSTER, "another")
    return f"{first.name} was made for the cluster {base}: name that in spec.cluster, so that it can be drained"
