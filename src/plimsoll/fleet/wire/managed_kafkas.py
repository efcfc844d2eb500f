"""ManagedKafkas: what an agent is to run, as the agent's API lists them (docs/design/fleet.md 3.3 and 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.fleet.model.statuses import KafkaStatus

if TYPE_CHECKING:
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.model.policy import Size

SESSION_LIFETIME_MS: Final = 299_000
"""With re-authentication. Without it sessions do not end: 0."""
ID: Final = "bf2.org/id"
PLACEMENT_ID: Final = "bf2.org/placementId"
PROFILE_TYPE: Final = "bf2.org/kafkaInstanceProfileType"
QUOTA_CONSUMED: Final = "bf2.org/kafkaInstanceProfileQuotaConsumed"
STREAMING_UNITS: Final = "plimsoll.io/streaming-units"
"""The units that a size consumes in a cluster, where they differ from the quota that it consumes."""
SUSPENDED: Final = "bf2.org/suspended"
DEPLOYMENT: Final = "bf2.org/deployment"
PAUSED: Final = "managedkafka.bf2.org/pause-reconciliation"
RESERVED_PREFIX: Final = "reserved-"
_SUSPENDED_STATUSES: Final = frozenset({KafkaStatus.SUSPENDING, KafkaStatus.SUSPENDED})


class OAuthSettings(Value):
    """Where brokers verify tokens of their clients. Empty values are left out."""

    token_endpoint: str = ""
    jwks_endpoint: str = ""
    issuer: str = ""
    user_name_claim: str = ""
    fallback_user_name_claim: str = ""
    custom_claim_check: str = ""


class Certificate(Value):
    """The certificate of a Kafka and its key, as PEM."""

    cert: str
    key: str


class KafkaVersions(Value):
    """The versions that an agent is to install."""

    kafka: str
    strimzi: str
    kafka_ibp: str


def build_managed_kafka(
    kafka: KafkaRequest, size: Size | None, *, oauth: OAuthSettings, certificate: Certificate | None = None
) -> dict[str, Any]:
    """A Kafka of the database. `size` None: it is not configured any more, and its capacity is left out."""
    annotations = {ID: kafka.id, PLACEMENT_ID: kafka.placement_id, **_build_units(size)}
    lifetime = SESSION_LIFETIME_MS if kafka.reauthentication_enabled else 0
    endpoint: dict[str, Any] = {"bootstrapServerHost": kafka.bootstrap_server_host}
    if certificate is not None:
        endpoint["tls"] = {"cert": certificate.cert, "key": certificate.key}
    spec: dict[str, Any] = {
        "capacity": _build_capacity(size, retention_size=kafka.max_data_retention_size),
        "oauth": _build_oauth(oauth, lifetime),
        "endpoint": endpoint,
        "versions": _build_versions(
            KafkaVersions(
                kafka=kafka.desired_kafka_version,
                strimzi=kafka.desired_strimzi_version,
                kafka_ibp=kafka.desired_kafka_ibp_version,
            )
        ),
        "owners": [kafka.owner] if kafka.owner else [],
        "deleted": kafka.status is KafkaStatus.DEPROVISION,
    }
    if kafka.canary_service_account_client_id:
        account = {
            "name": "canary",
            "principal": kafka.canary_service_account_client_id,
            "password": kafka.canary_service_account_client_secret,
        }
        spec["serviceAccounts"] = [account]
    labels = {
        PROFILE_TYPE: kafka.instance_type,
        QUOTA_CONSUMED: str(0 if size is None else size.quota_consumed),
        SUSPENDED: "true" if kafka.status in _SUSPENDED_STATUSES else "false",
    }
    metadata = {"name": kafka.name, "namespace": kafka.namespace, "annotations": annotations, "labels": labels}
    return {"id": kafka.id, "kind": "ManagedKafka", "metadata": metadata, "spec": spec}


def name_reserved(instance_type: str, number: int) -> str:
    return f"{RESERVED_PREFIX}kafka-{instance_type}-{number}".lower()


def build_reserved_kafka(instance_type: str, number: int, *, size: Size, versions: KafkaVersions) -> dict[str, Any]:
    """A reserved instance: it exists in no database, and only holds room."""
    name = name_reserved(instance_type, number)
    labels = {DEPLOYMENT: "reserved", PROFILE_TYPE: instance_type, QUOTA_CONSUMED: str(size.quota_consumed)}
    annotations = {ID: name, PLACEMENT_ID: name, **_build_units(size)}
    metadata = {"name": name, "namespace": name, "annotations": annotations, "labels": labels}
    spec = {
        "capacity": _build_capacity(size, retention_size=size.max_data_retention_size),
        "oauth": {"maximumSessionLifetime": 0},
        "endpoint": {"bootstrapServerHost": f"{name}-dummyhost"},
        "versions": _build_versions(versions),
        "deleted": False,
    }
    return {"id": name, "kind": "ManagedKafka", "metadata": metadata, "spec": spec}


def _build_units(size: Size | None) -> dict[str, str]:
    differs = size is not None and size.capacity_consumed != size.quota_consumed
    return {STREAMING_UNITS: str(size.capacity_consumed)} if size is not None and differs else {}


def _build_capacity(size: Size | None, *, retention_size: str) -> dict[str, Any]:
    if size is None:
        return {"maxDataRetentionSize": retention_size} if retention_size else {}
    return {
        "ingressPerSec": size.ingress_throughput_per_sec,
        "egressPerSec": size.egress_throughput_per_sec,
        "totalMaxConnections": size.total_max_connections,
        "maxDataRetentionSize": retention_size or size.max_data_retention_size,
        "maxPartitions": size.max_partitions,
        "maxDataRetentionPeriod": size.max_data_retention_period,
        "maxConnectionAttemptsPerSec": size.max_connection_attempts_per_sec,
    }


def _build_oauth(oauth: OAuthSettings, lifetime_ms: int) -> dict[str, Any]:
    texts = {
        "tokenEndpointURI": oauth.token_endpoint,
        "jwksEndpointURI": oauth.jwks_endpoint,
        "validIssuerEndpointURI": oauth.issuer,
        "userNameClaim": oauth.user_name_claim,
        "fallbackUserNameClaim": oauth.fallback_user_name_claim,
        "customClaimCheck": oauth.custom_claim_check,
    }
    return {**{name: text for name, text in texts.items() if text}, "maximumSessionLifetime": lifetime_ms}


def _build_versions(versions: KafkaVersions) -> dict[str, str]:
    return {"kafka": versions.kafka, "strimzi": versions.strimzi, "kafkaIbp": versions.kafka_ibp}
