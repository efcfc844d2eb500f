"""Prometheus metrics of the fleet manager (docs/design/fleet.md 12, E12), in a registry of their own.

The names are those of the original service, literally: its counters do not end in `_total`, so they are written as
samples without a type. Values that describe rows are replaced as a whole, so that rows that are gone leave no series.
"""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from plimsoll.fleet.reporting.row_gauges import build_row_gauges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.reporting.row_gauges import RowGauges
    from plimsoll.fleet.workers.general import ObservedRows

    Labels = tuple[str, ...]

PREFIX: Final = "kas_fleet_manager_"
_OPERATION: Final = ("operation",)
_WORKER: Final = ("worker_type",)
_JOB: Final = ("jobType",)
_QUERY: Final = ("status", "query")
_REQUEST: Final = ("method", "path", "code")
REQUEST_COUNT: Final = "api_inbound_request_count"
REQUEST_DURATION: Final = "api_inbound_request_duration"
"""Named as services of the same API family name theirs, so that their dashboards work: without our prefix."""
_CLUSTER_BUCKETS_S: Final = (1800.0, 2400.0, 3600.0, 4800.0, 7200.0, 10800.0)
_KAFKA_BUCKETS_S: Final = (30.0, 60.0, 120.0, 180.0, 240.0, 270.0, 300.0, 360.0, 600.0, 900.0, 1800.0, 3600.0)
_QUERY_BUCKETS_S: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_REQUEST_BUCKETS_S: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


