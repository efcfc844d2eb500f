"""Rows in documents of people: of `plimsoll fleet evaluate`, export and import. Read strictly, with bounds.

Names are those of the columns. Null is the same as absent, and absent columns have the values of a new row.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec
from pydantic import BeforeValidator, Field, model_validator

from plimsoll.core.durations import to_utc
from plimsoll.fleet.config.strict import MOST, Count, Document, Name, Text, raise_mistakes
from plimsoll.fleet.model.clusters import Cluster, DynamicCapacity, StrimziVersion, VersionItem
from plimsoll.fleet.model.kafkas import KafkaRequest, Route, needs_zones
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, KafkaStatus, ProviderType
from plimsoll.fleet.model.version_order import UnsortableVersion, sort_strimzi_versions

MOST_KAFKAS: Final = 10**9
_MOST_BYTES: Final = 2**63 - 1
_LONGEST_DETAILS: Final = 100_000
LATE_COLUMNS: Final = ("expires_at",)
"""Times that lie in the future: they say nothing about now."""


def _read_time(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("must be a time like 2026-01-01T00:00:00Z")  # noqa: TRY004 - pydantic wants a ValueError
    try:
        moment = msgspec.convert(value, datetime)
    except msgspec.ValidationError as error:
        raise ValueError("must be a time like 2026-01-01T00:00:00Z") from error
    if moment.tzinfo is None:
        raise ValueError("has no time zone; write it like 2026-01-01T00:00:00Z")
    return to_utc(moment)


Moment = Annotated[datetime, BeforeValidator(_read_time)]
Details = Annotated[str, Field(max_length=_LONGEST_DETAILS)]


class RowDocument(Document):
    """The base of rows."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        return {key: part for key, part in value.items() if part is not None} if isinstance(value, dict) else value


class CapacityColumn(RowDocument):
    """The capacity of a cluster for one instance type."""

    max_nodes: Count = 0
    max_units: Count = 0
    remaining_units: Annotated[int, Field(ge=-MOST, le=MOST)] = 0


class VersionColumn(RowDocument):
    """A Kafka version, or an IBP version."""

    version: Name


class StrimziColumn(RowDocument):
    """A Strimzi version of a cluster."""

    version: Name
    ready: bool = False
    kafka_versions: list[VersionColumn] = Field(default=[], alias="kafkaVersions")
    kafka_ibp_versions: list[VersionColumn] = Field(default=[], alias="kafkaIBPVersions")

    def build_version(self) -> StrimziVersion:
        return StrimziVersion(
            version=self.version,
            ready=self.ready,
            kafkaVersions=tuple(VersionItem(version=item.version) for item in self.kafka_versions),
            kafkaIBPVersions=tuple(VersionItem(version=item.version) for item in self.kafka_ibp_versions),
        )


def _read_enum(choices: type[ClusterStatus | ClusterType | ProviderType | KafkaStatus]) -> BeforeValidator:
    def read(value: Any) -> Any:
        try:
            return choices(value)
        except ValueError as error:
            raise ValueError(f"must be one of {', '.join(choices)}") from error

    return BeforeValidator(read)


class ClusterRowDocument(RowDocument):
    """A cluster row (docs/design/fleet.md 1.1)."""

    id: Name
    created_at: Moment | None = None
    updated_at: Moment | None = None
    deleted_at: Moment | None = None
    cluster_id: Text = ""
    external_id: Text = ""
    cloud_provider: Name
    region: Name
    multi_az: bool = False
    status: Annotated[ClusterStatus, _read_enum(ClusterStatus)] = ClusterStatus.ACCEPTED
    status_details: Details = ""
    provider_type: Annotated[ProviderType, _read_enum(ProviderType)] = ProviderType.OCM
    provider_spec: dict[str, Any] = {}
    cluster_spec: dict[str, Any] = {}
    cluster_dns: Text = ""
    identity_provider_id: Text = ""
    client_id: Text = ""
    client_secret: Details = ""
    available_strimzi_versions: list[StrimziColumn] = []
    supported_instance_type: Text = "standard,developer"
    dynamic_capacity_info: dict[Name, CapacityColumn] = {}
    cluster_type: Annotated[ClusterType, _read_enum(ClusterType)] = ClusterType.MANAGED
    organization_id: Text = ""
    access_kafkas_via_private_network: bool = False
    schedulable: bool = True
    delete_requested_at: Moment | None = None
    retire_requested_at: Moment | None = None
    empty_since: Moment | None = None
    ready_at: Moment | None = None
    last_report_at: Moment | None = None

    @model_validator(mode="after")
    def _check(self) -> ClusterRowDocument:
        try:
            sort_strimzi_versions(item.build_version() for item in self.available_strimzi_versions)
        except UnsortableVersion as error:
            raise_mistakes("cluster", [(("available_strimzi_versions",), str(error))])
        return self

    def build_cluster(self, now: datetime) -> Cluster:
        columns: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        versions = sort_strimzi_versions(item.build_version() for item in self.available_strimzi_versions)
        capacity = {
            name: DynamicCapacity(
                max_nodes=found.max_nodes, max_units=found.max_units, remaining_units=found.remaining_units
            )
            for name, found in self.dynamic_capacity_info.items()
        }
        created_at = self.created_at or now
        return Cluster(
            **columns
            | {
                "available_strimzi_versions": versions,
                "dynamic_capacity_info": capacity,
                "created_at": created_at,
                "updated_at": self.updated_at or created_at,
            }
        )


