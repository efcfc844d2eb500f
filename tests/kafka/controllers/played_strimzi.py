"""A played cluster operator: writes what Strimzi writes for one Kafka with one pool of brokers, through any API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]


class KubernetesApi(Protocol):
    """An API server. Paths are those of its REST API."""

    def read(self, path: str) -> Json | None:
        """None: there is no such object."""
        ...

    def create(self, path: str, body: Json) -> None: ...

    def merge(self, path: str, body: Json) -> None:
        """A merge patch."""
        ...


class PlayedStrimzi:
    """The order of Strimzi's reconcile: shrink the pod set, write the statuses of pools, grow the pod set, its status.

    `hosts_replicas` is its check before a scale-down: a broker that holds replicas stays, with Strimzi's Warning.
    """

    def __init__(
        self,
        api: KubernetesApi,
        *,
        cluster: str,
        pool: str,
        namespace: str,
        hosts_replicas: Callable[[int], bool],
        build_pod: Callable[[int, Json], Json],
        cluster_id: str = "x",
    ) -> None:
        self._api = api
        self._cluster = cluster
        self._pool = pool
        self._name = f"{cluster}-{pool}"
        self._hosts_replicas = hosts_replicas
        self._build_pod = build_pod
        self._cluster_id = cluster_id
        kafka = f"/apis/kafka.strimzi.io/v1/namespaces/{namespace}"
        self._kafka_path = f"{kafka}/kafkas/{cluster}"
        self._pool_path = f"{kafka}/kafkanodepools/{pool}"
        self._sets = f"/apis/core.strimzi.io/v1/namespaces/{namespace}/strimzipodsets"

    def reconcile(self, *, ends_after_pool_status: bool = False) -> None:
        """One reconcile; `ends_after_pool_status`: the operator is stopped in the middle, as a crash does."""
        pool = self._api.read(self._pool_path)
        assert pool is not None
        desired, present = pool["spec"]["replicas"], list(pool.get("status", {}).get("nodeIds", []))
        added = [number for number in range(100) if number not in present][: max(0, desired - len(present))]
        removed = sorted(present)[desired:]
        is_blocked = any(self._hosts_replicas(broker) for broker in removed)
        kept = sorted(present) if is_blocked else sorted({*present, *added} - set(removed))
        if removed and not is_blocked:
            self._write_pod_set(kept)
        self._api.merge(f"{self._pool_path}/status", {"status": self._build_pool_status(pool, kept)})
        if ends_after_pool_status:
            return
        self._write_pod_set(kept)
        self._api.merge(f"{self._kafka_path}/status", {"status": self._build_kafka_status(is_blocked=is_blocked)})

    def _write_pod_set(self, ids: list[int]) -> None:
        labels = {
            "strimzi.io/cluster": self._cluster,
            "strimzi.io/pool-name": self._pool,
            "strimzi.io/kind": "Kafka",
            "strimzi.io/broker-role": "true",
            "strimzi.io/controller-role": "false",
        }
        selector = {"strimzi.io/cluster": self._cluster, "strimzi.io/pool-name": self._pool}
        spec = {"selector": {"matchLabels": selector}, "pods": [self._build_pod(number, labels) for number in ids]}
        if self._api.read(f"{self._sets}/{self._name}") is not None:
            self._api.merge(f"{self._sets}/{self._name}", {"spec": spec})
            return
        body = {
            "apiVersion": "core.strimzi.io/v1",
            "kind": "StrimziPodSet",
            "metadata": {"name": self._name, "labels": labels},
            "spec": spec,
        }
        self._api.create(self._sets, body)

    def _build_pool_status(self, pool: Json, ids: list[int]) -> Json:
        return {
            "nodeIds": ids,
            "replicas": len(ids),
            "roles": pool["spec"]["roles"],
            "clusterId": self._cluster_id,
            "labelSelector": f"strimzi.io/cluster={self._cluster},strimzi.io/pool-name={self._pool}",
            "observedGeneration": pool["metadata"]["generation"],
        }

    def _build_kafka_status(self, *, is_blocked: bool) -> Json:
        kafka = self._api.read(self._kafka_path)
        assert kafka is not None
        ready = {"type": "Ready", "status": "True"}
        warning = {
            "type": "Warning",
            "status": "True",
            "reason": "ScaleDownPreventionCheck",
            "message": f"Reverting scale-down of KafkaNodePool {self._pool}",
        }
        return {
            "clusterId": self._cluster_id,
            "kafkaNodePools": [{"name": self._pool}],
            "observedGeneration": kafka["metadata"]["generation"],
            "conditions": [ready, *([warning] if is_blocked else [])],
        }
