"""TidbClusters as they are written to: each write on the version of the one before, so that nobody is written over.

Acting writes replicas and what goes with them, the drainer its marks; both through one `WrittenCluster` a pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.tidb import TidbCluster
from plimsoll.tidb.planning import marks
from plimsoll.tidb.planning.leaving import LOW_SPACE, Leaving, delete_slots_of

if TYPE_CHECKING:
    from fractions import Fraction

    from plimsoll.kube.client import Client
    from plimsoll.objects.meta import ObjectMeta
    from plimsoll.tidb.planning.passes import DrainMark

Json = dict[str, Any]

_DELETE_SLOTS: Final = "tikv.tidb.pingcap.com/delete-slots"


class WrittenCluster:
    """One of them, perhaps written several times."""

    def __init__(self, client: Client, metadata: ObjectMeta) -> None:
        self.version = metadata.resource_version
        self._client = client
        self._metadata = metadata

    async def patch(self, body: Json) -> None:
        """Merge; raises `Conflict` if somebody else wrote since."""
        metadata = {**body.get("metadata", {}), **({"resourceVersion": self.version} if self.version else {})}
        whole = {**body, **({"metadata": metadata} if metadata else {})}
        name, namespace = self._metadata.name, self._metadata.namespace
        written = await self._client.merge_patch(TidbCluster, name, whole, namespace=namespace)
        self.version = written.metadata.resource_version

    async def remember(self, mark: DrainMark | None, /) -> None:
        """A `draining.MarkKeeper`."""
        text = None if mark is None else marks.written_mark(mark)
        await self.patch({"metadata": {"annotations": {marks.DRAIN: text}}})


def leaving_from(cluster: TidbCluster, *, highest_usage: Fraction = LOW_SPACE) -> Leaving:
    """The cluster as the drainer is told of it."""
    own, metadata = cluster.spec.tikv, cluster.metadata
    return Leaving(
        namespace=metadata.namespace,
        cluster=metadata.name,
        replicas=own.replicas if own is not None else 0,
        mark=marks.read_mark(metadata.annotations),
        highest_usage=highest_usage,
        delete_slots=delete_slots_of(metadata.annotations.get(_DELETE_SLOTS)),
    )
