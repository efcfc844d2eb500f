"""The tables. `migrations/versions` makes them; a test compares both."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Boolean, Column, Index, LargeBinary, MetaData, Table, and_

from plimsoll.fleet.model.statuses import TERRAFORMING, ClusterType
from plimsoll.fleet.store.columns import CheckedText, JsonText, UtcTime, WholeNumber

METADATA: Final = MetaData()
CLUSTER_SECRETS: Final = ("client_secret",)
KAFKA_SECRETS: Final = ("canary_service_account_client_secret",)


def _build_column(name: str, kind: Any, *, nullable: bool = False) -> Column[Any]:
    return Column(name, kind() if kind is Boolean else kind(name), nullable=nullable)


def _build_columns(names: str, kind: Any, *, nullable: bool = False) -> list[Column[Any]]:
    return [_build_column(name, kind, nullable=nullable) for name in names.split()]


CLUSTERS: Final = Table(
    "clusters",
    METADATA,
    Column("id", CheckedText("id"), primary_key=True),
    *_build_columns("created_at updated_at", UtcTime),
    *_build_columns("deleted_at", UtcTime, nullable=True),
    *_build_columns(
        "cluster_id external_id cloud_provider region status provider_type cluster_dns identity_provider_id client_id "
        "client_secret supported_instance_type cluster_type organization_id status_details",
        CheckedText,
    ),
    *_build_columns("multi_az access_kafkas_via_private_network schedulable", Boolean),
    *_build_columns("provider_spec cluster_spec available_strimzi_versions dynamic_capacity_info", JsonText),
    *_build_columns(
        "delete_requested_at retire_requested_at empty_since ready_at last_report_at", UtcTime, nullable=True
    ),
    _build_column("creation_slot", WholeNumber, nullable=True),
)
"""`creation_slot`: which of the parallel creations of its locator this is, until it becomes ready for the first time.

