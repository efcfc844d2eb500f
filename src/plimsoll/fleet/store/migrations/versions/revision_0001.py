"""Clusters, Kafka requests, leases and settings, with the unique indexes that hold their rules."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0001"
down_revision: Final[str | None] = None

# Text is ordered and compared by code point on both databases.
TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME: Final = sa.Text().with_variant(sa.DateTime(timezone=True), "postgresql")
IS_LIVE: Final = "deleted_at IS NULL"
TERRAFORMING: Final = (
    "'cluster_accepted', 'cluster_provisioned', 'cluster_provisioning', 'waiting_for_kas_fleetshard_operator'"
)


def upgrade() -> None:
    _create_clusters()
    _create_kafka_requests()
    op.create_table(
        "leases",
        sa.Column("worker", TEXT, primary_key=True),
        *_build_columns("holder", TEXT),
        *_build_columns("expires_at", TIME),
    )
    op.create_table("settings", sa.Column("name", TEXT, primary_key=True), *_build_columns("value", TEXT))


def _create_clusters() -> None:
    op.create_table(
        "clusters",
        sa.Column("id", TEXT, primary_key=True),
        *_build_columns("created_at updated_at", TIME),
        *_build_columns("deleted_at", TIME, nullable=True),
        *_build_columns(
            "cluster_id external_id cloud_provider region status provider_type cluster_dns identity_provider_id "
            "client_id client_secret supported_instance_type cluster_type organization_id status_details",
            TEXT,
        ),
        *_build_columns("multi_az access_kafkas_via_private_network schedulable", sa.Boolean()),
        *_build_columns("provider_spec cluster_spec available_strimzi_versions dynamic_capacity_info", TEXT),
        *_build_columns(
            "delete_requested_at retire_requested_at empty_since ready_at last_report_at", TIME, nullable=True
        ),
        *_build_columns("creation_slot", sa.BigInteger(), nullable=True),
    )
    _create_index(
        "clusters_one_creation_per_locator",
        "clusters",
        "cloud_provider region supported_instance_type creation_slot",
        where=f"{IS_LIVE} AND cluster_type = 'managed' AND status IN ({TERRAFORMING}) AND creation_slot IS NOT NULL",
        unique=True,
    )
    _create_index("clusters_cluster_id", "clusters", "cluster_id", where=f"{IS_LIVE} AND cluster_id <> ''", unique=True)
    _create_index("clusters_client_id", "clusters", "client_id", where=f"{IS_LIVE} AND client_id <> ''")


def _create_kafka_requests() -> None:
    op.create_table(
        "kafka_requests",
        sa.Column("id", TEXT, primary_key=True),
        *_build_columns("created_at updated_at", TIME),
        *_build_columns("deleted_at expires_at", TIME, nullable=True),
        *_build_columns(
            "name owner owner_account_id organisation_id cloud_provider region cluster_id status instance_type size_id "
            "quota_type subscription_id bootstrap_server_host admin_api_server_url namespace placement_id "
            "routes_creation_id failed_reason desired_kafka_version desired_strimzi_version desired_kafka_ibp_version "
            "actual_kafka_version actual_strimzi_version actual_kafka_ibp_version max_data_retention_size "
            "billing_cloud_account_id marketplace actual_kafka_billing_model desired_kafka_billing_model "
            "promotion_status promotion_details canary_service_account_client_id "
            "canary_service_account_client_secret kafkas_routes_base_domain_name "
            "kafkas_routes_base_domain_tls_key_ref kafkas_routes_base_domain_tls_crt_ref routes",
            TEXT,
        ),
        *_build_columns(
            "multi_az routes_created kafka_upgrading strimzi_upgrading kafka_ibp_upgrading reauthentication_enabled",
            sa.Boolean(),
        ),
        *_build_columns("bytes_stored", sa.BigInteger()),
    )
    table = "kafka_requests"
    in_organisation, of_owner = f"{IS_LIVE} AND organisation_id <> ''", f"{IS_LIVE} AND organisation_id = ''"
    _create_index(f"{table}_name_in_organisation", table, "organisation_id name", where=in_organisation, unique=True)
    _create_index(f"{table}_name_of_owner", table, "owner name", where=of_owner, unique=True)
    _create_index(f"{table}_owner", table, "owner instance_type", where=IS_LIVE)
    _create_index(f"{table}_cluster", table, "cluster_id created_at id", where=IS_LIVE)
    _create_index(f"{table}_status", table, "status created_at id", where=IS_LIVE)


def _build_columns(names: str, kind: Any, *, nullable: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=nullable) for name in names.split()]


def _create_index(name: str, table: str, columns: str, *, where: str, unique: bool = False) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns.split(), unique=unique, sqlite_where=condition, postgresql_where=condition)
