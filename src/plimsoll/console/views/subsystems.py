"""Kafka clusters with their rebalances, and TiDB autoscalers with their groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.kafka.reporting.cluster_overview import describe_clusters
from plimsoll.kube.errors import ApiCallFailed, NotFound
from plimsoll.objects.api.kafka import Kafka, KafkaNodePool, KafkaRebalance
from plimsoll.objects.api.tidb import TidbClusterAutoScaler
from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import Condition


class SubsystemView:
    """`/api/kafka` and `/api/tidb`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list_kafka(self, _request: Request) -> Response:
        try:
            kafkas = await self._client.list(Kafka)
            rebalances = await self._client.list(KafkaRebalance)
            pools = await self._client.list(KafkaNodePool)
        except NotFound:
            return build_json_response({"clusters": None, "problem": "the cluster does not define Kafka"})
        except ApiCallFailed as error:
            return build_json_response({"clusters": None, "problem": str(error)})
        clusters = [
            {**msgspec.to_builtins(cluster), "pools": _list_pools(pools.items, cluster.namespace, cluster.name)}
            for cluster in describe_clusters(kafkas.items, rebalances.items)
        ]
        return build_json_response({"clusters": clusters, "problem": ""})

    async def list_tidb(self, _request: Request) -> Response:
        try:
            found = await self._client.list(TidbClusterAutoScaler)
        except NotFound:
            return build_json_response({"autoscalers": None, "problem": "the cluster does not define TiDB autoscalers"})
        except ApiCallFailed as error:
            return build_json_response({"autoscalers": None, "problem": str(error)})
        return build_json_response(
            {"autoscalers": [_describe_autoscaler(autoscaler) for autoscaler in found.items], "problem": ""}
        )


def _list_pools(pools: Sequence[KafkaNodePool], namespace: str, cluster: str) -> list[dict[str, Any]]:
    return [
        {
            "name": pool.metadata.name,
            "roles": pool.spec.roles,
            "replicas": pool.spec.replicas,
            "nodeIds": pool.status.node_ids,
        }
        for pool in pools
        if pool.metadata.namespace == namespace and pool.metadata.labels.get("strimzi.io/cluster") == cluster
    ]


def _describe_autoscaler(autoscaler: TidbClusterAutoScaler) -> dict[str, Any]:
    status = autoscaler.status
    groups = [
        {
            "component": component,
            "group": name,
            "replicas": group.replicas,
            "wanted": group.desired_replicas,
            "direction": group.last_direction,
            "reason": group.reason,
            "at": group.last_auto_scaling_timestamp,
        }
        for component, by_name in (("tikv", status.tikv), ("tidb", status.tidb))
        for name, group in by_name.items()
    ]
    return {
        "ref": f"tidbclusterautoscaler/{autoscaler.metadata.namespace}/{autoscaler.metadata.name}",
        "cluster": autoscaler.spec.cluster.name,
        "conditions": [_describe_condition(condition) for condition in status.conditions],
        "groups": groups,
    }


def _describe_condition(condition: Condition) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }
