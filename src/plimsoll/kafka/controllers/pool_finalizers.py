"""The finalizer on node pools: a pool that is deleted stays until its brokers are empty and its pods are gone (D18).

Only the operator mode sets it. It is set before a pool has nodes, and removed with the Kafka: then nothing is left to
hold. A pool that lost it all the same is missing while its pods exist, and the Kafka has a warning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plimsoll.core.plans import Reason
from plimsoll.kafka.controllers.errors import ReconcileFailed
from plimsoll.kafka.model.rebalances import UNREADABLE
from plimsoll.kafka.wire.names import CLUSTER_LABEL, NODE_POOL_FINALIZER
from plimsoll.kube.controller.finalizers import Finalizer
from plimsoll.kube.requests.options import Selection
from plimsoll.kube.undecoded_objects import read_undecoded
from plimsoll.objects.api.kafka import KafkaNodePool
from plimsoll.objects.codec.decoding import DecodedList

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kafka.controllers.cluster_observer import ObservedCluster
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import ObjectMeta


class PoolFinalizers:
    """Sets and removes the finalizer of the pools of a cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._finalizer = Finalizer(client, NODE_POOL_FINALIZER)

    async def add(self, observed: ObservedCluster, names: Iterable[str]) -> ObservedCluster:
        """Set it on the pools of these names. Gives the cluster with the versions that they have now.

        A pool that has changed since it was read is a conflict, which ends the reconcile: its nodes would be those of
        the pool before.
        """
        pools = dict(observed.pools)
        for name in names:
            metadata = pools[name].metadata
            if self._finalizer.is_set(metadata) or metadata.deletion_timestamp is not None:
                continue
            finalizers = [*metadata.finalizers, NODE_POOL_FINALIZER]
            patch = {"metadata": {"resourceVersion": metadata.resource_version, "finalizers": finalizers}}
            pools[name] = await self._client.merge_patch(KafkaNodePool, name, patch, namespace=metadata.namespace)
        return replace(observed, pools=pools)

    async def remove(self, pool: KafkaNodePool) -> None:
        await self._remove(pool.metadata)

    async def remove_from_all(self, namespace: str, cluster: str) -> DecodedList[KafkaNodePool]:
        """The Kafka is gone. Gives its pools. `cluster` empty: pools that belong to no Kafka.

        Without a cluster, all pools of the namespace that cannot be decoded are given: no other list may have them.
        """
        labels = f"{CLUSTER_LABEL}={cluster}" if cluster else ""
        listed = await self._client.list(KafkaNodePool, Selection(namespace=namespace, labels=labels))
        if listed.problem:
            message = f"kafkanodepools of {namespace} cannot be read: {listed.problem}"
            raise ReconcileFailed(Reason(code=UNREADABLE, message=message))
        pools = tuple(pool for pool in listed.items if _get_cluster(pool.metadata) == cluster)
        for pool in pools:
            await self._remove(pool.metadata)
        for bad in listed.bad:
            found = await read_undecoded(self._client, KafkaNodePool, bad.name, namespace=bad.namespace)
            if found is not None and _get_cluster(found.metadata) == cluster:
                await self._remove(found.metadata)
        return DecodedList(items=pools, bad=listed.bad)

    async def _remove(self, metadata: ObjectMeta) -> None:
        if self._finalizer.is_set(metadata):
            await self._finalizer.remove(KafkaNodePool, metadata)


def _get_cluster(metadata: ObjectMeta) -> str:
    return metadata.labels.get(CLUSTER_LABEL, "")
