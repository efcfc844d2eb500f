"""Capacity of the fleet by locator: how many streaming units clusters offer, and how many are consumed.

docs/design/fleet.md 5.1, 5.2 and 15.1. Kafkas come counted by the database, so that the effort depends on the number
of clusters and sizes and not on the number of Kafkas.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.fleet.model.statuses import DELETING, TERRAFORMING, ClusterStatus, ClusterType
from plimsoll.fleet.planning.machine_pools import estimate_units

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from plimsoll.fleet.model.clusters import Cluster, Locator
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.model.units import KafkaCount

UNKNOWN_BIGGEST: Final = -1
"""The biggest size of an instance type without sizes: it always fits."""


class CapacityRow(Value):
    """One instance type of one cluster. `count`: streaming units that Kafkas of this type consume there."""

    locator: Locator
    id: str
    cluster_id: str
    status: ClusterStatus
    cluster_type: ClusterType
    max_units: int
    count: int
    is_open: bool = True
    """Whether new Kafkas may come: its agent reports, and it is schedulable."""
    coming_units: int = 0
    """What the cluster will offer, while it is being made."""

    @property
    def free(self) -> int:
        return self.max_units - self.count


class UnknownSize(Value):
    """A Kafka with a size that is not configured. It counts with the biggest size of its type."""

    kafka_id: str
    size_id: str


class Summary(Value):
    """The numbers of one locator, over its managed clusters.

    `free` is always `max_units - consumed`: a cluster that gets no new Kafkas counts with what it holds.
    """

    consumed: int
    max_units: int
    biggest: int
    biggest_fits: bool
    creations: int = 0
    """Clusters that are being made."""
    coming_units: int = 0
    """What these clusters will offer."""
    backlog: int = 0
    """Units of accepted Kafkas without a place."""

    @property
    def free(self) -> int:
        return self.max_units - self.consumed

    @property
    def is_ongoing(self) -> bool:
        return self.creations > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """All rows, by cluster and by locator, and what else decisions need of the fleet."""

    clusters: tuple[Cluster, ...]
    """In visiting order: by creation time, then id."""
    rows: tuple[CapacityRow, ...]
    errors: dict[Locator, UnknownSize]
    units_on: dict[str, int]
    """Units of all Kafkas by the provider's id of their cluster, whatever their locator."""
    backlog: dict[Locator, int]
    failures: dict[Locator, tuple[datetime, ...]]
    """When creations failed, in order."""
    ready_at: dict[Locator, datetime]
    """When the last creation became ready."""
    biggest: dict[str, int]
    rows_by_locator: dict[Locator, tuple[CapacityRow, ...]]

    def summarize(self, locator: Locator, *, without: Collection[str] = (), counts_creations: bool = True) -> Summary:
        """The numbers of a locator; `without`: ids of clusters that are left out, or count as marked for deletion."""
        biggest = self.biggest.get(locator.instance_type, UNKNOWN_BIGGEST)
        rows = [
            row
            for row in self.rows_by_locator.get(locator, ())
            if row.cluster_type is ClusterType.MANAGED and row.id not in without and row.status not in DELETING
        ]
        ready = [row for row in rows if row.status is ClusterStatus.READY]
        creations = [row for row in rows if counts_creations and row.status in TERRAFORMING]
        return Summary(
            consumed=sum(row.count for row in ready),
            max_units=sum(row.max_units if row.is_open else row.count for row in ready),
            biggest=biggest,
            biggest_fits=any(row.is_open and row.free >= biggest for row in ready),
            creations=len(creations),
            coming_units=sum(row.coming_units for row in creations),
            backlog=self.backlog.get(locator, 0),
        )

    def is_empty(self, cluster: Cluster) -> bool:
        """Whether no Kafka consumes anything on it, whatever its instance type and region say."""
        return not cluster.cluster_id or self.units_on.get(cluster.cluster_id, 0) == 0


