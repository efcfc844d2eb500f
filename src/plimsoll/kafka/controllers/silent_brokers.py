"""Which brokers a reconcile looks at, and brokers that Kafka does not hear from while nothing else is to be done.

A quiet reconcile asks no broker. So the check for silent ones is made now and then, and at once if a pod is not ready
or a broker was silent before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.plans import Reason
from plimsoll.kafka.brokers.ports import KafkaRefused, KafkaUnavailable
from plimsoll.kafka.planning.scaling.reasons import format_brokers
from plimsoll.kafka.wire.kafka_status import read_warnings
from plimsoll.kafka.wire.names import SKIP_SCALE_DOWN_CHECK_ANNOTATION, is_annotated

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.core.clock import Clock
    from plimsoll.kafka.controllers.broker_registrations import ClusterDecision
    from plimsoll.kafka.controllers.cluster_observer import ObservedCluster
    from plimsoll.kafka.controllers.ports import BrokerView

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

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
        self._registered: dict[tuple[str, str], frozenset[int]] = {}
        """Brokers that were seen registered, for clusters whose definitions prune the list of them from the status."""

    def select_expected(self, observed: ObservedCluster, decision: ClusterDecision) -> frozenset[int]:
        """The brokers that have to stay and were registered before.

        Strimzi's definitions prune `registeredNodeIds`: then they are remembered. A new process takes a warning that
        stands as the sign that all but new ones were registered.
        """
        kafka, assignment = observed.kafka, decision.assignment
        desired = frozenset(assignment.desired_brokers)
        if kafka.status.registered_node_ids:
            return desired - decision.list_unlisted(kafka)
        key = kafka.metadata.namespace, kafka.metadata.name
        known = self._registered.get(key)
        if known is None:
            known = desired.difference(decision.stored.add_brokers) if _is_warned(observed) else frozenset()
        known = known.intersection(desired).difference(assignment.added_brokers)
        seen = frozenset[int]() if decision.snapshot is None else decision.snapshot.registered
        self._registered[key] = known | (seen & desired)
        return known

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
        self._registered.pop((namespace, name), None)

    def _is_due(self, observed: ObservedCluster) -> bool:
        metadata = observed.kafka.metadata
        now_s = self._clock.monotonic_s()
        before = _Check(now_s, was_silent=_is_warned(observed))
        check = self._checks.setdefault((metadata.namespace, metadata.name), before)
        return check.was_silent or not _is_every_pod_ready(observed) or now_s - check.at_s >= CHECK_EVERY_S


class BrokerCheck:
    """Looks at the brokers of one Kafka in one reconcile: what depends on them, and whether all are alive."""

    def __init__(self, brokers: BrokerView, silent: SilentBrokers, observed: ObservedCluster) -> None:
        self._brokers = brokers
        self._silent = silent
        self._observed = observed
        self._kafka = observed.kafka
        self._is_check_skipped = is_annotated(observed.kafka.metadata.annotations, SKIP_SCALE_DOWN_CHECK_ANNOTATION)

    async def run(self, decision: ClusterDecision) -> None:
        """Look at the brokers if anything depends on it. Brokers that leave must be seen; others may not be up yet.

        A cluster that was up and has no ready broker is looked at too: it is down if no broker answers.
        """
        assignment = decision.assignment
        must_see = bool(assignment.removed_brokers or assignment.used_to_be_brokers)
        has_no_ready_broker = self._has_no_ready_broker(decision)
        is_up = any(pod_set.view.status.ready_pods for pod_set in self._observed.pod_sets.values())
        is_useful = bool(
            decision.stored.add_brokers
            or decision.stored.remove_brokers
            or self._observed.list_left()
            or decision.list_unlisted(self._kafka)
            or (not self._kafka.status.cluster_id and is_up)
        )
        is_needed = must_see or has_no_ready_broker or assignment.has_leaving_controllers
        if not is_needed and not (is_useful and is_up):
            await self._find_silent(decision)
            return
        try:
            leaving = (*assignment.removed_brokers, *assignment.used_to_be_brokers)
            decision.snapshot = await self._brokers.observe(self._kafka, leaving=leaving)
            await self._find_silent(decision)
        except (KafkaUnavailable, KafkaRefused) as error:
            if must_see and not self._is_check_skipped:
                raise
            log.info("brokers.unseen", kafka=self._kafka.metadata.name, problem=str(error))
            decision.is_waiting = True
            if has_no_ready_broker and not assignment.problems:
                message = f"no broker pod is ready, and the brokers cannot be seen: {error}"
                decision.unavailable = Reason(code="KafkaUnavailable", message=message)
            elif self._kafka.status.cluster_id:  # else they are starting
                decision.warnings.append(_warn_of_unseen(error))

    async def _find_silent(self, decision: ClusterDecision) -> None:
        """Warn of brokers that were registered, have to stay, and are not alive."""
        if not self._kafka.status.cluster_id:
            return
        expected = self._silent.select_expected(self._observed, decision)
        if not expected:
            return
        alive = None if decision.snapshot is None else decision.snapshot.registered
        try:
            warning = await self._silent.find(self._observed, expected, alive=alive)
        except (KafkaUnavailable, KafkaRefused) as error:
            warning = _warn_of_unseen(error)
        if warning is not None:
            decision.warnings.append(warning)
            decision.is_waiting = True

    def _has_no_ready_broker(self, decision: ClusterDecision) -> bool:
        """Whether brokers that have answered before have no ready pod now."""
        assignment, pod_sets = decision.assignment, self._observed.pod_sets
        pools = [ids.pool for ids in assignment.pools if ids.was_broker and ids.pool in pod_sets]
        is_created = bool(self._kafka.status.cluster_id and assignment.desired_brokers)
        return is_created and not any(pod_sets[pool].view.status.ready_pods for pool in pools)


def _is_warned(observed: ObservedCluster) -> bool:
    return any(warning.code == BROKERS_SILENT for warning in read_warnings(observed.status.get("conditions")))


def _warn_of_unseen(error: Exception) -> Reason:
    return Reason(code="KafkaUnavailable", message=f"the brokers cannot be seen: {error}")


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
