"""Clusters that exist at the OCM when a scenario begins: those of the rows in the file. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.fleet.model.provided import name_cluster
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType
from plimsoll.local.ocm.clusters import LATEST_VERSION, ZONES
from plimsoll.local.ocm.ports import DEFAULT_POOL, ClusterSpec, PoolSpec
from plimsoll.local.ocm.state import ClusterState, OcmCluster

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy

_MACHINE_TYPE = "m5.2xlarge"
"""The machine type of the default pool in a provider without a configuration."""
_NOT_THERE = frozenset({ClusterStatus.ACCEPTED, ClusterStatus.CLEANUP, ClusterStatus.FAILED})


def build_existing_clusters(rows: Iterable[Cluster], policy: FleetPolicy, *, start: datetime) -> tuple[OcmCluster, ...]:
    """Ready clusters with a default pool; the service makes the others, as it does for every row."""
    return tuple(
        _build_cluster(row, policy, start)
        for row in rows
        if row.cluster_id and row.cluster_type is ClusterType.MANAGED and row.status not in _NOT_THERE
    )


def _build_cluster(row: Cluster, policy: FleetPolicy, start: datetime) -> OcmCluster:
    zones = tuple(f"{row.region}{zone}" for zone in (ZONES if row.multi_az else ZONES[:1]))
    machines = policy.machines.get(row.cloud_provider)
    pool = PoolSpec(
        id=DEFAULT_POOL,
        machine_type=_MACHINE_TYPE if machines is None else machines.cluster_wide.machine_type,
        min_replicas=len(zones) if machines is None else machines.cluster_wide.min_nodes,
        max_replicas=len(zones) if machines is None else machines.cluster_wide.max_nodes,
        zones=zones,
    )
    name = name_cluster(row.id)
    spec = ClusterSpec(
        id=row.cluster_id,
        name=name,
        cloud_provider=row.cloud_provider,
        region=row.region,
        zones=zones,
        version=LATEST_VERSION,
        dns=row.cluster_dns or f"apps.{name}.fleet.example.com",
        default_pool=pool,
    )
    return OcmCluster(
        spec=spec,
        external_id=row.external_id or f"external-{row.id}",
        created_at=row.created_at,
        since=start,
        multi_az=row.multi_az,
        state=ClusterState.READY,
        is_made=True,
    )
