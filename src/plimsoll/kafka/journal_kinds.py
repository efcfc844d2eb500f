"""The kinds of objects that the Kafka operator and `plimsoll kafka rebalance` decide about."""

from __future__ import annotations

from typing import Final

from plimsoll.journal.decisions import JournalKind, JournalKinds
from plimsoll.kafka.settings import LAST_PLANS_MAP

KINDS: Final = JournalKinds(
    subsystem="kafka",
    last_plans=LAST_PLANS_MAP,
    kinds=(
        JournalKind(
            name="kafka",
            words=("kafkas", "k"),
            advice="a cluster is recorded when it waits, is rebalanced or has a problem; plimsoll kafka status shows "
            "its present state",
        ),
        JournalKind(
            name="kafkarebalance",
            words=("kafkarebalances", "kr"),
            advice="a rebalance is recorded when its state changes; kubectl get kafkarebalance shows the present state",
        ),
        JournalKind(
            name="kafkanodepool",
            words=("kafkanodepools", "knp"),
            advice="a node pool is recorded when its pods change, or when it has a problem; plimsoll why "
            "kafka/NS/NAME explains its cluster",
        ),
        JournalKind(
            name="broker",
            words=("brokers",),
            has_namespace=False,
            advice="a broker is recorded when plimsoll kafka rebalance plans or moves its replicas",
        ),
        JournalKind(
            name="topic",
            words=("topics",),
            has_namespace=False,
            advice="a topic is recorded when plimsoll kafka rebalance plans or moves its replicas",
        ),
        JournalKind(
            name="goal",
            words=("goals",),
            has_namespace=False,
            advice="a goal is recorded when a rebalance leaves it violated, or when it does not apply",
        ),
    ),
)
