"""The Kafka cluster of `plimsoll kafka try`: its objects, and topics with data to move."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from plimsoll.kube.errors import AlreadyExists
from plimsoll.local.kafka.processes.distribution import KAFKA_VERSION, METADATA_VERSION
from plimsoll.objects.api.core import Namespace, Secret
from plimsoll.objects.api.kafka import Kafka, KafkaNodePool, KafkaRebalanceSettings
from plimsoll.objects.kafka_security import INTERNAL_SECURITY_ANNOTATION

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import WireObject

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

NAMESPACE: Final = "kafka"
CLUSTER: Final = "my-cluster"
BROKERS: Final = "brokers"
CONTROLLERS: Final = "controllers"
PLAIN_LISTENER: Final = "PLAIN-9092"
SECURE_LISTENER: Final = "TLS-9093"
USER: Final = "my-user"
_SCRAM: Final = "SCRAM-SHA-512"
_SETTINGS: Final = "rebalancing"
_THROTTLE: Final = 5_000_000
"""Bytes per second: slow enough to be watched."""
_NO_SECURITY: Final = {
    INTERNAL_SECURITY_ANNOTATION: '{"encryption": {"type": "none"}, "authentication": {"type": "none"}}'
}
_PLAIN: Final = {"name": "plain", "port": 9092, "type": "internal", "tls": False}
_SECURE: Final = {
    "name": "tls",
    "port": 9093,
    "type": "internal",
    "tls": True,
    "authentication": {"type": "scram-sha-512"},
}
_MOST_REPLICAS: Final = 3
_TOPICS: Final = {"orders": 12, "payments": 6}
"""Partitions by topic."""
_RECORD_BYTES: Final = 100_000
_RECORDS_PER_PARTITION: Final = 10
_FLUSH_S: Final = 60.0


class SampleCluster(NamedTuple):
    """What the user chose. `combined`: the brokers are the controllers, too. `secure`: TLS and logins everywhere."""

    brokers: int = 3
    combined: bool = False
    secure: bool = False


class ClientLogin(NamedTuple):
    """How a client connects to the listener with TLS."""

    ca_file: Path
    password: str

    def format_properties(self) -> str:
        """For `--command-config`, and Kafka's own tools."""
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        return (
            "security.protocol=SASL_SSL\nssl.truststore.type=PEM\n"
            f"ssl.truststore.location={self.ca_file}\nsasl.mechanism={_SCRAM}\n"
            f'sasl.jaas.config={module} required username="{USER}" password="{self.password}";\n'
        )

    def build_options(self) -> dict[str, str]:
        """Build the options of kafka-python's clients."""
        return {
            "security_protocol": "SASL_SSL",
            "ssl_cafile": str(self.ca_file),
            "sasl_mechanism": _SCRAM,
            "sasl_plain_username": USER,
            "sasl_plain_password": self.password,
        }


async def create_sample_cluster(client: Client, wanted: SampleCluster, *, entropy: Entropy) -> None:
    """Create the objects that do not exist. What a user has changed stays."""
    objects: list[tuple[type[WireObject], dict[str, Any], str]] = [
        (Namespace, {"metadata": {"name": NAMESPACE}}, ""),
        *([(Secret, _build_user(entropy.generate_token()), NAMESPACE)] if wanted.secure else []),
        (KafkaRebalanceSettings, _build_settings(), NAMESPACE),
        (Kafka, _build_kafka(wanted), NAMESPACE),
        *((KafkaNodePool, pool, NAMESPACE) for pool in _build_pools(wanted)),
    ]
    for kind, body, namespace in objects:
        try:
            await client.create(kind, body, namespace=namespace)
        except AlreadyExists:
            continue


