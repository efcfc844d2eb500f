"""Reserved instances of a cluster, which keep room for Kafkas to come (docs/design/fleet.md 4)."""

from __future__ import annotations

from collections import Counter
from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.plans import NotDone, Plan
from plimsoll.core.values import Value
from plimsoll.fleet.model.statuses import LISTED_FOR_AGENTS, ClusterStatus
from plimsoll.fleet.planning.plan_parts import build_plan, build_reason, refer_to_cluster
from plimsoll.fleet.planning.strimzi_versions import find_latest_versions
from plimsoll.fleet.wire.managed_kafkas import RESERVED_PREFIX, build_reserved_kafka

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.model.policy import FleetPolicy

REPORTED_STATUSES: Final = ("ready", "error", "unknown", "deleted", "rejected", "installing", "rejectedClusterFull")
"""The statuses of reserved instances in metrics. All are counted, so that a count falls to 0 and does not stay."""


class ReservedKafkas(Value):
    """The reserved instances of one cluster in wire form, or why there are none.

    `reason` is empty if nothing is wrong: also where nothing is to be reserved.
    """

    cluster_id: str
    names: tuple[str, ...] = ()
    items: tuple[dict[str, Any], ...] = ()
    reason: str = ""
    message: str = ""

    def build_plan(self, number: int, now: datetime) -> Plan:
        """Only what cannot be reserved is a decision: the items are listed anew with every poll."""
        if not self.reason:
            return build_plan(number, now, ())
        reason = build_reason(self.reason, self.message, {})
        about = (refer_to_cluster(self.cluster_id),)
        return build_plan(number, now, (NotDone(what="without reserve", about=about, reason=reason),))


def list_reserved(cluster: Cluster, policy: FleetPolicy) -> ReservedKafkas:
    """Numbers 1 to n per instance type of the cluster, in stored order. A cluster that is not ready has none."""
    wanted = [
        (instance_type, reserve)
        for instance_type in dict.fromkeys(cluster.instance_types)
        if (reserve := policy.reserves.get(instance_type)) is not None and reserve.instances > 0
    ]
    if cluster.status is not ClusterStatus.READY or not wanted:
        return ReservedKafkas(cluster_id=cluster.id)
    versions = find_latest_versions(cluster)
    if versions is None:
        message = f"cluster/{cluster.id} has no Strimzi that is ready with Kafka versions; nothing is reserved"
        return ReservedKafkas(cluster_id=cluster.id, reason="no_ready_strimzi", message=message)
    items = []
    for instance_type, reserve in wanted:
        size = policy.find_size(instance_type, reserve.size_id)
        if size is not None:
            numbers = range(1, reserve.instances + 1)
            items += [build_reserved_kafka(instance_type, number, size=size, versions=versions) for number in numbers]
    return ReservedKafkas(cluster_id=cluster.id, names=tuple(item["id"] for item in items), items=tuple(items))


def is_listed(kafka: KafkaRequest, cluster: Cluster) -> bool:
    """Whether the agent of this cluster is asked to run, or to remove, a Kafka."""
    return (
        bool(cluster.cluster_id)
        and kafka.cluster_id == cluster.cluster_id
        and bool(kafka.bootstrap_server_host)
        and kafka.status in LISTED_FOR_AGENTS
    )


def is_reserved(kafka_id: str) -> bool:
    """Whether an id in a report is that of a reserved instance."""
    return kafka_id.startswith(RESERVED_PREFIX)


def count_reserved_reports(
    cluster: Cluster, reported: Mapping[str, str]
) -> tuple[dict[tuple[str, str], int], list[str]]:
    """Reserved instances by instance type and status, zeros included; and ids that are none of this cluster.

    `reported` has the status of each id, as `reports.read_condition` gives it.
    """
    types = cluster.instance_types
    counted: Counter[tuple[str, str]] = Counter()
    strange = []
    for kafka_id, status in reported.items():
        parts = kafka_id.split("-")
        if len(parts) < 4 or parts[2] not in types:
            strange.append(kafka_id)
        else:
            counted[parts[2], status] += 1
    return {(name, status): counted[name, status] for name in types for status in REPORTED_STATUSES}, strange
