"""The worker `deleting_kafka`: removes the rows of Kafkas that are gone from their cluster, or never reached one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.fleet.model.statuses import ENDING, KafkaStatus
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.workers.kafka_decisions import Cause, build_removal_step, build_waiting
from plimsoll.fleet.workers.passes import build_work

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.plans import NotDone
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.workers.leased_store import LeasedStore
    from plimsoll.fleet.workers.passes import Step, Work


class DeletingKafkas:
    """A Kafka that an agent runs is removed only after the agent has reported that it is deleted."""

    name: Final = Worker.DELETING_KAFKA

    async def plan_pass(self, store: LeasedStore, *, number: int, now: datetime) -> Work:
        kafkas = await store.list_kafkas(ENDING)
        parts = [_remove(store, kafka) for kafka in kafkas]
        return build_work(self.name, parts, number=number, now=now)


def _remove(store: LeasedStore, kafka: KafkaRequest) -> Step | NotDone:
    if kafka.status is KafkaStatus.DELETING:
        cause = Cause(code="deleted", message="its agent has deleted it", facts={})
        return build_removal_step(store, kafka, cause)
    if not kafka.bootstrap_server_host:
        cause = Cause(code="never_provisioned", message="it never reached a cluster", facts={})
        return build_removal_step(store, kafka, cause)
    message = f"the agent of cluster {kafka.cluster_id} has not reported yet that it is deleted"
    return build_waiting(kafka, Cause(code="not_deleted_yet", message=message, facts={"cluster_id": kafka.cluster_id}))
