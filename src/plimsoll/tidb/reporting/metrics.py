"""Counts what passes did, for `/metrics`. Everything counted stands in a `ReconcileResult`, as in all other telling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from plimsoll.tidb.model.reconcile_result import Phase
from plimsoll.tidb.reporting.messages import VERBS

if TYPE_CHECKING:
    from plimsoll.tidb.model.reconcile_result import ComponentResult, ReconcileResult

_PREFIX: Final = "plimsoll_tidb"
_OF_AUTOSCALER: Final = ("namespace", "autoscaler")


class PassMetrics:
    """In a registry of its own: two autoscalers in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._passes = Counter(f"{_PREFIX}_passes", "Passes by how they ended.", ("result",), registry=self.registry)
        self._acts = Counter(
            f"{_PREFIX}_acts",
            "What was begun with TidbClusters, and what came of it.",
            ("component", "verb", "result"),
            registry=self.registry,
        )
        self._held = Counter(
            f"{_PREFIX}_held", "Changes that were wanted and not made.", ("component", "reason"), registry=self.registry
        )
        self._unanswered = Counter(
            f"{_PREFIX}_unanswered",
            "Questions without a usable answer.",
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
            "When an autoscaler was last looked at without trouble.",
            _OF_AUTOSCALER,
            registry=self.registry,
        )
        self._groups: dict[tuple[str, str], set[tuple[str, str]]] = {}

    def observe(self, result: ReconcileResult) -> None:
        whose = (result.about.namespace, result.about.name)
        ended = "failed" if result.failures else result.standing.value.replace(" ", "_")
        self._passes.labels(ended).inc()
        for component in result.components:
            self._observe_component(component)
        self._blocked.labels(*whose).set(any(act_done.is_blocked for act_done in result.done))
        if not result.failures:
            self._last_success.labels(*whose).set(result.at.timestamp())
        if result.standing is Phase.ACTED:
            self._observe_groups(result, whose)

    def forget(self, namespace: str, name: str) -> None:
        """An autoscaler is gone."""
        for key in self._groups.pop((namespace, name), ()):
            self._replicas.remove(namespace, name, *key)
            self._desired.remove(namespace, name, *key)

    def exposition(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self.registry)

    def _observe_component(self, result: ComponentResult) -> None:
        name = result.component.value
        for act_done in result.done:
            self._acts.labels(name, VERBS[type(act_done.act)], act_done.result.value).inc()
        for held in result.decided.held:
            self._held.labels(name, held.reason.code).inc()
        if result.no_answer is not None:
            self._unanswered.labels(name, result.no_answer.code).inc()

    def _observe_groups(self, result: ReconcileResult, whose: tuple[str, str]) -> None:
        there: set[tuple[str, str]] = set()
        for component in result.components:
            for group, status in component.status.items():
                key = (component.component.value, group)
                there.add(key)
                self._replicas.labels(*whose, *key).set(status.replicas or 0)
                self._desired.labels(*whose, *key).set(
                    status.replicas or 0 if status.desired_replicas is None else status.desired_replicas
                )
        for gone in self._groups.get(whose, set()) - there:
            self._replicas.remove(*whose, *gone)
            self._desired.remove(*whose, *gone)
        self._groups[whose] = there
