"""The finalizer on node pools: a pool that is deleted stays until its brokers are empty and its pods are gone (D18).

Only the operator mode sets it. It is set before a pool has nodes, and removed with the Kafka: then nothing is left to
hold. A pool that lost it all the same is missing while its pods exist, and the Kafka has a warning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plimsoll.core.plans import Reason
from plimsoll.kafka.controllers.errors import ReconcileFailed
from plimsoll.kafka.wire.names import CLUSTER_LABEL, NODE_POOL_FINALIZER
from plimsoll.kube.controller.finalizers import Finalizer
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.kafka import KafkaNodePool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kafka.controllers.cluster_observer import ObservedCluster
    from plimsoll.kube.client import Client


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
        if self._finalizer.is_set(pool.metadata):
            await self._finalizer.remove(KafkaNodePool, pool.metadata)

    async def remove_from_all(self, namespace: str, cluster: str) -> tuple[KafkaNodePool, ...]:
        """The Kafka is gone. Gives its pools. `cluster` empty: pools that belong to no Kafka."""
        labels = f"{CLUSTER_LABEL}={cluster}" if cluster else f"!{CLUSTER_LABEL}"
        listed = await self._client.list(KafkaNodePool, Selection(namespace=namespace, labels=labels))
        if listed.problem:
            message = f"kafkanodepools of {namespace} cannot be read: {listed.problem}"
            raise ReconcileFailed(Reason(code="UnreadableObject", message=message))
        for pool in listed.items:
            await self.remove(pool)
        return tuple(listed.items)