def build_capacity(
    clusters: Iterable[Cluster], counts: Iterable[KafkaCount], policy: FleetPolicy, now: datetime
) -> Capacity:
    """Rows and errors. A row that cannot be counted is an error of its own locator."""
    live = sorted((cluster for cluster in clusters if cluster.deleted_at is None), key=get_visiting_order)
    used = _Units(counts, policy)
    rows = tuple(
        row
        for cluster in live
        if cluster.status is not ClusterStatus.FAILED
        for row in _build_rows(cluster, used, policy, now)
    )
    by_locator: defaultdict[Locator, list[CapacityRow]] = defaultdict(list)
    for row in rows:
        by_locator[row.locator].append(row)
    return Capacity(
        clusters=tuple(live),
        rows=rows,
        errors=used.errors,
        units_on=dict(used.by_cluster),
        backlog=dict(used.backlog),
        failures=_list_failures(live),
        ready_at=_find_last_ready(live),
        biggest={name: instance_type.biggest for name, instance_type in policy.instance_types.items()},
        rows_by_locator={locator: tuple(found) for locator, found in by_locator.items()},
    )


def get_visiting_order(cluster: Cluster) -> tuple[datetime, str]:
    return cluster.created_at, cluster.id


def is_silent(cluster: Cluster, policy: FleetPolicy, now: datetime) -> bool:
    """Whether the last report of the agent is too old. A cluster without any report is not called silent."""
    last = cluster.last_report_at
    return last is not None and (now - last).total_seconds() > policy.agent_silence_s


def get_units(policy: FleetPolicy, instance_type: str, size_id: str) -> int | None:
    """The streaming units of a size; None: it is not configured."""
    size = policy.find_size(instance_type, size_id)
    return None if size is None else size.capacity_consumed


def get_assumed_units(policy: FleetPolicy, instance_type: str, size_id: str) -> int:
    """The units of a size, or of the biggest one if it is not configured; at least one, because the Kafka is there."""
    units = get_units(policy, instance_type, size_id)
    if units is not None:
        return units
    known = policy.instance_types.get(instance_type)
    return max(1, 1 if known is None else known.biggest)


class _Units:
    """Kafkas summed up: by cluster and locator, by cluster, and without a place."""

    def __init__(self, counts: Iterable[KafkaCount], policy: FleetPolicy) -> None:
        self.by_row: defaultdict[tuple[Locator, str], int] = defaultdict(int)
        self.by_cluster: defaultdict[str, int] = defaultdict(int)
        self.backlog: defaultdict[Locator, int] = defaultdict(int)
        self.errors: dict[Locator, UnknownSize] = {}
        for count in sorted(counts, key=lambda count: (count.locator, count.cluster_id, count.size_id)):
            if count.consuming <= 0:
                continue
            if get_units(policy, count.locator.instance_type, count.size_id) is None:
                self.errors.setdefault(count.locator, UnknownSize(kafka_id=count.example_id, size_id=count.size_id))
            units = get_assumed_units(policy, count.locator.instance_type, count.size_id)
            if count.cluster_id:
                self.by_row[count.locator, count.cluster_id] += units * count.consuming
                self.by_cluster[count.cluster_id] += units * count.consuming
            elif count.accepted > 0:
                self.backlog[count.locator] += units * count.accepted


def _build_rows(cluster: Cluster, used: _Units, policy: FleetPolicy, now: datetime) -> Iterable[CapacityRow]:
    is_open = cluster.schedulable and not is_silent(cluster, policy, now)
    for locator in dict.fromkeys(cluster.locators):
        info = cluster.dynamic_capacity_info.get(locator.instance_type)
        yield CapacityRow(
            locator=locator,
            id=cluster.id,
            cluster_id=cluster.cluster_id,
            status=cluster.status,
            cluster_type=cluster.cluster_type,
            max_units=0 if info is None else info.max_units,
            count=used.by_row.get((locator, cluster.cluster_id), 0) if cluster.cluster_id else 0,
            is_open=is_open,
            coming_units=estimate_units(cluster, locator.instance_type, policy),
        )


def _list_failures(clusters: Iterable[Cluster]) -> dict[Locator, tuple[datetime, ...]]:
    found: defaultdict[Locator, list[datetime]] = defaultdict(list)
    for cluster in clusters:
        if cluster.status is ClusterStatus.FAILED and cluster.cluster_type is ClusterType.MANAGED:
            for locator in cluster.locators:
                found[locator].append(cluster.updated_at)
    return {locator: tuple(sorted(times)) for locator, times in found.items()}


def _find_last_ready(clusters: Iterable[Cluster]) -> dict[Locator, datetime]:
    found: dict[Locator, datetime] = {}
    for cluster in clusters:
        if cluster.ready_at is not None and cluster.cluster_type is ClusterType.MANAGED:
            for locator in cluster.locators:
                found[locator] = max(cluster.ready_at, found.get(locator, cluster.ready_at))
    return found
