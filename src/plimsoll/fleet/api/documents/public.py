"""Documents of the public routes."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads annotations at run time
from typing import Any

from plimsoll.fleet.api.documents.base import Answer, Body, ListAnswer, ObjectReference, Text


class ByteCount(Answer):
    """A number of bytes."""

    bytes: int


class KafkaAnswer(ObjectReference):
    """A Kafka request, as its organisation sees it."""

    status: str
    cloud_provider: str
    multi_az: bool
    region: str
    owner: str
    name: str
    bootstrap_server_host: str | None = None
    admin_api_server_url: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    updated_at: datetime
    failed_reason: str | None = None
    version: str | None = None
    instance_type: str
    instance_type_name: str | None = None
    reauthentication_enabled: bool
    max_data_retention_size: ByteCount | None = None
    browser_url: str | None = None
    size_id: str
    ingress_throughput_per_sec: str | None = None
    egress_throughput_per_sec: str | None = None
    total_max_connections: int | None = None
    max_partitions: int | None = None
    max_data_retention_period: str | None = None
    max_connection_attempts_per_sec: int | None = None
    billing_cloud_account_id: str | None = None
    marketplace: str | None = None
    billing_model: str | None = None
    promotion_status: str | None = None
    promotion_details: str | None = None
    cluster_id: str | None = None


class KafkaListAnswer(ListAnswer):
    """A page of Kafka requests."""

    items: list[KafkaAnswer]


class KafkaPayload(Body):
    """A new Kafka request. `plan` is INSTANCE_TYPE.SIZE, such as `standard.x1`."""

    name: str = ""
    cloud_provider: Text = ""
    region: Text = ""
    plan: Text = ""
    reauthentication_enabled: bool | None = None
    billing_cloud_account_id: Text | None = None
    marketplace: Text | None = None
    billing_model: Text | None = None
    cluster_id: Text | None = None


class KafkaPatch(Body):
    """Changes of a Kafka request. `plan`: another size of the same instance type."""

    owner: Text | None = None
    reauthentication_enabled: bool | None = None
    plan: Text | None = None


class CloudProviderAnswer(Answer):
    """A cloud provider."""

    kind: str
    id: str
    display_name: str
    name: str
    enabled: bool


class CloudProviderListAnswer(ListAnswer):
    """A page of cloud providers."""

    items: list[CloudProviderAnswer]


class RegionCapacityAnswer(Answer):
    """The sizes of an instance type that can be created in a region now."""

    instance_type: str
    available_sizes: list[str]


class CloudRegionAnswer(Answer):
    """A region of a cloud provider."""

    kind: str
    id: str
    display_name: str
    enabled: bool
    capacity: list[RegionCapacityAnswer]


class CloudRegionListAnswer(ListAnswer):
    """A page of regions."""

    items: list[CloudRegionAnswer]


class BillingModelAnswer(Answer):
    """A billing model of an instance type."""

    id: str
    ams_resource: str
    ams_product: str
    ams_billing_models: list[str]


class SizeAnswer(Answer):
    """A size of an instance type."""

    id: str
    display_name: str
    ingress_throughput_per_sec: ByteCount
    egress_throughput_per_sec: ByteCount
    total_max_connections: int
    max_data_retention_size: ByteCount
    max_partitions: int
    max_data_retention_period: str
    max_connection_attempts_per_sec: int
    max_message_size: ByteCount
    min_in_sync_replicas: int
    replication_factor: int
    supported_az_modes: list[str]
    lifespan_seconds: int | None = None
    quota_consumed: int
    quota_type: str
    capacity_consumed: int
    maturity_status: str


class InstanceTypeAnswer(Answer):
    """An instance type that a region offers."""

    id: str
    display_name: str
    supported_billing_models: list[BillingModelAnswer]
    sizes: list[SizeAnswer]


class InstanceTypeListAnswer(Answer):
    """The instance types of a region. `items` holds the same: clients of the original service need it to be there."""

    instance_types: list[InstanceTypeAnswer]
    items: list[InstanceTypeAnswer]


class ApiAnswer(ObjectReference):
    """The root of the API."""

    versions: list[ObjectReference]


class VersionAnswer(ObjectReference):
    """A version of the API, with its collections."""

    server_version: str
    collections: list[ObjectReference]


class OpenApiAnswer(Answer):
    """The OpenAPI document of the public routes."""

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]
    components: dict[str, Any]


class SsoProviderListAnswer(ListAnswer, ObjectReference):
    """Always empty: no identity provider is managed here."""

    items: list[ObjectReference]
