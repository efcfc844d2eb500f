"""Builders of rows and policies of the fleet manager, with defaults."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from plimsoll.fleet.model.clusters import Cluster, DynamicCapacity, Locator, StrimziVersion, VersionItem
from plimsoll.fleet.model.kafkas import KafkaRequest
from plimsoll.fleet.model.policy import (
    CloudProvider,
    FleetPolicy,
    InstanceType,
    MachinePool,
    ManualCluster,
    ProviderMachines,
    Region,
    RegionType,
    Size,
)
from plimsoll.fleet.model.statuses import ClusterStatus, ProviderType, ScalingType
from plimsoll.fleet.model.units import KafkaCount

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STANDARD = Locator("aws", "us-east-1", "standard")
DEVELOPER = Locator("aws", "us-east-1", "developer")


def make_size(size_id: str, units: int) -> Size:
    return Size(
        id=size_id,
        display_name=size_id,
        ingress_throughput_per_sec="50Mi",
        egress_throughput_per_sec="100Mi",
        total_max_connections=9000,
        max_connection_attempts_per_sec=100,
        max_data_retention_size=f"{1000 * units}Gi",
        max_data_retention_size_bytes=1000 * units << 30,
        max_data_retention_period="P14D",
        max_partitions=1500,
        max_message_size="1Mi",
        min_in_sync_replicas=2,
        replication_factor=3,
        quota_consumed=units,
        quota_type="RHOSAK",
        capacity_consumed=units,
        supported_az_modes=("multi",),
        maturity_status="stable",
    )


def make_instance_type(name: str, *units: int) -> InstanceType:
    return InstanceType(id=name, display_name=name, sizes=tuple(make_size(f"x{number}", number) for number in units))


def make_policy(
    *offers: RegionType,
    types: tuple[InstanceType, ...] = (make_instance_type("standard", 1, 2), make_instance_type("developer", 1)),
    **changes: Any,
) -> FleetPolicy:
    """Auto mode, both triggers on, aws with us-east-1; without offers the region offers standard."""
    region = Region(name="us-east-1", is_default=True, types=offers or (RegionType(instance_type="standard"),))
    pool = MachinePool(machine_type="r5.xlarge", min_nodes=3, max_nodes=18)
    machines = ProviderMachines(cluster_wide=pool, per_type={found.id: pool for found in types})
    settings: dict[str, Any] = {
        "scaling_type": ScalingType.AUTO,
        "providers": (CloudProvider(name="aws", is_default=True, regions=(region,)),),
        "instance_types": {found.id: found for found in types},
        "machines": {"aws": machines},
        "scale_up_enabled": True,
        "scale_down_enabled": True,
    }
    return FleetPolicy(**(settings | changes))


def offer(instance_type: str = "standard", *, limit: int | None = None, slack: int = 0) -> RegionType:
    return RegionType(instance_type=instance_type, limit=limit, slack=slack)


def make_cluster(row_id: str, units: int | dict[str, int] = 10, **changes: Any) -> Cluster:
    """A ready managed cluster with capacity for these types; the ids give the order of creation."""
    by_type = units if isinstance(units, dict) else {"standard": units}
    settings: dict[str, Any] = {
        "id": row_id,
        "cluster_id": f"cid-{row_id}",
        "created_at": NOW - timedelta(days=30) + timedelta(minutes=sum(row_id.encode())),
        "cloud_provider": "aws",
        "region": "us-east-1",
        "multi_az": True,
        "status": ClusterStatus.READY,
        "supported_instance_type": ",".join(by_type),
        "dynamic_capacity_info": {
            name: DynamicCapacity(max_nodes=18, max_units=most, remaining_units=most) for name, most in by_type.items()
        },
        "available_strimzi_versions": (
            StrimziVersion(
                version="strimzi-cluster-operator.v0.23.0-0",
                ready=True,
                kafkaVersions=(VersionItem(version="2.7.0"),),
                kafkaIBPVersions=(VersionItem(version="2.7"),),
            ),
        ),
    } | changes
    return Cluster(**({"updated_at": settings["created_at"]} | settings))


def make_manual(row_id: str, limit: int, *, schedulable: bool = True) -> ManualCluster:
    """An entry of the manual file for the cluster of this row."""
    return ManualCluster(
        name=row_id,
        cluster_id=f"cid-{row_id}",
        cloud_provider="aws",
        region="us-east-1",
        multi_az=True,
        schedulable=schedulable,
        kafka_instance_limit=limit,
        status="ready",
        provider_type=ProviderType.OCM,
        cluster_dns="",
        supported_instance_type="standard,developer",
    )


def make_kafka(row_id: str, **changes: Any) -> KafkaRequest:
    settings: dict[str, Any] = {
        "id": row_id,
        "name": row_id,
        "created_at": NOW,
        "cloud_provider": "aws",
        "region": "us-east-1",
        "multi_az": True,
        "instance_type": "standard",
        "size_id": "x1",
    } | changes
    return KafkaRequest(**({"updated_at": settings["created_at"]} | settings))


def count_kafkas(cluster: Cluster | None, number: int, *, size_id: str = "x1", **changes: Any) -> KafkaCount:
    """So many Kafkas on a cluster; None: accepted ones without a place."""
    settings: dict[str, Any] = {
        "locator": STANDARD if cluster is None else cluster.locators[0],
        "cluster_id": "" if cluster is None else cluster.cluster_id,
        "size_id": size_id,
        "consuming": number,
        "accepted": number if cluster is None else 0,
        "example_id": f"kafka-of-{'queue' if cluster is None else cluster.id}",
    }
    return KafkaCount(**(settings | changes))
