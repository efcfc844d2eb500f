"""The statuses of clusters and Kafka requests, with the groups that the rules use (docs/design/fleet.md 1.2, 1.6)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ClusterStatus(StrEnum):
    """The life of a data-plane cluster, in order."""

    ACCEPTED = "cluster_accepted"
    PROVISIONING = "cluster_provisioning"
    PROVISIONED = "cluster_provisioned"
    WAITING = "waiting_for_kas_fleetshard_operator"
    READY = "ready"
    DEPROVISIONING = "deprovisioning"
    CLEANUP = "cleanup"
    FAILED = "failed"


TERRAFORMING: Final = frozenset(
    {ClusterStatus.ACCEPTED, ClusterStatus.PROVISIONING, ClusterStatus.PROVISIONED, ClusterStatus.WAITING}
)
"""A cluster that is being made: it blocks another creation for its locator and has no capacity yet."""
DELETING: Final = frozenset({ClusterStatus.DEPROVISIONING, ClusterStatus.CLEANUP})
REPORTING: Final = frozenset({ClusterStatus.WAITING, ClusterStatus.READY})
"""Statuses in which the report of an agent is stored."""


class KafkaStatus(StrEnum):
    """The life of a Kafka request."""

    ACCEPTED = "accepted"
    PREPARING = "preparing"
    PROVISIONING = "provisioning"
    READY = "ready"
    FAILED = "failed"
    DEPROVISION = "deprovision"
    DELETING = "deleting"
    SUSPENDING = "suspending"
    SUSPENDED = "suspended"
    RESUMING = "resuming"


ENDING: Final = frozenset({KafkaStatus.DEPROVISION, KafkaStatus.DELETING})
"""A Kafka that goes away. Ordinary updates of its fields are ignored."""
LISTED_FOR_AGENTS: Final = frozenset(
    set(KafkaStatus) - {KafkaStatus.ACCEPTED, KafkaStatus.PREPARING} - {KafkaStatus.DELETING}
)
"""Statuses in which an agent is asked to run, or to remove, a Kafka."""
CONSUMING: Final = frozenset(set(KafkaStatus) - {KafkaStatus.DELETING})
"""Statuses in which a Kafka consumes streaming units on its cluster."""


class ClusterType(StrEnum):
    """`enterprise`: a cluster of a customer. Automatic scaling ignores it."""

    MANAGED = "managed"
    ENTERPRISE = "enterprise"


class ProviderType(StrEnum):
    """The adapter that makes the cluster."""

    OCM = "ocm"
    STANDALONE = "standalone"
    CLUSTER_API = "cluster_api"
    AWS_EKS = "aws_eks"
    """Accepted in files for compatibility. No adapter exists."""


class ScalingType(StrEnum):
    """How clusters come and go: not at all, by the manual file, or by the rules of docs/design/fleet.md 6 and 7."""

    NONE = "none"
    MANUAL = "manual"
    AUTO = "auto"
