"""Every metric of every process, with its labels: collected from the parts that expose them.

`python -m tests.deploy.watching.metric_page > docs/reference/metrics.md` writes the page of it; tests
compare dashboards and alerts with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.metrics import MetricWrapperBase

from plimsoll.fleet.agent.metrics import AgentMetrics
from plimsoll.fleet.reporting.metrics import FleetMetrics
from plimsoll.fleet.reporting.row_gauges import RowGauges
from plimsoll.kafka.model.executions import ExecutionProgress
from plimsoll.kafka.reporting.metrics import KafkaMetrics
from plimsoll.kafka.reporting.operator_metrics import OperatorMetrics
from plimsoll.nodes.reporting.metrics.families import WITHOUT_TOTAL, Families
from plimsoll.operator.metrics import ControllerMetrics
from plimsoll.runtime.clocks import RealClock
from plimsoll.tidb.reporting.metrics import ReconcileMetrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client import CollectorRegistry, Metric


@dataclass(frozen=True, slots=True, order=True)
class CataloguedMetric:
    """A metric as Prometheus shows it: counters end in `_total` where the page writes them so."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str

    def list_series(self) -> tuple[str, ...]:
        """The names of its series."""
        suffixes = {"histogram": ("_bucket", "_count", "_sum"), "summary": ("_count", "_sum")}
        return tuple(self.name + suffix for suffix in suffixes.get(self.kind, ("",)))


PROCESSES: Final = {
    "nodes": "The node autoscaler and ProvisioningRequests (`plimsoll run nodes`)",
    "kafka": "The Kafka operator (`plimsoll run kafka`)",
    "kafka engine": "A rebalance engine (`plimsoll kafka cruise-control`)",
    "tidb": "The TiDB autoscaler (`plimsoll run tidb`)",
    "fleet": "The fleet manager (`plimsoll run fleet`)",
    "agent": "The agent (`plimsoll run agent`)",
    "controllers": "Every controller process, beside its own metrics",
}


def collect_catalogue() -> dict[str, tuple[CataloguedMetric, ...]]:
    """By process, sorted by name."""
    sources: dict[str, Iterable[CataloguedMetric]] = {
        "nodes": _read_registry(Families().registry),
        "kafka": _read_registry(OperatorMetrics(RealClock()).registry),
        "kafka engine": _read_kafka_engine(),
        "tidb": _read_registry(ReconcileMetrics().registry),
        "fleet": _read_fleet(),
        "agent": _read_registry(AgentMetrics()._registry),
        "controllers": _read_families(ControllerMetrics().collect()),
    }
    return {process: tuple(sorted(metrics)) for process, metrics in sources.items()}


def _read_registry(registry: CollectorRegistry) -> Iterator[CataloguedMetric]:
    for collector in list(registry._collector_to_names):
        if isinstance(collector, MetricWrapperBase):
            yield _build(collector._name, collector._type or "", collector._labelnames, collector._documentation)


def _read_families(families: Iterable[Metric]) -> Iterator[CataloguedMetric]:
    for family in families:
        labels: tuple[str, ...] = tuple(getattr(family, "_labelnames", None) or ())
        if not labels and family.samples:
            labels = tuple(family.samples[0].labels)
        yield _build(family.name, family.type, labels, family.documentation)


def _read_kafka_engine() -> Iterator[CataloguedMetric]:
    metrics = KafkaMetrics(ExecutionProgress)
    metrics._last = _make_plan()
    return _read_families(list(metrics.collect()))


def _read_fleet() -> Iterator[CataloguedMetric]:
    metrics = FleetMetrics(policy=None)  # type: ignore[arg-type]  # only rows are judged by it
    metrics.count_pass("w", errors=1, duration_s=1)
    metrics.count_pass("w", errors=0, duration_s=1)
    metrics.count_kafka_operation("create", is_success=True)
    metrics.count_cluster_operation("create", is_success=True)
    metrics.count_query("select", is_success=True, duration_s=1)
    metrics.count_request("GET", "/", 200, duration_s=1)
    metrics._rows = RowGauges()
    yield from _read_families(metrics.collect())
    yield from _read_registry(metrics._registry)


def _make_plan() -> Any:
    """The parts of a plan that metrics show."""
    state = SimpleNamespace(brokers=(), replica_counts=(), broker_bytes=())
    bounds = SimpleNamespace(moves=0, least_moves=0)
    return SimpleNamespace(balancedness_before=100.0, bounds=bounds, goals=(), before=state)


def _build(name: str, kind: str, labels: Iterable[str], text: str) -> CataloguedMetric:
    is_suffixed = kind == "counter" and name not in WITHOUT_TOTAL
    shown = f"{name}_total" if is_suffixed else name
    return CataloguedMetric(shown, {"unknown": "counter"}.get(kind, kind), tuple(labels), text)