Empty for clusters that were registered and not created: of these any number may be terraforming. A ready cluster whose
agent reports a problem is terraforming again, but creates nothing.
"""

KAFKAS: Final = Table(
    "kafka_requests",
    METADATA,
    Column("id", CheckedText("id"), primary_key=True),
    *_build_columns("created_at updated_at", UtcTime),
    *_build_columns("deleted_at expires_at", UtcTime, nullable=True),
    *_build_columns(
        "name owner owner_account_id organisation_id cloud_provider region cluster_id status instance_type size_id "
        "quota_type subscription_id bootstrap_server_host admin_api_server_url namespace placement_id "
        "routes_creation_id failed_reason desired_kafka_version desired_strimzi_version desired_kafka_ibp_version "
        "actual_kafka_version actual_strimzi_version actual_kafka_ibp_version max_data_retention_size "
        "billing_cloud_account_id marketplace actual_kafka_billing_model desired_kafka_billing_model promotion_status "
        "promotion_details canary_service_account_client_id canary_service_account_client_secret "
        "kafkas_routes_base_domain_name kafkas_routes_base_domain_tls_key_ref kafkas_routes_base_domain_tls_crt_ref",
        CheckedText,
    ),
    *_build_columns(
        "multi_az routes_created kafka_upgrading strimzi_upgrading kafka_ibp_upgrading reauthentication_enabled",
        Boolean,
    ),
    *_build_columns("routes", JsonText),
    *_build_columns("bytes_stored resizing_to_units", WholeNumber),
)

LEASES: Final = Table(
    "leases",
    METADATA,
    Column("worker", CheckedText("worker"), primary_key=True),
    *_build_columns("holder", CheckedText),
    *_build_columns("expires_at", UtcTime),
)

SETTINGS: Final = Table(
    "settings",
    METADATA,
    Column("name", CheckedText("name"), primary_key=True),
    *_build_columns("value", CheckedText),
)
"""Settings that all processes of a fleet share: the pause."""

JOURNAL: Final = Table(
    "journal",
    METADATA,
    Column("number", WholeNumber("number"), primary_key=True, autoincrement=False),
    *_build_columns("at", UtcTime),
    *_build_columns("subsystem", CheckedText),
    Column("data", LargeBinary, nullable=False),
    *_build_columns("data_bytes checksum", WholeNumber),
)
JOURNAL_SUBJECTS: Final = Table(
    "journal_subjects",
    METADATA,
    Column("hash", WholeNumber("hash"), primary_key=True, autoincrement=False),
    Column("number", WholeNumber("number"), primary_key=True, autoincrement=False),
)
JOURNAL_NUMBERS: Final = Table(
    "journal_numbers",
    METADATA,
    Column("id", WholeNumber("id"), primary_key=True, autoincrement=False),
    *_build_columns("last", WholeNumber),
)
"""One row: the last number that was used. A number is never used twice, and its order is that of the commits."""

LIVE_CLUSTER: Final = CLUSTERS.c.deleted_at.is_(None)
LIVE_KAFKA: Final = KAFKAS.c.deleted_at.is_(None)


def _build_index(name: str, *columns: Column[Any], unique: bool = False, where: Any = None) -> Index:
    conditions: dict[str, Any] = {} if where is None else {"sqlite_where": where, "postgresql_where": where}
    return Index(name, *columns, unique=unique, **conditions)


INDEXES: Final = (
    _build_index(
        "clusters_one_creation_per_locator",
        *(CLUSTERS.c[name] for name in ("cloud_provider", "region", "supported_instance_type", "creation_slot")),
        unique=True,
        where=and_(
            LIVE_CLUSTER,
            CLUSTERS.c.cluster_type == ClusterType.MANAGED.value,
            CLUSTERS.c.status.in_(sorted(TERRAFORMING)),
            CLUSTERS.c.creation_slot.is_not(None),
        ),
    ),
    _build_index(
        "clusters_cluster_id", CLUSTERS.c.cluster_id, unique=True, where=and_(LIVE_CLUSTER, CLUSTERS.c.cluster_id != "")
    ),
    _build_index("clusters_client_id", CLUSTERS.c.client_id, where=and_(LIVE_CLUSTER, CLUSTERS.c.client_id != "")),
    _build_index(
        "kafka_requests_name_in_organisation",
        KAFKAS.c.organisation_id,
        KAFKAS.c.name,
        unique=True,
        where=and_(LIVE_KAFKA, KAFKAS.c.organisation_id != ""),
    ),
    _build_index(
        "kafka_requests_name_of_owner",
        KAFKAS.c.owner,
        KAFKAS.c.name,
        unique=True,
        where=and_(LIVE_KAFKA, KAFKAS.c.organisation_id == ""),
    ),
    _build_index("kafka_requests_owner", KAFKAS.c.owner, KAFKAS.c.instance_type, where=LIVE_KAFKA),
    _build_index("kafka_requests_cluster", KAFKAS.c.cluster_id, KAFKAS.c.created_at, KAFKAS.c.id, where=LIVE_KAFKA),
    _build_index("kafka_requests_status", KAFKAS.c.status, KAFKAS.c.created_at, KAFKAS.c.id, where=LIVE_KAFKA),
    _build_index(
        "kafka_requests_counted",
        *(KAFKAS.c[name] for name in ("cloud_provider", "region", "instance_type", "cluster_id", "size_id", "status")),
        where=LIVE_KAFKA,
    ),
    _build_index("journal_at", JOURNAL.c.at),
    _build_index("journal_bytes", JOURNAL.c.data_bytes),
    _build_index("journal_subjects_number", JOURNAL_SUBJECTS.c.number),
)
"""`kafka_requests_counted` covers `count_kafkas`: the rows themselves, about a kilobyte each, are not read.

It has no column that differs from Kafka to Kafka. PostgreSQL therefore keeps one entry per group with the places of its
rows: the index has a sixtieth of the size of the table, and its planner prefers it to the table.
"""