def _build_kafka(wanted: SampleCluster) -> dict[str, Any]:
    copies = min(wanted.brokers, _MOST_REPLICAS)
    return {
        "metadata": {"name": CLUSTER, "annotations": _NO_SECURITY if not wanted.secure else {}},
        "spec": {
            "kafka": {
                "version": KAFKA_VERSION,
                "metadataVersion": METADATA_VERSION,
                "listeners": [_SECURE if wanted.secure else _PLAIN],
                "rack": {"topologyKey": "topology.kubernetes.io/zone"},
                "config": {
                    "default.replication.factor": copies,
                    "min.insync.replicas": max(copies - 1, 1),
                    "offsets.topic.replication.factor": copies,
                    "transaction.state.log.replication.factor": copies,
                    "transaction.state.log.min.isr": max(copies - 1, 1),
                },
            },
            "cruiseControl": {
                "autoRebalance": [
                    {"mode": "add-brokers", "settings": _SETTINGS},
                    {"mode": "remove-brokers", "settings": _SETTINGS},
                ]
            },
        },
    }


def _build_user(password: str) -> dict[str, Any]:
    labels = {"strimzi.io/kind": "KafkaUser", "strimzi.io/cluster": CLUSTER}
    return {"metadata": {"name": USER, "labels": labels}, "stringData": {"password": password}}


def _build_settings() -> dict[str, Any]:
    return {"metadata": {"name": _SETTINGS}, "spec": {"replicationThrottle": _THROTTLE}}


def _build_pools(wanted: SampleCluster) -> list[dict[str, Any]]:
    if wanted.combined:
        return [_build_pool(BROKERS, wanted.brokers, ["controller", "broker"], "[0-99]")]
    return [
        _build_pool(CONTROLLERS, 1, ["controller"], "[100-199]"),
        _build_pool(BROKERS, wanted.brokers, ["broker"], "[0-99]"),
    ]


def _build_pool(name: str, replicas: int, roles: list[str], node_ids: str) -> dict[str, Any]:
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"strimzi.io/cluster": CLUSTER, "strimzi.io/pool-name": name}},
    }
    return {
        "metadata": {
            "name": name,
            "labels": {"strimzi.io/cluster": CLUSTER},
            "annotations": {"strimzi.io/next-node-ids": node_ids},
        },
        "spec": {
            "replicas": replicas,
            "roles": roles,
            "storage": {"type": "jbod", "volumes": [{"id": 0, "type": "persistent-claim", "size": "1Gi"}]},
            "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
            "template": {"pod": {"topologySpreadConstraints": [spread]}},
        },
    }


async def fill_topics(bootstrap: tuple[str, ...], login: ClientLogin | None) -> None:
    """Create the topics and write records into them, unless they exist.

    The client blocks while no broker answers. Its thread is a daemon, so the process ends without waiting for it.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not done.done():
            done.set_result(None)

    def run_client() -> None:
        try:
            _fill_topics({"bootstrap_servers": list(bootstrap), **(login.build_options() if login else {})})
        except KafkaError as error:
            log.warning("kafka.no_sample_topics", problem=str(error))
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle)

    from kafka.errors import KafkaError  # noqa: PLC0415 - heavy

    threading.Thread(target=run_client, name="sample topics", daemon=True).start()
    await done


def _fill_topics(options: dict[str, Any]) -> None:
    from kafka import KafkaAdminClient, KafkaProducer  # noqa: PLC0415 - heavy

    admin = KafkaAdminClient(**options)
    try:
        known = set(admin.list_topics())
        missing = {name: partitions for name, partitions in _TOPICS.items() if name not in known}
        if not missing:
            return
        # -1: the default of the brokers.
        copies = {"replication_factor": -1}
        admin.create_topics({name: {**copies, "num_partitions": count} for name, count in missing.items()})
    finally:
        admin.close()
    producer = KafkaProducer(**options, acks="all", batch_size=1 << 20, max_request_size=4 << 20)
    try:
        for name, partitions in missing.items():
            for number in range(partitions * _RECORDS_PER_PARTITION):
                producer.send(name, bytes(_RECORD_BYTES), partition=number % partitions)
        producer.flush(timeout=_FLUSH_S)
    finally:
        producer.close()
