"""The worker `preparing_kafka`: gives a placed Kafka the names under which its cluster runs it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.fleet.model.statuses import KafkaStatus
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.workers.endpoints import build_bootstrap_host, build_namespace
from plimsoll.fleet.workers.kafka_decisions import (
    Cause,
    build_change_step,
    build_failure_step,
    build_waiting,
    is_older,
)
from plimsoll.fleet.workers.passes import build_work

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.entropy import Entropy
    from plimsoll.core.plans import NotDone
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.ports import KafkaChanges
    from plimsoll.fleet.workers.leased_store import LeasedStore
    from plimsoll.fleet.workers.passes import Step, Work

LONGEST_WAIT: Final = timedelta(minutes=5)


class PreparingKafkas:
    """A cluster that is gone fails a Kafka at once; a missing DNS name fails it five minutes after its creation."""

    name: Final = Worker.PREPARING_KAFKA

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    async def plan_pass(self, store: LeasedStore, *, number: int, now: datetime) -> Work:
        kafkas = await store.list_kafkas({KafkaStatus.PREPARING})
        clusters = await store.list_clusters() if kafkas else ()
        by_cluster_id = {cluster.cluster_id: cluster for cluster in clusters if cluster.cluster_id}
        parts = [self._prepare(store, kafka, by_cluster_id.get(kafka.cluster_id), now) for kafka in kafkas]
        return build_work(self.name, parts, number=number, now=now)

    def _prepare(
        self, store: LeasedStore, kafka: KafkaRequest, cluster: Cluster | None, now: datetime
    ) -> Step | NotDone:
        if cluster is None:
            message = f"its cluster {kafka.cluster_id!r} does not exist"
            cause = Cause(code="no_cluster", message=message, facts={"cluster_id": kafka.cluster_id})
            return build_failure_step(store, kafka, "the cluster of this instance does not exist any more", cause)
        host = build_bootstrap_host(kafka, cluster)
        if not host:
            message = f"the DNS name of cluster/{cluster.id} is not known yet"
            cause = Cause(code="no_cluster_dns", message=message, facts={"cluster": cluster.id})
            if is_older(kafka, LONGEST_WAIT, now):
                return build_failure_step(store, kafka, "the cluster of this instance has no DNS name", cause)
            return build_waiting(kafka, cause, cluster=cluster)
        changes: KafkaChanges = {
            "status": KafkaStatus.PROVISIONING,
            "namespace": build_namespace(kafka),
            "bootstrap_server_host": host,
            "placement_id": self._entropy.generate_uid(),
        }
        message = f"cluster/{cluster.id} has a DNS name: its agent can run the Kafka"
        cause = Cause(code="prepared", message=message, facts={"cluster": cluster.id, "host": host})
        return build_change_step(store, kafka, changes, verb="provision", cause=cause)
