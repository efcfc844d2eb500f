"""What an operator configured, as values for planning (docs/design/fleet.md 2 and 15.1).

`fleet/config` reads the files, finds all mistakes, and builds these. They cannot be invalid.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.fleet.model.statuses import ProviderType, ScalingType

if TYPE_CHECKING:
    from plimsoll.fleet.model.clusters import Locator


class Size(Value):
    """A size of an instance type. Quantities are kept as written; the bytes stand beside them."""

    id: str
    display_name: str
    ingress_throughput_per_sec: str
    egress_throughput_per_sec: str
    total_max_connections: int
    max_connection_attempts_per_sec: int
    max_data_retention_size: str
    max_data_retention_size_bytes: int
    max_data_retention_period: str
    max_partitions: int
    max_message_size: str
    min_in_sync_replicas: int
    replication_factor: int
    quota_consumed: int
    quota_type: str
    capacity_consumed: int
    """Streaming units."""
    supported_az_modes: tuple[str, ...]
    maturity_status: str
    lifespan_seconds: int | None = None


class BillingModel(Value):
    """A billing model of an instance type. It is stored and echoed; nothing acts on it."""

    id: str
    ams_resource: str
    ams_product: str
    ams_billing_models: tuple[str, ...]
    grace_period_days: int = 0


class InstanceType(Value):
    """An instance type with its sizes, smallest first."""

    id: str
    display_name: str
    sizes: tuple[Size, ...]
    billing_models: tuple[BillingModel, ...] = ()

    @property
    def biggest(self) -> int:
        """The streaming units of the biggest size."""
        return max((size.capacity_consumed for size in self.sizes), default=-1)

    def find_size(self, size_id: str) -> Size | None:
        return next((size for size in self.sizes if size.id == size_id), None)


class RegionType(Value):
    """An instance type that a region offers. `limit` None: no limit; 0: closed."""

    instance_type: str
    limit: int | None = None
    slack: int = 0


class Region(Value):
    """A region of a provider, with its instance types in file order."""

    name: str
    is_default: bool = False
    types: tuple[RegionType, ...] = ()
    cluster_class: str = ""

    def find_type(self, instance_type: str) -> RegionType | None:
        return next((offered for offered in self.types if offered.instance_type == instance_type), None)


class CloudProvider(Value):
    """A provider with its regions in file order."""

    name: str
    is_default: bool = False
    regions: tuple[Region, ...] = ()

    def find_region(self, name: str) -> Region | None:
        return next((region for region in self.regions if region.name == name), None)


class MachinePool(Value):
    """The machines of a pool, with its bounds as configured."""

    machine_type: str
    min_nodes: int
    max_nodes: int


class ProviderMachines(Value):
    """The pools of a cluster at one provider: the default pool, and one per instance type."""

    cluster_wide: MachinePool
    per_type: dict[str, MachinePool]


class Reserve(Value):
    """Reserved instances of one type per cluster. 0 instances: off."""

    instances: int
    size_id: str


class CreationPolicy(Value):
    """Retries and parallelism of cluster creations."""

    retry_initial_s: float = 30.0
    retry_max_s: float = 1800.0
    max_failed: int = 3
    count_backlog: bool = False
    max_parallel: int = 1


class RemovalPolicy(Value):
    """Waiting times before a cluster is removed."""

    minimum_empty_s: float = 0.0
    cool_down_s: float = 0.0


class PlacementStrategy(StrEnum):
    """Which of the clusters with room gets a Kafka."""

    FIRST = "first"
    BEST_FIT = "best_fit"
    SPREAD = "spread"


class ManualCluster(Value):
    """A cluster of the manual file. `kafka_instance_limit` is in streaming units; -1: no limit."""

    name: str
    cluster_id: str
    cloud_provider: str
    region: str
    multi_az: bool
    schedulable: bool
    kafka_instance_limit: int
    status: str
    provider_type: ProviderType
    cluster_dns: str
    supported_instance_type: str


class FleetPolicy(Value):
    """Everything that decisions depend on besides rows and time."""

    scaling_type: ScalingType = ScalingType.MANUAL
    providers: tuple[CloudProvider, ...] = ()
    instance_types: dict[str, InstanceType] = {}
    """By id, in file order."""
    machines: dict[str, ProviderMachines] = {}
    """By provider."""
    openshift_version: str = ""
    scale_up_enabled: bool = False
    scale_down_enabled: bool = False
    reserves: dict[str, Reserve] = {}
    """By instance type."""
    manual_clusters: tuple[ManualCluster, ...] = ()
    creation: CreationPolicy = CreationPolicy()
    removal: RemovalPolicy = RemovalPolicy()
    agent_silence_s: float = 600.0
    placement: PlacementStrategy = PlacementStrategy.FIRST

    def find_provider(self, name: str) -> CloudProvider | None:
        return next((provider for provider in self.providers if provider.name == name), None)

    def find_region(self, cloud_provider: str, region: str) -> Region | None:
        provider = self.find_provider(cloud_provider)
        return None if provider is None else provider.find_region(region)

    def find_offer(self, locator: Locator) -> RegionType | None:
        """What the region offers of this type; None: it does not offer it."""
        region = self.find_region(locator.cloud_provider, locator.region)
        return None if region is None else region.find_type(locator.instance_type)

    def find_size(self, instance_type: str, size_id: str) -> Size | None:
        known = self.instance_types.get(instance_type)
        return None if known is None else known.find_size(size_id)
