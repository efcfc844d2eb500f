"""Settings of the Kafka operator."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from plimsoll.core.values import Value

NAME: Final = "kafka-operator"
"""The field manager and the source of Events."""
LEASE: Final = "plimsoll-kafka"
LAST_PLANS_MAP: Final = "plimsoll-kafka-last-plans"
RESYNC_S: Final = 120.0
"""Strimzi's full reconciliation interval."""


class KafkaMode(StrEnum):
    """Whose the Kafka objects are."""

    OPERATOR = "operator"
    """Ours: Kafkas, node pools and pod sets are reconciled."""
    COMPANION = "companion"
    """Strimzi's: they are never written; automatic KafkaRebalances are created where a Kafka asks for it."""


class RebalanceEngine(StrEnum):
    """What plans and moves."""

    PLIMSOLL = "plimsoll"
    """Our engine, in this process."""
    CRUISE_CONTROL = "cruise-control"
    """The Cruise Control of each cluster, by its Service."""


class KafkaSettings(Value):
    """What the operator of the clusters chose."""

    mode: KafkaMode = KafkaMode.OPERATOR
    engine: RebalanceEngine = RebalanceEngine.PLIMSOLL
    serves_engines: bool = False
    """Other programs reach the engine of each cluster as its Cruise Control. Beside Strimzi there are engines only
    then: otherwise Strimzi's Cruise Controls plan and move."""
    dry_run: bool = False
    namespace: str = ""
    """The namespace of the Kafkas; empty: all namespaces."""
    controller_namespace: str = "kube-system"
    """The namespace of the ConfigMap of Plimsoll's controllers, which holds the pause annotation."""
    resync_s: float = RESYNC_S
    workers: int = 4
    """Clusters that are reconciled at a time: one may wait for minutes until its pods are gone."""

    @property
    def has_engines(self) -> bool:
        """Whether this process plans and moves."""
        is_served = self.mode is KafkaMode.OPERATOR or self.serves_engines
        return self.engine is RebalanceEngine.PLIMSOLL and is_served
