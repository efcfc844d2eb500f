"""Prometheus metrics of reconciles. Everything counted comes from a `ReconcileResult`, like all other reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from plimsoll.tidb.model.reconcile_result import Phase
from plimsoll.tidb.reporting.messages import VERBS

if TYPE_CHECKING:
    from plimsoll.tidb.model.reconcile_result import ComponentResult, ReconcileResult

_PREFIX: Final = "plimsoll_tidb"
_OF_AUTOSCALER: Final = ("namespace", "autoscaler")


class ReconcileMetrics:
    """Metrics in their own registry, so that two autoscalers in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._passes = Counter(f"{_PREFIX}_passes", "Reconciles by result.", ("result",), registry=self.registry)
        self._acts = Counter(
            f"{_PREFIX}_acts",
            "Actions on TidbClusters by result.",
            ("component", "verb", "result"),
            registry=self.registry,
        )
        self._held = Counter(
            f"{_PREFIX}_held", "Desired changes that were held.", ("component", "reason"), registry=self.registry
        )
        self._unanswered = Counter(
            f"{_PREFIX}_unanswered",
            "Requests without a usable answer.",
            ("component", "reason"),
            registry=self.registry,
        )
        labels = (*_OF_AUTOSCALER, "component", "group")
        self._replicas = Gauge(f"{_PREFIX}_replicas", "Instances of a group.", labels, registry=self.registry)
        self._desired = Gauge(
            f"{_PREFIX}_desired_replicas", "Instances that a group should have.", labels, registry=self.registry
        )
        self._blocked = Gauge(
            f"{_PREFIX}_scale_in_blocked", "1 while a removal is not safe.", _OF_AUTOSCALER, registry=self.registry
        )
        self._last_success = Gauge(
            f"{_PREFIX}_last_pass_timestamp_seconds",
            "When an autoscaler was last reconciled without failures.",
            _OF_AUTOSCALER,
            registry=self.registry,
        )
        self._groups: dict[tuple[str, str], set[tuple[str, str]]] = {}

    def observe(self, result: ReconcileResult) -> None:
        autoscaler = (result.autoscaler.namespace, result.autoscaler.name)
        outcome = "failed" if result.failures else result.phase.value.replace(" ", "_")
        self._passes.labels(outcome).inc()
        for component in result.components:
            self._observe_component(component)
        self._blocked.labels(*autoscaler).set(any(act_result.is_blocked for act_result in result.done))
        if not result.failures:
            self._last_success.labels(*autoscaler).set(result.at.timestamp())
        if result.phase is Phase.ACTED:
            self._observe_groups(result, autoscaler)

    def forget(self, namespace: str, name: str) -> None:
        """Remove the series of a deleted autoscaler."""
        for key in self._groups.pop((namespace, name), ()):
            self._replicas.remove(namespace, name, *key)
            self._desired.remove(namespace, name, *key)

    def format_exposition(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _observe_component(self, result: ComponentResult) -> None:
        name = result.component.value
        for act_result in result.done:
            self._acts.labels(name, VERBS[type(act_result.act)], act_result.result.value).inc()
        for held in result.decision.held:
            self._held.labels(name, held.reason.code).inc()
        if result.no_answer is not None:
            self._unanswered.labels(name, result.no_answer.code).inc()

    def _observe_groups(self, result: ReconcileResult, autoscaler: tuple[str, str]) -> None:
        present: set[tuple[str, str]] = set()
        for component in result.components:
            for group, status in component.status.items():
                key = (component.component.value, group)
                present.add(key)
                self._replicas.labels(*autoscaler, *key).set(status.replicas or 0)
                self._desired.labels(*autoscaler, *key).set(
                    status.replicas or 0 if status.desired_replicas is None else status.desired_replicas
                )
        for gone in self._groups.get(autoscaler, set()) - present:
            self._replicas.remove(*autoscaler, *gone)
            self._desired.remove(*autoscaler, *gone)
        self._groups[autoscaler] = present
