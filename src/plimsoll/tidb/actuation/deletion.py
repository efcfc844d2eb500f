"""Deletion of an autoscaler: what happens to the TidbClusters that it created.

TiKV stores must be drained before their pods are deleted, and the garbage collector does not know that. So a finalizer
keeps the autoscaler until everything is done; it is set before the first store is created. By default all stores are
drained (`DrainFirst` asks the caller to continue with that). An annotation may ask to keep the clusters, or to delete
them as they are. Without a base cluster there is nothing to drain into; a base cluster that cannot be read is not such
a case. The base cluster keeps its replicas.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Protocol

import msgspec
import structlog

from plimsoll.core.values import Value
from plimsoll.kube.controller.finalizers import Finalizer, FinalizerOutcome
from plimsoll.kube.errors import NotFound
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.observing.cluster_lists import list_clusters
from plimsoll.tidb.wire.annotations import BASE_CLUSTER, DELETION_POLICY, DRAIN, read_drain_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import ObjectMeta

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class DeletionPolicy(StrEnum):
    """Values of the annotation."""

    DRAIN = "drain"
    ORPHAN = "orphan"
    """The clusters stay and have no owner."""
    FORCE = "force"
    """The clusters are deleted at once, with all data of their stores."""


class BaseState(Enum):
    """What is known about the base cluster."""

    THERE = "there"
    GONE = "gone"
    """The API server says so, and it has no pods."""
    UNCERTAIN = "uncertain"
    """The API server does not find it by name, but lists it, or it has pods."""
    OUT_OF_SIGHT = "out of sight"
    """Its namespace does not admit the autoscaler: neither the cluster nor its groups were read."""


class Released(Value):
    """Nothing is left to do: the autoscaler may be deleted."""

    message: str


class DrainFirst(Value):
    """These clusters must be removed first, as if every answer omitted them, ignoring cooldowns."""

    clusters: tuple[str, ...]

    @property
    def message(self) -> str:
        return f"{', '.join(self.clusters)} must be drained and removed first"


class DeletionWaits(Value):
    """The deletion finishes by itself, or cannot continue now: check again."""

    message: str


class EndDrain(Protocol):
    """Cancels the recorded store removal of a cluster. Returns the problem if that is not possible now."""

    async def __call__(self, cluster: TidbCluster, /) -> str: ...


def read_deletion_policy(annotations: Mapping[str, str]) -> DeletionPolicy:
    """The policy. An unknown value counts as the policy that loses no data."""
    written = annotations.get(DELETION_POLICY, "").strip().lower()
    return DeletionPolicy(written) if written in set(DeletionPolicy) else DeletionPolicy.DRAIN


class Finalization:
    """The finalizer of autoscalers, and the deletion of what they created."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._finalizer = Finalizer(client, DRAIN)

    async def ensure_finalizer(self, autoscaler: ObjectMeta, *, component: Component, namespace: str) -> bool:
        """Set the finalizer before a TidbCluster is created in `namespace`. False: the autoscaler is being deleted.

        Stores need it. So do clusters in another namespace, where no owner reference is possible and nothing else would
        ever delete them.
        """
        if self.has_finalizer(autoscaler, component=component, namespace=namespace):
            return True
        return await self._finalizer.add(TidbClusterAutoScaler, autoscaler) in {
            FinalizerOutcome.CHANGED,
            FinalizerOutcome.UNCHANGED,
        }

    def has_finalizer(self, autoscaler: ObjectMeta, *, component: Component, namespace: str) -> bool:
        """Whether the autoscaler that was read needs no finalizer, or has it already."""
        if component is not Component.TIKV and namespace == autoscaler.namespace:
            return True
        return self._finalizer.is_set(autoscaler) and autoscaler.deletion_timestamp is None

    async def finalize(
        self,
        autoscaler: TidbClusterAutoScaler,
        clusters: Sequence[TidbCluster],
        *,
        base: BaseState,
        end_drain: EndDrain,
    ) -> Released | DrainFirst | DeletionWaits:
        """One step of the deletion. `clusters` are those that it created and that still exist."""
        policy = read_deletion_policy(autoscaler.metadata.annotations)
        others = await self._list_owned_beside(autoscaler, clusters)
        if policy is DeletionPolicy.ORPHAN:
            return await self._orphan(autoscaler, [*clusters, *others], end_drain)
        if base is BaseState.UNCERTAIN and policy is not DeletionPolicy.FORCE:
            return DeletionWaits(message=_format_uncertain_base(autoscaler))
        if base is BaseState.OUT_OF_SIGHT and policy is not DeletionPolicy.FORCE:
            return DeletionWaits(message=_format_closed_namespace(autoscaler))
        if not clusters and others and policy is not DeletionPolicy.FORCE:
            return DeletionWaits(message=_format_other_base(others))
        if not clusters:
            return await self._release(autoscaler, "nothing that it created is left")
        if base is BaseState.GONE:
            return await self._delete(autoscaler, clusters)
        if policy is DeletionPolicy.FORCE:
            await self._end_drains(clusters, end_drain)
            return await self._delete(autoscaler, clusters)
        return DrainFirst(clusters=tuple(sorted(cluster.metadata.name for cluster in clusters)))

    async def _list_owned_beside(
        self, autoscaler: TidbClusterAutoScaler, clusters: Sequence[TidbCluster]
    ) -> list[TidbCluster]:
        """Clusters that the garbage collector would delete and that were not created for the present base cluster."""
        known, owner = {cluster.metadata.name for cluster in clusters}, autoscaler.metadata
        entries = [*autoscaler.status.tikv.values(), *autoscaler.status.tidb.values()]
        named = {entry.cluster for entry in entries if entry.cluster}
        listed = await list_clusters(self._client, owner.namespace, known=named)
        return [
            cluster
            for cluster in (raw.view for raw in listed.clusters)
            if cluster.metadata.name not in known
            and any(reference.uid == owner.uid for reference in cluster.metadata.owner_references)
        ]

    async def _orphan(
        self, autoscaler: TidbClusterAutoScaler, clusters: Sequence[TidbCluster], end_drain: EndDrain
    ) -> Released | DeletionWaits:
        if problem := await self._end_drains(clusters, end_drain):
            return DeletionWaits(message=f"the removal of a store cannot be cancelled now: {problem}")
        for cluster in clusters:
            await self._remove_owner_reference(cluster.metadata, owner=autoscaler.metadata.uid)
        return await self._release(autoscaler, "the clusters that it created stay, without an owner")

    async def _delete(
        self, autoscaler: TidbClusterAutoScaler, clusters: Sequence[TidbCluster]
    ) -> Released | DeletionWaits:
        left = [cluster.metadata.name for cluster in clusters if not await self._is_deleted(cluster.metadata)]
        if left:
            return DeletionWaits(message=f"{', '.join(left)} is being deleted")
        return await self._release(autoscaler, "the clusters that it created were deleted without draining")

    async def _end_drains(self, clusters: Sequence[TidbCluster], end_drain: EndDrain) -> str:
        """Cancel all of them, whatever happens to each. Returns the first problem."""
        problems = [
            await end_drain(cluster)
            for cluster in clusters
            if read_drain_record(cluster.metadata.annotations) is not None
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

    async def _remove_owner_reference(self, metadata: ObjectMeta, *, owner: str) -> None:
        """Remove the owner reference. The object is read again, because cancelling a drain has written to it."""
        name, namespace = metadata.name, metadata.namespace
        try:
            found = (await self._client.get(TidbCluster, name, namespace=namespace)).metadata
            others = [owner_reference for owner_reference in found.owner_references if owner_reference.uid != owner]
            if len(others) == len(found.owner_references):
                return
            references = {"ownerReferences": msgspec.to_builtins(others) or None}
            patch = {"metadata": {"resourceVersion": found.resource_version, **references}}
            await self._client.merge_patch(TidbCluster, name, patch, namespace=namespace)
        except NotFound:
            return

    async def _release(self, autoscaler: TidbClusterAutoScaler, message: str) -> Released:
        await self._finalizer.remove(TidbClusterAutoScaler, autoscaler.metadata)
        _log.info("autoscaler.released", namespace=autoscaler.metadata.namespace, name=autoscaler.metadata.name)
        return Released(message=message)


def _format_uncertain_base(autoscaler: TidbClusterAutoScaler) -> str:
    name = autoscaler.spec.cluster.name
    return f"TidbCluster {name} is not found by its name, but it is listed or has pods: its groups are not deleted"


def _format_closed_namespace(autoscaler: TidbClusterAutoScaler) -> str:
    namespace = autoscaler.spec.cluster.namespace
    return (
        f"namespace {namespace} does not allow the autoscaler or cannot be read: its groups there cannot be drained; "
        f"{DELETION_POLICY}: orphan deletes the autoscaler and keeps them"
    )


def _format_other_base(clusters: Sequence[TidbCluster]) -> str:
    first = clusters[0].metadata
    base = first.labels.get(BASE_CLUSTER, "another")
    return f"{first.name} was created for the cluster {base}: set spec.cluster to it, so that it can be drained"
