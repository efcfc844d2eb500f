"""Names, labels and annotations of the objects that the agent makes."""

from __future__ import annotations

from typing import Final

from plimsoll.fleet.wire.managed_kafkas import (
    DEPLOYMENT,
    ID,
    PAUSED,
    PLACEMENT_ID,
    PROFILE_TYPE,
    QUOTA_CONSUMED,
    STREAMING_UNITS,
)

__all__ = ["DEPLOYMENT", "ID", "PAUSED", "PLACEMENT_ID", "PROFILE_TYPE", "QUOTA_CONSUMED", "STREAMING_UNITS"]

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
AGENT: Final = "plimsoll-agent"
NAMESPACE_LABEL: Final = "bf2.org/managedkafka-id"
"""On a namespace: the id of the instance. The agent deletes no namespace without it."""
HASH_ANNOTATION: Final = "plimsoll.io/item-hash"
UNITS_LABEL: Final = "plimsoll.io/units"
"""On a ManagedKafka: the streaming units that the control plane specifies."""
ROLE_LABEL: Final = "plimsoll.io/kafka-role"
STRIMZI_VERSION_LABEL: Final = "bf2.org/strimziVersion"
RESERVED: Final = "reserved"
BROKERS: Final = "brokers"
CONTROLLERS: Final = "controllers"
BROKER_ROLE: Final = "broker"
CONTROLLER_ROLE: Final = "controller"
PRIORITY_CLASS: Final = "plimsoll-reserved"
CLUSTER_LABEL: Final = "strimzi.io/cluster"
POOL_LABEL: Final = "strimzi.io/pool-name"
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
