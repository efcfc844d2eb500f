"""A Kafka request as a row (docs/design/fleet.md 1.5)."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time

from plimsoll.fleet.model.clusters import Locator
from plimsoll.fleet.model.records import Record
from plimsoll.fleet.model.statuses import KafkaStatus


class Route(Record):
    """A DNS name of a Kafka, and the router that serves it."""

    domain: str
    router: str


class KafkaRequest(Record, kw_only=True):
    """A Kafka request row. `cluster_id` is the provider's id of its cluster; empty: it has no place yet."""

    id: str
    created_at: datetime
    updated_at: datetime
    name: str
    cloud_provider: str
    region: str
    instance_type: str
    size_id: str
    deleted_at: datetime | None = None
    owner: str = ""
    owner_account_id: str = ""
    organisation_id: str = ""
    multi_az: bool = False
    cluster_id: str = ""
    status: KafkaStatus = KafkaStatus.ACCEPTED
    quota_type: str = ""
    subscription_id: str = ""
    bootstrap_server_host: str = ""
    admin_api_server_url: str = ""
    namespace: str = ""
    placement_id: str = ""
    routes: tuple[Route, ...] = ()
    routes_created: bool = False
    routes_creation_id: str = ""
    failed_reason: str = ""
    desired_kafka_version: str = ""
    desired_strimzi_version: str = ""
    desired_kafka_ibp_version: str = ""
    actual_kafka_version: str = ""
    actual_strimzi_version: str = ""
    actual_kafka_ibp_version: str = ""
    kafka_upgrading: bool = False
    strimzi_upgrading: bool = False
    kafka_ibp_upgrading: bool = False
    max_data_retention_size: str = ""
    bytes_stored: int = 0
    """As the agent reports it."""
    resizing_to_units: int = 0
    """The units of the size that the instance is being changed to; 0: no change of its size runs."""
    reauthentication_enabled: bool = True
    billing_cloud_account_id: str = ""
    marketplace: str = ""
    actual_kafka_billing_model: str = ""
    desired_kafka_billing_model: str = ""
    promotion_status: str = ""
    promotion_details: str = ""
    expires_at: datetime | None = None
    canary_service_account_client_id: str = ""
    canary_service_account_client_secret: str = ""
    """Encrypted by the store, and in no answer, log or export."""
    kafkas_routes_base_domain_name: str = ""
    kafkas_routes_base_domain_tls_key_ref: str = ""
    kafkas_routes_base_domain_tls_crt_ref: str = ""

    @property
    def locator(self) -> Locator:
        return Locator(self.cloud_provider, self.region, self.instance_type)


def needs_zones(instance_type: str) -> bool:
    """Whether Kafkas of this type, and so their clusters, span several zones."""
    return instance_type == "standard"
