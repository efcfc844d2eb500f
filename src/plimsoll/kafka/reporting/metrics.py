"""The executor and the last plan on `/metrics`. Values are read when the page is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from plimsoll.kafka.model.executions import ExecutorState
from plimsoll.kafka.model.proposals import GoalStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client import Metric

    from plimsoll.kafka.model.executions import ExecutionProgress
    from plimsoll.kafka.model.proposals import OptimizationResult


class KafkaMetrics(Collector):
    """The state of an executor, and the last plan that was asked for."""

    def __init__(self, progress: Callable[[], ExecutionProgress]) -> None:
        self._progress = progress
        self._last: OptimizationResult | None = None
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def record_plan(self, result: OptimizationResult) -> None:
        self._last = result

    def expose(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        progress = self._progress()
        state = GaugeMetricFamily("plimsoll_kafka_executor_state", "1 for the present phase.", labels=["state"])
        for phase in ExecutorState:
            state.add_metric([phase.value], float(progress.state is phase))
        yield state
        partitions = GaugeMetricFamily(
            "plimsoll_kafka_execution_movements",
            "Movements of the running execution, by type and state.",
            labels=["type", "state"],
        )
        for kind, counts in (
            ("inter_broker", progress.inter_broker),
            ("intra_broker", progress.intra_broker),
            ("leader", progress.leaders),
        ):
            for name in ("finished", "in_progress", "pending", "aborting", "aborted", "dead"):
                partitions.add_metric([kind, name], float(getattr(counts, name)))
        yield partitions
        yield _build_gauge("plimsoll_kafka_execution_bytes_total", "Bytes to move.", progress.total_bytes)
        yield _build_gauge("plimsoll_kafka_execution_bytes_finished", "Bytes moved.", progress.finished_bytes)
        if self._last is not None:
            yield from _describe_plan(self._last)


def _describe_plan(result: OptimizationResult) -> Iterator[Metric]:
    yield _build_gauge(
        "plimsoll_kafka_balancedness_score", "The score before the last plan, 0 to 100.", result.balancedness_before
    )
    yield _build_gauge("plimsoll_kafka_plan_moves", "Replicas that the last plan moves.", result.bounds.moves)
    yield _build_gauge(
        "plimsoll_kafka_plan_least_moves", "Replicas that any such plan must move.", result.bounds.least_moves
    )
    violated = GaugeMetricFamily(
        "plimsoll_kafka_goal_violated", "1 for a goal that the last plan leaves violated.", labels=["goal"]
    )
    for goal in result.goals:
        violated.add_metric([goal.goal], float(goal.status is GoalStatus.VIOLATED))
    yield violated
    replicas = GaugeMetricFamily("plimsoll_kafka_broker_replicas", "Replicas per broker.", labels=["broker"])
    held = GaugeMetricFamily("plimsoll_kafka_broker_bytes", "Bytes of replicas per broker.", labels=["broker"])
    for index, broker in enumerate(result.before.brokers):
        replicas.add_metric([str(broker.id)], float(result.before.replica_counts[index]))
        held.add_metric([str(broker.id)], float(result.before.broker_bytes[index]))
    yield replicas
    yield held


def _build_gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)
