"""The worker `ready_kafka`: reports ready Kafkas that may not be reachable. It changes nothing.

The statuses of ready Kafkas come from agents. An agent that is silent, or a cluster that is no longer ready, leaves the
last status standing; the journal says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import NotDone
from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.planning.capacity import is_silent
from plimsoll.fleet.planning.plan_parts import build_reason, refer_to_cluster, refer_to_kafka
from plimsoll.fleet.workers.passes import build_work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.workers.leased_store import LeasedStore
    from plimsoll.fleet.workers.passes import Work


class ReadyKafkas:
    """Kafkas are read only for clusters with a problem: a fleet has many, and most are well."""

    name: Final = Worker.READY_KAFKA

    def __init__(self, policy: FleetPolicy) -> None:
        self._policy = policy

    async def plan_pass(self, store: LeasedStore, *, number: int, now: datetime) -> Work:
        parts = []
        for cluster, code, message in self._list_problems(await store.list_heard_clusters(), now):
            kafkas = await store.list_kafkas({KafkaStatus.READY}, cluster_id=cluster.cluster_id)
            if kafkas:
                reason = build_reason(code, message, {"cluster": cluster.id, "status": cluster.status.value})
                about = tuple(refer_to_kafka(kafka.id) for kafka in kafkas)
                concerns = (refer_to_cluster(cluster.id),)
                parts.append(NotDone(what="not confirmed", about=about, reason=reason, concerns=concerns))
        return build_work(self.name, parts, number=number, now=now)

    def _list_problems(self, clusters: tuple[Cluster, ...], now: datetime) -> Iterator[tuple[Cluster, str, str]]:
        for cluster in clusters:
            if not cluster.cluster_id:
                continue
            if cluster.status is not ClusterStatus.READY:
                yield cluster, "cluster_not_ready", f"cluster/{cluster.id} is {cluster.status.value}"
            elif is_silent(cluster, self._policy, now):
                yield cluster, "agent_silent", f"the agent of cluster/{cluster.id} is silent"
