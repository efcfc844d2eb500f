"""Another size for a Kafka that runs (docs/design/fleet.md, amendment E16)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.fleet.api.errors import Code, RequestRefused
from plimsoll.fleet.model.statuses import ClusterType, KafkaStatus
from plimsoll.fleet.planning.placement import build_cluster_room
from plimsoll.fleet.planning.region_check import Refused, build_size_check
from plimsoll.fleet.ports import InsertResult

if TYPE_CHECKING:
    from plimsoll.fleet.api.ports import ApiPorts
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.model.policy import Size


class PlanChange:
    """Changes the size of a row under the lock of its locator. The agent gets it with its next list."""

    def __init__(self, ports: ApiPorts) -> None:
        self._ports = ports
        self._policy = ports.policy

    async def apply(self, kafka: KafkaRequest, plan: str) -> None:
        """Raises `RequestRefused`."""
        size = self._find_size(kafka, plan)
        if kafka.status is not KafkaStatus.READY:
            raise RequestRefused(Code.CONFLICT, f"the Kafka is {kafka.status}; its plan changes only while it is ready")
        if size.id == kafka.size_id:
            return
        is_upgrading = kafka.kafka_upgrading or kafka.strimzi_upgrading or kafka.kafka_ibp_upgrading
        if is_upgrading or kafka.resizing_to_units:
            raise RequestRefused(Code.CONFLICT, "another change of the Kafka is running")
        # A smaller size needs some room beside what is stored: 1.2 times, in whole numbers.
        if kafka.bytes_stored * 12 > size.max_data_retention_size_bytes * 10:
            raise RequestRefused(
                Code.PLAN,
                f"the Kafka stores {kafka.bytes_stored} bytes, too much for the {size.max_data_retention_size} of "
                f"{kafka.instance_type}.{size.id}",
            )
        cluster = await self._ports.store.find_cluster(kafka.cluster_id)
        if cluster is None:
            raise RequestRefused(Code.CONFLICT, "the Kafka is on no cluster")
        is_managed = cluster.cluster_type is ClusterType.MANAGED
        check = build_size_check(
            self._policy, kafka.locator, size_id=kafka.size_id, wanted=size, counts_in_region=is_managed
        )
        if isinstance(check, Refused):
            raise RequestRefused(Code.CAPACITY_EXHAUSTED, check.message)
        room = build_cluster_room(cluster, kafka.instance_type, self._policy)
        result = await self._ports.store.change_size(
            kafka, size.id, check, room=room, retention=size.max_data_retention_size
        )
        if result is InsertResult.OVERTAKEN:
            raise RequestRefused(Code.CONFLICT, "the Kafka changed meanwhile")
        if result is not InsertResult.DONE:
            full = "its cluster" if result is InsertResult.CLUSTER_FULL else "the region"
            raise RequestRefused(Code.CAPACITY_EXHAUSTED, f"{full} has no room for {kafka.instance_type}.{size.id}")

    def _find_size(self, kafka: KafkaRequest, plan: str) -> Size:
        instance_type, _, size_id = plan.partition(".")
        if instance_type != kafka.instance_type:
            raise RequestRefused(Code.PLAN, f"plan {plan!r} is not one of instance type {kafka.instance_type}")
        size = self._policy.find_size(instance_type, size_id)
        if size is None:
            raise RequestRefused(Code.PLAN, f"plan {plan!r} is not supported")
        return size