class RouteColumn(RowDocument):
    """A route of a Kafka."""

    domain: Name
    router: Name


class KafkaRowDocument(RowDocument):
    """A Kafka row (docs/design/fleet.md 1.5), or as many equal rows as `count` says."""

    id: Name
    count: Annotated[int, Field(ge=1, le=MOST_KAFKAS)] = 1
    created_at: Moment | None = None
    updated_at: Moment | None = None
    deleted_at: Moment | None = None
    name: Text = ""
    owner: Text = ""
    owner_account_id: Text = ""
    organisation_id: Text = ""
    cloud_provider: Name
    region: Name
    multi_az: bool = False
    cluster_id: Text = ""
    status: Annotated[KafkaStatus, _read_enum(KafkaStatus)] = KafkaStatus.ACCEPTED
    instance_type: Name
    size_id: Name
    quota_type: Text = ""
    subscription_id: Text = ""
    bootstrap_server_host: Text = ""
    admin_api_server_url: Text = ""
    namespace: Text = ""
    placement_id: Text = ""
    routes: list[RouteColumn] = []
    routes_created: bool = False
    routes_creation_id: Text = ""
    failed_reason: Details = ""
    desired_kafka_version: Text = ""
    desired_strimzi_version: Text = ""
    desired_kafka_ibp_version: Text = ""
    actual_kafka_version: Text = ""
    actual_strimzi_version: Text = ""
    actual_kafka_ibp_version: Text = ""
    kafka_upgrading: bool = False
    strimzi_upgrading: bool = False
    kafka_ibp_upgrading: bool = False
    max_data_retention_size: Text = ""
    bytes_stored: Annotated[int, Field(ge=0, le=_MOST_BYTES)] = 0
    resizing_to_units: Annotated[int, Field(ge=0, le=_MOST_BYTES)] = 0
    reauthentication_enabled: bool = True
    billing_cloud_account_id: Text = ""
    marketplace: Text = ""
    actual_kafka_billing_model: Text = ""
    desired_kafka_billing_model: Text = ""
    promotion_status: Text = ""
    promotion_details: Details = ""
    expires_at: Moment | None = None
    canary_service_account_client_id: Text = ""
    canary_service_account_client_secret: Details = ""
    kafkas_routes_base_domain_name: Text = ""
    kafkas_routes_base_domain_tls_key_ref: Text = ""
    kafkas_routes_base_domain_tls_crt_ref: Text = ""

    def build_kafka(self, now: datetime) -> KafkaRequest:
        """The row; `multi_az` follows from the instance type, whatever is written."""
        columns: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields if name != "count"}
        created_at = self.created_at or now
        return KafkaRequest(
            **columns
            | {
                "name": self.name or self.id,
                "routes": tuple(Route(domain=route.domain, router=route.router) for route in self.routes),
                "multi_az": needs_zones(self.instance_type),
                "created_at": created_at,
                "updated_at": self.updated_at or created_at,
            }
        )


def find_latest_time(rows: list[ClusterRowDocument] | list[KafkaRowDocument]) -> datetime:
    """The latest time in the rows, or the beginning of 1970 if there is none."""
    times = [
        moment
        for row in rows
        for name in type(row).model_fields
        if name not in LATE_COLUMNS and isinstance(moment := getattr(row, name), datetime)
    ]
    return max(times, default=datetime(1970, 1, 1, tzinfo=UTC))