class FleetMetrics(Collector):
    """What one process counts. Gauges about rows are those of its last general pass."""

    def __init__(self, policy: FleetPolicy) -> None:
        self._policy = policy
        self._counts: dict[str, Counter[Labels]] = {name: Counter() for name in _COUNTERS}
        self._decisions: Counter[Labels] = Counter()
        self._durations_s: dict[str, float] = {}
        self._reserved: dict[str, dict[tuple[str, str], int]] = {}
        self._rows: RowGauges | None = None
        self._list_leading: Callable[[], Iterable[str]] = tuple
        self._workers: tuple[str, ...] = ()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._lock = Lock()
        """Guards the counts of queries, because threads write them."""
        self._queries: Counter[Labels] = Counter()
        self._requests: Counter[Labels] = Counter()
        self._cluster_durations = self._build_histogram(
            f"{PREFIX}worker_cluster_duration",
            "Seconds from the registration of a cluster until it is ready.",
            _JOB,
            _CLUSTER_BUCKETS_S,
        )
        self._kafka_durations = self._build_histogram(
            f"{PREFIX}worker_kafka_duration", "Seconds from a request until the Kafka is ready.", _JOB, _KAFKA_BUCKETS_S
        )
        self._query_durations = self._build_histogram(
            f"{PREFIX}database_query_duration", "Seconds that a statement took.", _QUERY, _QUERY_BUCKETS_S
        )
        self._request_durations = self._build_histogram(
            REQUEST_DURATION, "Seconds that a request took.", _REQUEST, _REQUEST_BUCKETS_S
        )

    def expose(self) -> bytes:
        """All values in Prometheus' text format."""
        return generate_latest(self._registry)

    # ---- what is counted

    def show_leaders(self, workers: Iterable[str], list_leading: Callable[[], Iterable[str]]) -> None:
        """The workers of this process, and which of them it leads when the page is asked for."""
        self._workers = tuple(workers)
        self._list_leading = list_leading

    def count_pass(self, worker: str, *, errors: int, duration_s: float) -> None:
        self._durations_s[worker] = duration_s
        outcome = "reconciler_failure_count" if errors else "reconciler_success_count"
        self._counts[outcome][worker,] += 1
        self._counts["reconciler_errors_count"][worker,] += errors

    def count_decision(self, worker: str, decision: str, reason: str, number: int = 1) -> None:
        self._decisions[worker, decision, reason] += number

    def count_kafka_operation(self, operation: str, *, is_success: bool) -> None:
        self._count_operation("kafka", operation, is_success=is_success)

    def count_cluster_operation(self, operation: str, *, is_success: bool) -> None:
        self._count_operation("cluster", operation, is_success=is_success)

    def set_reserved(self, cluster_id: str, counts: Mapping[tuple[str, str], int]) -> None:
        self._reserved[cluster_id] = dict(counts)

    def observe_cluster_creation(self, duration_s: float) -> None:
        self._cluster_durations.labels("cluster_create").observe(duration_s)

    def observe_kafka_creation(self, duration_s: float) -> None:
        self._kafka_durations.labels("kafka_create").observe(duration_s)

    def count_query(self, kind: str, *, is_success: bool, duration_s: float) -> None:
        labels = ("success" if is_success else "failure", kind)
        with self._lock:
            self._queries[labels] += 1
        self._query_durations.labels(*labels).observe(duration_s)

    def count_request(self, method: str, path: str, code: int, *, duration_s: float) -> None:
        labels = (method, path, str(int(code)))
        self._requests[labels] += 1
        self._request_durations.labels(*labels).observe(duration_s)

    def observe_rows(self, rows: ObservedRows) -> None:
        self._rows = build_row_gauges(rows, self._policy)
        live = {cluster.cluster_id for cluster in rows.capacity.clusters}
        for cluster_id in set(self._reserved) - live:
            del self._reserved[cluster_id]

    def _count_operation(self, kind: str, operation: str, *, is_success: bool) -> None:
        self._counts[f"{kind}_operations_total_count"][operation,] += 1
        if is_success:
            self._counts[f"{kind}_operations_success_count"][operation,] += 1

    def _build_histogram(self, name: str, help_text: str, labels: Labels, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, help_text, labels, buckets=buckets, registry=self._registry)

    # ---- the page

    def collect(self) -> Iterator[Metric]:
        for name, (help_text, labels) in _COUNTERS.items():
            yield _build_untyped(f"{PREFIX}{name}", help_text, labels, self._counts[name])
        with self._lock:
            queries = self._queries.copy()
        yield _build_untyped(f"{PREFIX}database_query_count", "Statements that the database ran.", _QUERY, queries)
        yield _build_untyped(REQUEST_COUNT, "Requests that the API answered.", _REQUEST, self._requests)
        yield self._build_decisions()
        yield _build_gauge(
            "reconciler_duration_in_seconds",
            "How long the last pass took.",
            _WORKER,
            _build_worker_labels(self._durations_s),
        )
        leading = frozenset(self._list_leading())
        yield _build_gauge(
            "leader_worker",
            "1 while this process leads the worker, otherwise 0.",
            _WORKER,
            {(worker,): float(worker in leading) for worker in self._workers},
        )
        yield _build_gauge(
            "prewarmed_kafka_instances",
            "Reserved instances by their reported status.",
            ("cluster_id", "instance_type", "status"),
            {
                (cluster_id, *key): value
                for cluster_id, counts in self._reserved.items()
                for key, value in counts.items()
            },
        )
        if self._rows is not None:
            yield from self._collect_rows(self._rows)

    def _collect_rows(self, rows: RowGauges) -> Iterator[Metric]:
        place = ("region", "instance_type", "cluster_id", "cloud_provider")
        gauges: tuple[tuple[str, str, Labels, Mapping[Labels, float]], ...] = (
            ("cluster_status_count", "Clusters by status.", ("status",), rows.cluster_statuses),
            (
                "cluster_status_since_created_in_seconds",
                "The age of a cluster in its present status.",
                ("id", "cluster_id", "status"),
                rows.cluster_ages_s,
            ),
            (
                "kafka_per_cluster_count",
                "Streaming units of the Kafkas on a cluster.",
                ("cluster_id", "external_id"),
                rows.units_per_cluster,
            ),
            ("cluster_status_capacity_max", "Streaming units that a cluster can hold.", place, rows.capacity_max),
            ("cluster_status_capacity_used", "Streaming units in use.", place, rows.capacity_used),
            ("cluster_status_capacity_available", "Streaming units that are free.", place, rows.capacity_available),
            ("kafka_requests_status_count", "Kafka requests by status.", ("status",), rows.kafka_statuses),
            (
                "kafka_requests_current_status_info",
                "1 for the present status of a Kafka request.",
                ("status", "id", "cluster_id"),
                rows.kafka_infos,
            ),
            (
                "kafka_requests_status_since_created_in_seconds",
                "The age of a Kafka request in its present status.",
                ("status", "id", "cluster_id"),
                rows.kafka_ages_s,
            ),
        )
        for name, help_text, labels, values in gauges:
            yield _build_gauge(name, help_text, labels, values)
        silence = GaugeMetricFamily(
            "plimsoll_fleet_agent_last_report_seconds",
            "Seconds since the last report of an agent.",
            labels=("cluster_id",),
        )
        for key, value in sorted(rows.agent_silences_s.items()):
            silence.add_metric(key, value)
        yield silence
        orphans = GaugeMetricFamily(
            "plimsoll_fleet_orphans", "Clusters of a provider that no row knows.", labels=("provider",)
        )
        for key, value in sorted(rows.orphans.items()):
            orphans.add_metric(key, value)
        yield orphans
        problems = GaugeMetricFamily(
            "plimsoll_fleet_cluster_problems", "Problems of a cluster by their kind.", labels=("id", "problem")
        )
        for key, value in sorted(rows.problems.items()):
            problems.add_metric(key, value)
        yield problems

    def _build_decisions(self) -> Metric:
        family = CounterMetricFamily(
            "plimsoll_fleet_decisions", "Decisions by worker and reason.", labels=("worker", "decision", "reason")
        )
        for key, number in sorted(self._decisions.items()):
            family.add_metric(key, number)
        return family


_COUNTERS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "reconciler_success_count": ("Passes without an error.", _WORKER),
    "reconciler_failure_count": ("Passes with at least one error.", _WORKER),
    "reconciler_errors_count": ("Errors of passes.", _WORKER),
    "kafka_operations_success_count": ("Operations on Kafkas that succeeded.", _OPERATION),
    "kafka_operations_total_count": ("Operations on Kafkas.", _OPERATION),
    "cluster_operations_success_count": ("Operations on clusters that succeeded.", _OPERATION),
    "cluster_operations_total_count": ("Operations on clusters.", _OPERATION),
}


def _build_worker_labels(values: Mapping[str, float]) -> dict[Labels, float]:
    return {(key,): value for key, value in values.items()}


def _build_gauge(name: str, help_text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    family = GaugeMetricFamily(f"{PREFIX}{name}", help_text, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, value)
    return family


def _build_untyped(name: str, help_text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    metric = Metric(name, help_text, "unknown")
    for key, value in sorted(values.items()):
        metric.add_sample(name, dict(zip(labels, key, strict=True)), value)
    return metric
