"""Gauges about rows: clusters and Kafkas by status, their ages, and capacity. Pure.

A Kafka that is `ready` has no series of its own, only its count: a fleet has a hundred thousand of them, and each
scrape would carry them all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, KafkaStatus, ProviderType
from plimsoll.fleet.planning.problems import list_cluster_problems

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.planning.capacity import Capacity, CapacityRow
    from plimsoll.fleet.workers.general import ObservedRows

    Labels = tuple[str, ...]
    Values = dict[Labels, float]

_MAKING: Final = (ProviderType.OCM, ProviderType.CLUSTER_API)
"""The providers that make clusters."""


@dataclass(slots=True, kw_only=True)
class RowGauges:
    """Values by labels."""

    cluster_statuses: Values = field(default_factory=dict)
    cluster_ages_s: Values = field(default_factory=dict)
    units_per_cluster: Values = field(default_factory=dict)
    capacity_max: Values = field(default_factory=dict)
    capacity_used: Values = field(default_factory=dict)
    capacity_available: Values = field(default_factory=dict)
    kafka_statuses: Values = field(default_factory=dict)
    kafka_infos: Values = field(default_factory=dict)
    kafka_ages_s: Values = field(default_factory=dict)
    agent_silences_s: Values = field(default_factory=dict)
    orphans: Values = field(default_factory=dict)
    problems: Values = field(default_factory=dict)


def build_row_gauges(rows: ObservedRows, policy: FleetPolicy) -> RowGauges:
    counts: Values = {(status.value,): float(rows.statuses.get(status, 0)) for status in KafkaStatus}
    gauges = RowGauges(kafka_statuses=counts)
    _add_clusters(gauges, rows.capacity, rows.at)
    _add_problems(gauges, rows, policy)
    for row in rows.capacity.rows:
        if row.status is not ClusterStatus.ACCEPTED:
            _add_capacity(gauges, row, policy)
    for kafka in rows.unsettled:
        key = (kafka.status.value, kafka.id, kafka.cluster_id)
        gauges.kafka_infos[key] = 1.0
        gauges.kafka_ages_s[key] = _measure_age_s(kafka.created_at, rows.at)
    return gauges


def _add_clusters(gauges: RowGauges, capacity: Capacity, now: datetime) -> None:
    counts = Counter(cluster.status for cluster in capacity.clusters)
    gauges.cluster_statuses = {(status.value,): float(counts[status]) for status in ClusterStatus}
    for cluster in capacity.clusters:
        key = (cluster.id, cluster.cluster_id, cluster.status.value)
        gauges.cluster_ages_s[key] = _measure_age_s(cluster.created_at, now)
        if cluster.cluster_id:
            _add_units(gauges, cluster, capacity.units_on.get(cluster.cluster_id, 0), now)


def _add_problems(gauges: RowGauges, rows: ObservedRows, policy: FleetPolicy) -> None:
    """Each provider that makes clusters has a number of orphans; a cluster without a problem has no series."""
    orphans = Counter(orphan.provider for orphan in rows.orphans)
    gauges.orphans = {(provider.value,): float(orphans[provider.value]) for provider in _MAKING}
    problems = Counter(
        (cluster.id, problem.code)
        for cluster in rows.capacity.clusters
        for problem in list_cluster_problems(cluster, agent_silence_s=policy.agent_silence_s, now=rows.at)
    )
    gauges.problems = {key: float(number) for key, number in problems.items()}


def _add_units(gauges: RowGauges, cluster: Cluster, units: int, now: datetime) -> None:
    gauges.units_per_cluster[cluster.cluster_id, cluster.external_id] = float(units)
    if cluster.last_report_at is not None:
        gauges.agent_silences_s[cluster.cluster_id,] = _measure_age_s(cluster.last_report_at, now)


def _add_capacity(gauges: RowGauges, row: CapacityRow, policy: FleetPolicy) -> None:
    """The limit of a region bounds what managed clusters offer; an enterprise cluster has only its own maximum."""
    offer = policy.find_offer(row.locator) if row.cluster_type is ClusterType.MANAGED else None
    limit = None if offer is None else offer.limit
    most = row.max_units if limit is None else min(row.max_units, limit)
    key = (row.locator.region, row.locator.instance_type, row.cluster_id, row.locator.cloud_provider)
    gauges.capacity_max[key] = float(most)
    gauges.capacity_used[key] = float(row.count)
    gauges.capacity_available[key] = float(max(0, most - row.count))


def _measure_age_s(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds())
