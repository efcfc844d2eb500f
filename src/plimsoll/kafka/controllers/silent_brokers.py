"""Brokers that Kafka does not hear from, on a cluster in which nothing else is to be done.

A quiet reconcile asks no broker. So this check is made now and then, and at once if a pod is not ready or a broker was
silent before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.kafka.planning.scaling.reasons import format_brokers
from plimsoll.kafka.wire.kafka_status import read_warnings

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.core.clock import Clock
    from plimsoll.kafka.controllers.cluster_observer import ObservedCluster
    from plimsoll.kafka.controllers.ports import BrokerView

BROKERS_SILENT: Final = "BrokersSilent"
CHECK_EVERY_S: Final = 60.0
"""The least time between two checks of a cluster that looks healthy."""


@dataclass(slots=True)
class _Check:
    at_s: float
    was_silent: bool


class SilentBrokers:
    """Finds silent brokers of all clusters, and remembers when it looked."""

    def __init__(self, brokers: BrokerView, clock: Clock) -> None:
        self._brokers = brokers
        self._clock = clock
        self._checks: dict[tuple[str, str], _Check] = {}

    async def find(
        self, observed: ObservedCluster, expected: Collection[int], *, alive: frozenset[int] | None
    ) -> Reason | None:
        """The warning about brokers of `expected` that are not alive. `alive` None: Kafka is asked, if it is time.

        Raises `KafkaUnavailable` and `KafkaRefused` if no broker answers.
        """
        kafka = observed.kafka
        if alive is None and not self._is_due(observed):
            return None
        if alive is None:
            alive = await self._brokers.list_alive(kafka)
        silent = sorted(set(expected) - alive)
        key = kafka.metadata.namespace, kafka.metadata.name
        self._checks[key] = _Check(self._clock.monotonic_s(), was_silent=bool(silent))
        return _warn(silent) if silent else None

    def forget(self, namespace: str, name: str) -> None:
        self._checks.pop((namespace, name), None)

    def _is_due(self, observed: ObservedCluster) -> bool:
        metadata = observed.kafka.metadata
        now_s = self._clock.monotonic_s()
        warned = any(warning.code == BROKERS_SILENT for warning in read_warnings(observed.status.get("conditions")))
        check = self._checks.setdefault((metadata.namespace, metadata.name), _Check(now_s, was_silent=warned))
        return check.was_silent or not _is_every_pod_ready(observed) or now_s - check.at_s >= CHECK_EVERY_S


def _is_every_pod_ready(observed: ObservedCluster) -> bool:
    brokers = {pool.name for pool in observed.requested if pool.was_broker}
    statuses = [
        (pod_set.view.status.ready_pods, len(pod_set.node_ids))
        for name, pod_set in observed.pod_sets.items()
        if name in brokers
    ]
    return all(ready >= listed for ready, listed in statuses)


def _warn(silent: Collection[int]) -> Reason:
    return Reason(
        code=BROKERS_SILENT,
        message=f"Kafka does not hear from {format_brokers(tuple(silent))}: fenced, or not registered any more",
        facts={"brokers": list(silent)[:100]},
    )
