"""The Kafkas, node pools, broker pods and nodes of each cluster: a shared view over informers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.controller.enqueue import list_states
from plimsoll.kube.informer.events import Key
from plimsoll.local.kafka.broker_pods import (
    CLUSTER_LABEL,
    CONTROLLER_LABEL,
    read_broker_pod,
    read_cluster_key,
    read_log_dirs,
    read_node_cluster,
    read_topology_key,
)
from plimsoll.objects.api.kafka import Kafka, KafkaNodePool
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kube.informer.events import Change
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.local.kafka.broker_pods import BrokerPod

_BY_CLUSTER: Final = "kafka cluster"
_NODES_BY_CLUSTER: Final = "nodes of a kafka cluster"
_BROKER: Final = "broker"
_CONTROLLER: Final = "controller"


class KafkaTopology:
    """Answers from caches. A key is a Kafka's."""

    def __init__(self, informers: SharedInformerFactory) -> None:
        self.kafkas = informers.get_informer(Kafka)
        self.pools = informers.get_informer(KafkaNodePool)
        self.pods = informers.get_informer(Pod)
        self._nodes = informers.get_informer(Node)
        self.pods.add_index(_BY_CLUSTER, _list_clusters_of_pod)
        self.pods.add_index(_NODES_BY_CLUSTER, _list_clusters_of_node)
        self.pools.add_index(_BY_CLUSTER, _list_clusters_of_pool)

    @property
    def sources(self) -> tuple[Any, ...]:
        """Caches that must be in sync, and whose changes wake nothing by themselves."""
        return (self.pools, self._nodes)

    def find_kafka(self, key: Key) -> Kafka | None:
        return self.kafkas.cache.get(key.name, key.namespace)

    def find_uid(self, key: Key) -> str:
        """Find the uid of the Kafka, also if it cannot be decoded; empty: there is none."""
        found = self.find_kafka(key)
        if found is not None:
            return found.metadata.uid
        bad = self.kafkas.cache.bad.get(key)
        return "" if bad is None else bad.uid

    def list_keys(self) -> list[Key]:
        cache = self.kafkas.cache
        return [
            *(Key(kafka.metadata.namespace, kafka.metadata.name) for kafka in cache),
            *(Key(*key) for key in cache.bad),
        ]

    def list_broker_pods(self, key: Key) -> list[BrokerPod]:
        """In the order of ids. Of two pods with one id a ready one counts."""
        found: dict[int, BrokerPod] = {}
        for pod in self.pods.cache.list_by_index(_BY_CLUSTER, key):
            broker = read_broker_pod(pod)
            if broker is not None and (broker.id not in found or broker.is_ready):
                found[broker.id] = broker
        return sorted(found.values(), key=lambda broker: broker.id)

    def find_rack(self, key: Key, broker: BrokerPod) -> str:
        """The label of its node that the Kafka names; its zone, if the Kafka names none."""
        kafka = self.find_kafka(key)
        label = read_topology_key(None if kafka is None else kafka.spec.kafka.rack)
        node = self._nodes.cache.get(broker.node) if broker.node else None
        return "" if node is None else node.metadata.labels.get(label, "")

    def find_log_dirs(self, key: Key, broker: BrokerPod) -> dict[str, int]:
        return read_log_dirs(self.find_storage(key, broker), broker.id)

    def find_storage(self, key: Key, broker: BrokerPod) -> Any:
        """The `storage` of its pool, or of a Kafka without pools."""
        pool = self.pools.cache.get(broker.pool, key.namespace)
        if pool is not None and pool.metadata.labels.get(CLUSTER_LABEL) == key.name:
            return pool.spec.storage
        kafka = self.find_kafka(key)
        return None if kafka is None else kafka.spec.kafka.storage

    def list_controllers(self, key: Key) -> list[int]:
        """The ids of the controllers that have a pod."""
        pods = self.pods.cache.list_by_index(_NODES_BY_CLUSTER, key)
        nodes = [read_broker_pod(pod) for pod in pods if pod.metadata.labels.get(CONTROLLER_LABEL) == "true"]
        return sorted({node.id for node in nodes if node is not None})

    def count_desired_brokers(self, key: Key) -> int:
        """The brokers that the specs ask for."""
        return self._count_desired(key, _BROKER)

    def count_desired_controllers(self, key: Key) -> int:
        """The controllers that the specs ask for."""
        return self._count_desired(key, _CONTROLLER)

    def _count_desired(self, key: Key, role: str) -> int:
        pools = self.pools.cache.list_by_index(_BY_CLUSTER, key)
        nodes = sum(max(pool.spec.replicas, 0) for pool in pools if role in pool.spec.roles)
        kafka = self.find_kafka(key)
        return nodes or (kafka.spec.kafka.replicas or 0 if kafka is not None else 0)

    def find_changed_clusters(self, change: Change[Pod]) -> Iterable[Key]:
        """The clusters whose broker a changed pod is or was."""
        keys: dict[Key, None] = {}
        for state in list_states(change):
            key = read_cluster_key(state) if isinstance(state, Pod) else None
            if key is not None:
                keys[key] = None
        return keys


def _list_clusters_of_pod(pod: Pod) -> tuple[Key, ...]:
    key = read_cluster_key(pod)
    return () if key is None else (key,)


def _list_clusters_of_node(pod: Pod) -> tuple[Key, ...]:
    key = read_node_cluster(pod)
    return () if key is None else (key,)


def _list_clusters_of_pool(pool: KafkaNodePool) -> tuple[Key, ...]:
    cluster = pool.metadata.labels.get(CLUSTER_LABEL, "")
    return (Key(pool.metadata.namespace, cluster),) if cluster else ()
