"""A data-plane cluster as a row (docs/design/fleet.md 1.1), with its capacity and its Strimzi versions."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import Any, NamedTuple

from plimsoll.fleet.model.records import Record
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, ProviderType


class Locator(NamedTuple):
    """Where capacity is counted: one instance type in one region of one provider."""

    cloud_provider: str
    region: str
    instance_type: str

    def __str__(self) -> str:
        return ".".join(self)


class DynamicCapacity(Record):
    """The capacity of a cluster for one instance type. Units come only from the agent, `max_nodes` only from us."""

    max_nodes: int = 0
    max_units: int = 0
    remaining_units: int = 0


class VersionItem(Record):
    """A Kafka version, or a Kafka IBP version."""

    version: str


class StrimziVersion(Record):
    """A Strimzi operator in a cluster, with the Kafka versions that it can run. The names are those of the wire."""

    version: str
    ready: bool = False
    kafkaVersions: tuple[VersionItem, ...] = ()  # noqa: N815
    kafkaIBPVersions: tuple[VersionItem, ...] = ()  # noqa: N815


class Cluster(Record, kw_only=True):
    """A cluster row. `cluster_id` is the provider's id and empty until the provider has made the cluster."""

    id: str
    created_at: datetime
    updated_at: datetime
    cloud_provider: str
    region: str
    deleted_at: datetime | None = None
    cluster_id: str = ""
    external_id: str = ""
    multi_az: bool = False
    status: ClusterStatus = ClusterStatus.ACCEPTED
    provider_type: ProviderType = ProviderType.OCM
    provider_spec: dict[str, Any] = {}
    cluster_spec: dict[str, Any] = {}
    cluster_dns: str = ""
    identity_provider_id: str = ""
    client_id: str = ""
    client_secret: str = ""
    """Encrypted by the store, and in no answer, log or export."""
    available_strimzi_versions: tuple[StrimziVersion, ...] = ()
    supported_instance_type: str = "standard,developer"
    dynamic_capacity_info: dict[str, DynamicCapacity] = {}
    cluster_type: ClusterType = ClusterType.MANAGED
    organization_id: str = ""
    access_kafkas_via_private_network: bool = False
    schedulable: bool = True
    delete_requested_at: datetime | None = None
    """The time of the first delete call to the provider. After it the cluster never returns to `ready`."""
    retire_requested_at: datetime | None = None
    """An operator wants it gone: it gets no Kafka, is removed when it is empty, and is never restored."""
    empty_since: datetime | None = None
    ready_at: datetime | None = None
    """The time at which it became ready for the first time."""
    last_report_at: datetime | None = None
    status_details: str = ""
    """The last problem that the provider reported."""

    @property
    def instance_types(self) -> tuple[str, ...]:
        """The supported instance types in stored order."""
        return tuple(part for text in self.supported_instance_type.split(",") if (part := text.strip()))

    @property
    def locators(self) -> tuple[Locator, ...]:
        return tuple(Locator(self.cloud_provider, self.region, name) for name in self.instance_types)
