"""Where automatic rebalancing of each Kafka stands, from its objects: for people and for machines."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 -- msgspec resolves it at run time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.core.values import Value
from plimsoll.kafka.model.rebalances import RebalanceState
from plimsoll.kafka.wire.names import CLUSTER_LABEL, TEMPLATE_ANNOTATION, is_annotated
from plimsoll.kafka.wire.rebalance_status import read_state
from plimsoll.kafka.wire.status_views import read_status_views

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.kafka.model.auto_rebalance import AutoRebalance
    from plimsoll.objects.api.kafka import Kafka, KafkaRebalance


class RebalanceOverview(Value, rename="camel"):
    """A KafkaRebalance of a cluster."""

    name: str
    state: str
    message: str = ""


class ClusterOverview(Value, rename="camel"):
    """A Kafka. `ready`: the status of its condition. `state`: of automatic rebalancing, empty if it was never used."""

    namespace: str
    name: str
    ready: str
    state: str
    add_brokers: tuple[int, ...]
    remove_brokers: tuple[int, ...]
    since: datetime | None
    rebalances: tuple[RebalanceOverview, ...]
    execution: str = ""
    """The id of an execution that moves replicas while no KafkaRebalance shows it."""
    problem: str = ""
    """Why it is not ready, what it warns of, or that it is paused."""


def describe_clusters(
    kafkas: Iterable[Kafka],
    rebalances: Iterable[KafkaRebalance],
    stored: Mapping[tuple[str, str], AutoRebalance] | None = None,
    executions: Mapping[tuple[str, str], str] | None = None,
) -> tuple[ClusterOverview, ...]:
    """All clusters by namespace and name, with their rebalances. `stored`: what a companion stored of some of them.

    `executions`: the ids of those that engines of Plimsoll have recorded.
    """
    of_companion, recorded = stored or {}, executions or {}
    by_cluster: dict[tuple[str, str], list[RebalanceOverview]] = {}
    for rebalance in rebalances:
        metadata = rebalance.metadata
        key = metadata.namespace, metadata.labels.get(CLUSTER_LABEL, "")
        by_cluster.setdefault(key, []).append(_describe_rebalance(rebalance))
    found = []
    for kafka in kafkas:
        key = kafka.metadata.namespace, kafka.metadata.name
        state = of_companion.get(key) or read_status_views(kafka.status)
        described = _describe_cluster(kafka, state, by_cluster.get(key, []))
        is_shown = any(rebalance.state == RebalanceState.REBALANCING.value for rebalance in described.rebalances)
        found.append(described if is_shown else replace(described, execution=recorded.get(key, "")))
    return tuple(sorted(found, key=lambda cluster: (cluster.namespace, cluster.name)))


def _describe_rebalance(rebalance: KafkaRebalance) -> RebalanceOverview:
    if is_annotated(rebalance.metadata.annotations, TEMPLATE_ANNOTATION):
        return RebalanceOverview(name=rebalance.metadata.name, state="template")
    reading = read_state(rebalance.status.conditions)
    message = str(reading.problem) if reading.problem is not None else reading.condition.message
    return RebalanceOverview(name=rebalance.metadata.name, state=reading.state.value, message=message)


def _describe_cluster(kafka: Kafka, stored: AutoRebalance, rebalances: list[RebalanceOverview]) -> ClusterOverview:
    conditions = kafka.status.conditions
    ready = [condition.status for condition in conditions if condition.type == "Ready"]
    if any(condition.type == "NotReady" and condition.status == "True" for condition in conditions):
        ready = ["False"]
    problems = [
        condition for condition in conditions if condition.type in {"NotReady", "Warning", "ReconciliationPaused"}
    ]
    return ClusterOverview(
        namespace=kafka.metadata.namespace,
        name=kafka.metadata.name,
        ready=ready[0] if ready else "Unknown",
        state=stored.state.value,
        add_brokers=stored.add_brokers,
        remove_brokers=stored.remove_brokers,
        since=stored.state_since or stored.last_transition_time,
        rebalances=tuple(sorted(rebalances, key=lambda rebalance: rebalance.name)),
        problem="; ".join(
            f"{condition.reason or condition.type}: {condition.message}".strip(": ") for condition in problems
        ),
    )
