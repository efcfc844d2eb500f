"""The operator's metrics, with Strimzi's names where Strimzi has them: dashboards and alerts go on to work.

Reconciles are counted per kind and namespace. `strimzi_resource_state` is 1 for an object whose last reconcile
succeeded and 0 for one whose last reconcile failed, with the reason.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Summary, generate_latest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plimsoll.core.clock import Clock

KAFKA: Final = "Kafka"
KAFKA_REBALANCE: Final = "KafkaRebalance"
_PER_NAMESPACE: Final = ("kind", "namespace")
_PER_OBJECT: Final = ("kind", "name", "resource_namespace", "reason")
_FAILED: Final = "ReconcileFailed"


class Measured:
    """The result of a reconcile that is under way. `problem`: the reason of a failure. `is_gone`: it was deleted."""

    def __init__(self) -> None:
        self.problem = ""
        self.is_gone = False


class OperatorMetrics:
    """Metrics in their own registry, so that two operators in one process do not mix."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.registry = CollectorRegistry()
        registry = self.registry
        self._reconciliations = Counter(
            "strimzi_reconciliations", "Reconciles of individual resources.", _PER_NAMESPACE, registry=registry
        )
        self._successful = Counter(
            "strimzi_reconciliations_successful", "Reconciles that succeeded.", _PER_NAMESPACE, registry=registry
        )
        self._failed = Counter(
            "strimzi_reconciliations_failed", "Reconciles that failed.", _PER_NAMESPACE, registry=registry
        )
        self._durations = Summary(
            "strimzi_reconciliations_duration_seconds", "Times of reconciles.", _PER_NAMESPACE, registry=registry
        )
        self._resources = Gauge(
            "strimzi_resources", "Resources that the operator sees.", _PER_NAMESPACE, registry=registry
        )
        self._states = Gauge(
            "strimzi_resource_state",
            "1: the last reconcile of the resource succeeded. 0: it failed.",
            _PER_OBJECT,
            registry=registry,
        )
        self._reasons: dict[tuple[str, str, str], str] = {}
        """By kind, namespace and name: the reason in the series of an object."""

    @contextmanager
    def measure(self, kind: str, namespace: str, name: str) -> Iterator[Measured]:
        """Count a reconcile: its time, and whether it failed. An exception is a failure."""
        measured, began_s = Measured(), self._clock.monotonic_s()
        try:
            yield measured
        except Exception:
            measured.problem = _FAILED
            raise
        finally:
            self._durations.labels(kind, namespace).observe(self._clock.monotonic_s() - began_s)
            self._reconciliations.labels(kind, namespace).inc()
            (self._failed if measured.problem else self._successful).labels(kind, namespace).inc()
            self._set_state(kind, namespace, name, measured)

    def _set_state(self, kind: str, namespace: str, name: str, measured: Measured) -> None:
        key = (kind, namespace, name)
        before = self._reasons.pop(key, None)
        if before is not None and (measured.is_gone or before != measured.problem):
            self._states.remove(kind, name, namespace, before)
        if not measured.is_gone:
            self._reasons[key] = measured.problem
            self._states.labels(kind, name, namespace, measured.problem).set(0 if measured.problem else 1)

    def set_resources(self, counts: Mapping[tuple[str, str], int]) -> None:
        """The number of resources by kind and namespace."""
        self._resources.clear()
        for (kind, namespace), count in counts.items():
            self._resources.labels(kind, namespace).set(count)

    def format_exposition(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry)
