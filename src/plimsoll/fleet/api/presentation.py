"""Rows as documents for users. Secrets of rows have no field there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.quantity import Quantity
from plimsoll.fleet.api.documents.public import ByteCount, KafkaAnswer
from plimsoll.fleet.api.errors import BASE_PATH

if TYPE_CHECKING:
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.model.policy import FleetPolicy

ENTERPRISE_BILLING: Final = "enterprise"
_PORT: Final = 443
_LARGEST: Final = 2**63 - 1


def present_kafka(kafka: KafkaRequest, policy: FleetPolicy, *, browser_url: str) -> KafkaAnswer:
    """A Kafka request as its organisation sees it. Empty values are omitted."""
    size = policy.find_size(kafka.instance_type, kafka.size_id)
    known_type = policy.instance_types.get(kafka.instance_type)
    billing_model = kafka.actual_kafka_billing_model or kafka.desired_kafka_billing_model
    return KafkaAnswer(
        id=kafka.id,
        kind="Kafka",
        href=f"{BASE_PATH}/kafkas/{kafka.id}",
        status=kafka.status,
        cloud_provider=kafka.cloud_provider,
        multi_az=kafka.multi_az,
        region=kafka.region,
        owner=kafka.owner,
        name=kafka.name,
        bootstrap_server_host=present_host(kafka),
        admin_api_server_url=kafka.admin_api_server_url or None,
        created_at=kafka.created_at,
        expires_at=kafka.expires_at,
        updated_at=kafka.updated_at,
        failed_reason=kafka.failed_reason or None,
        version=kafka.actual_kafka_version or None,
        instance_type=kafka.instance_type,
        instance_type_name=None if known_type is None else known_type.display_name,
        reauthentication_enabled=kafka.reauthentication_enabled,
        max_data_retention_size=present_bytes(kafka.max_data_retention_size),
        browser_url=f"{browser_url.rstrip('/')}/{kafka.id}/details/dashboard" if browser_url else None,
        size_id=kafka.size_id,
        ingress_throughput_per_sec=None if size is None else size.ingress_throughput_per_sec,
        egress_throughput_per_sec=None if size is None else size.egress_throughput_per_sec,
        total_max_connections=None if size is None else size.total_max_connections,
        max_partitions=None if size is None else size.max_partitions,
        max_data_retention_period=None if size is None else size.max_data_retention_period,
        max_connection_attempts_per_sec=None if size is None else size.max_connection_attempts_per_sec,
        billing_cloud_account_id=kafka.billing_cloud_account_id or None,
        marketplace=kafka.marketplace or None,
        billing_model=billing_model or None,
        promotion_status=kafka.promotion_status or None,
        promotion_details=kafka.promotion_details or None,
        cluster_id=kafka.cluster_id if billing_model == ENTERPRISE_BILLING and kafka.cluster_id else None,
    )


def present_host(kafka: KafkaRequest) -> str | None:
    """The bootstrap server with its port."""
    return f"{kafka.bootstrap_server_host}:{_PORT}" if kafka.bootstrap_server_host else None


def present_bytes(quantity: str) -> ByteCount | None:
    """A quantity such as `1000Gi` in bytes. None: it is empty, or a row holds what is no quantity."""
    try:
        return ByteCount(bytes=min(Quantity.parse(quantity).round_up(), _LARGEST)) if quantity else None
    except InvalidQuantity:
        return None
