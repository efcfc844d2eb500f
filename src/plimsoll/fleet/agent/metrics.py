"""The agent's metrics, in a registry of their own."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from plimsoll.fleet.agent.wire.managed_kafka_objects import is_reserved, read_instance_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.fleet.agent.instance_reconciler import InstanceResult
    from plimsoll.fleet.agent.model.capacity import ClusterCapacity


class AgentMetrics:
    """Counted per agent."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._polls = Counter(
            "plimsoll_agent_polls", "Polls of the control plane by result.", ("result",), registry=registry
        )
        self._instances = Gauge(
            "plimsoll_agent_instances",
            "Instances by type, kind and reported state.",
            ("instance_type", "kind", "state"),
            registry=registry,
        )
        self._units = Gauge(
            "plimsoll_agent_streaming_units",
            "Streaming units: max, and those that are claimed.",
            ("instance_type", "state"),
            registry=registry,
        )

    def count_poll(self, *, is_success: bool) -> None:
        self._polls.labels("success" if is_success else "failure").inc()

    def set_instances(self, results: Iterable[InstanceResult]) -> None:
        counted = collections.Counter(
            (
                read_instance_type(result.managed),
                "reserved" if is_reserved(result.managed) else "real",
                "Ready" if result.report.is_ready else result.report.reason,
            )
            for result in results
        )
        self._instances.clear()
        for labels, number in counted.items():
            self._instances.labels(*labels).set(number)

    def set_capacity(self, capacity: ClusterCapacity) -> None:
        for instance_type, units in capacity.types.items():
            self._units.labels(instance_type, "max").set(units.max_units)
            self._units.labels(instance_type, "claimed").set(units.max_units - units.remaining_units)

    def format_exposition(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self._registry)
