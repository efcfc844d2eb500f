"""The versions that a cluster installs: the latest that are ready (docs/design/fleet.md 1.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.fleet.wire.managed_kafkas import KafkaVersions

if TYPE_CHECKING:
    from plimsoll.fleet.model.clusters import Cluster


def find_latest_versions(cluster: Cluster) -> KafkaVersions | None:
    """The latest ready Strimzi with its latest Kafka and IBP version; None: no Kafka can be installed."""
    ready = [strimzi for strimzi in cluster.available_strimzi_versions if strimzi.ready]
    if not ready:
        return None
    latest = ready[-1]
    if not latest.kafkaVersions or not latest.kafkaIBPVersions:
        return None
    return KafkaVersions(
        kafka=latest.kafkaVersions[-1].version,
        strimzi=latest.version,
        kafka_ibp=latest.kafkaIBPVersions[-1].version,
    )
