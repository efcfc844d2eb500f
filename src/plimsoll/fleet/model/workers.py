"""The workers, by the names of their leases (docs/design/fleet.md 0 and 12)."""

from __future__ import annotations

from enum import StrEnum


class Worker(StrEnum):
    """In the order in which their passes run within one tick (docs/design/fleet.md E18)."""

    GENERAL_KAFKA = "general_kafka_worker"
    ACCEPTED_KAFKA = "accepted_kafka"
    PREPARING_KAFKA = "preparing_kafka"
    PROVISIONING_KAFKA = "provisioning_kafka"
    READY_KAFKA = "ready_kafka"
    DELETING_KAFKA = "deleting_kafka"
    DEPROVISIONING_CLUSTERS = "deprovisioning_clusters"
    DYNAMIC_SCALE_UP = "dynamic_scale_up"
    DYNAMIC_SCALE_DOWN = "dynamic_scale_down"
    CLUSTER = "cluster"
    CLEANUP_CLUSTERS = "cleanup_clusters"
