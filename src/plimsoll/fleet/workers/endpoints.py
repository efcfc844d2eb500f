"""The names that a Kafka gets in its cluster: its namespace and its bootstrap host. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest

_NAME_CHARACTERS: Final = 10
"""A host label has 63 characters, and the id needs most of them."""
_INGRESS: Final = "apps."
_KAFKA_INGRESS: Final = "kas."


def build_namespace(kafka: KafkaRequest) -> str:
    return f"kafka-{kafka.id.lower()}"


def build_bootstrap_host(kafka: KafkaRequest, cluster: Cluster) -> str:
    """The host under the DNS name of the cluster; empty: the DNS name is not known yet."""
    if not cluster.cluster_dns:
        return ""
    name = kafka.name[:_NAME_CHARACTERS].rstrip("-")
    return f"{name}-{kafka.id.lower()}.{_KAFKA_INGRESS}{cluster.cluster_dns.removeprefix(_INGRESS)}"
