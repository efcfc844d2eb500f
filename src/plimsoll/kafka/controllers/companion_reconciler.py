"""Automatic rebalancing beside Strimzi (`--kafka-mode=companion`): Kafkas, node pools and pod sets are never written.

Strimzi gives out node ids, makes pods and keeps a broker that holds replicas. This reconciler sees from the statuses of
the node pools what was added and what is to leave, creates the automatic KafkaRebalances, and keeps its state in a
ConfigMap of its own, `CLUSTER-auto-rebalancing`. It works only for Kafkas with the annotation
`plimsoll.io/auto-rebalancing: "true"`: where Strimzi's own feature is at work, two would create the same objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog
from msgspec.structs import replace

from plimsoll.core.plans import Reason
from plimsoll.kafka.brokers.ports import KafkaRefused, KafkaUnavailable
from plimsoll.kafka.controllers.cluster_actuator import ClusterActuator
from plimsoll.kafka.controllers.cluster_observer import MODES, KafkaObserver
from plimsoll.kafka.controllers.config_maps.auto_rebalance_states import AutoRebalanceStates, StoredState
from plimsoll.kafka.controllers.errors import ObjectsUnreadable, ReconcileFailed
from plimsoll.kafka.controllers.rebalance_inputs import RebalanceInputs
from plimsoll.kafka.model.auto_rebalance import (
    AutoRebalance,
    AutoRebalanceObservation,
    AutoRebalanceStep,
    ModeConfiguration,
)
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.scaling.auto_rebalance_step import decide_step
from plimsoll.kafka.planning.scaling.node_ids import assign_node_ids
from plimsoll.kafka.reporting.cluster_reporter import ClusterResult
from plimsoll.kafka.wire.auto_rebalance_config import AutoRebalanceConfiguration, read_auto_rebalance_configuration
from plimsoll.kafka.wire.names import (
    PAUSE_ANNOTATION,
    build_auto_rebalance_name,
    is_annotated,
)
from plimsoll.operator.pause import ActionGuard, read_pause_annotation

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.kafka.controllers.cluster_observer import ObservedCluster
    from plimsoll.kafka.controllers.ports import BrokerSnapshot, ClusterDependencies
    from plimsoll.kafka.model.node_ids import NodeIdAssignment
    from plimsoll.objects.api.kafka import Kafka

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

ENABLED_ANNOTATION: Final = "plimsoll.io/auto-rebalancing"
RECHECK_S: Final = 5.0
_BOTH: Final = AutoRebalanceConfiguration(modes=tuple(ModeConfiguration(mode=mode) for mode in MODES))


class CompanionReconciler:
    """Reconciles all Kafkas that ask for it."""

    def __init__(self, dependencies: ClusterDependencies) -> None:
        self._dependencies = dependencies
        self._observer = KafkaObserver(dependencies.client)
        self._actuator = ClusterActuator(dependencies.client, dependencies.clock, dependencies.cruise_controls)
        self._states = AutoRebalanceStates(dependencies.client)
        self._inputs = RebalanceInputs(self._observer, dependencies.brokers, dependencies.cruise_controls)

    async def run(self, namespace: str, name: str) -> ClusterResult | None:
        """Reconcile one cluster; None: it is gone, or does not ask for it and nothing of ours is left.

        `name` empty: node pools that belong to no cluster, which are Strimzi's and never written.
        """
        if not name:
            return None
        try:
            observed = await self._observer.observe(namespace, name)
        except ReconcileFailed as error:
            return await self._report_unreadable(namespace, name, error)
        if observed is None:
            await self._release(namespace, name)
            return None
        await self._configure_engine(observed)
        try:
            state = await self._states.read(observed.kafka, is_needed=is_enabled(observed.kafka))
            if not is_enabled(observed.kafka) and state is None:
                return None
            result = await self._run(observed, state or StoredState())
        except (KafkaUnavailable, KafkaRefused) as error:
            problem = Reason(code="KafkaUnavailable", message=f"the brokers cannot be seen: {error}")
            result = ClusterResult(kafka=observed.kafka, at=self._get_now(), problem=problem, retry_after_s=RECHECK_S)
        except ReconcileFailed as error:
            result = ClusterResult(
                kafka=observed.kafka, at=self._get_now(), problem=error.reason, retry_after_s=RECHECK_S
            )
        return await self._report(result)

    async def _report_unreadable(self, namespace: str, name: str, error: ReconcileFailed) -> ClusterResult:
        """An object that cannot be decoded is named in an Event and in the journal: the objects are Strimzi's."""
        kafka = await self._observer.observe_kafka(namespace, name)
        if kafka is None:
            raise error
        objects = error.objects if isinstance(error, ObjectsUnreadable) else ()
        return await self._report(
            ClusterResult(kafka=kafka.kafka, at=self._get_now(), problem=error.reason, unreadable=objects)
        )

    async def _configure_engine(self, observed: ObservedCluster) -> None:
        """Start the engine of a cluster where other programs may ask for it: they do not wait for a scaling."""
        kafka = observed.kafka
        if kafka.spec.cruise_control is None or await self._find_pause(kafka) is not None:
            return
        try:
            problems = await self._dependencies.brokers.configure(kafka, tuple(observed.pools.values()))
        except (KafkaUnavailable, KafkaRefused) as error:
            log.warning("engine.unavailable", kafka=kafka.metadata.name, problem=str(error))
            return
        for problem in problems:
            log.warning("engine.misconfigured", kafka=kafka.metadata.name, problem=str(problem))

    async def _release(self, namespace: str, name: str) -> None:
        """The Kafka is gone: nothing holds its automatic rebalances any longer."""
        await self._dependencies.brokers.forget(namespace, name)
        if (await self._dependencies.read_guard()).reason is not None:
            return
        for mode in MODES:
            await self._actuator.delete_rebalance(namespace, build_auto_rebalance_name(name, mode))

    def _get_now(self) -> datetime:
        return self._dependencies.clock.now().replace(microsecond=0)

    async def _report(self, result: ClusterResult) -> ClusterResult:
        await self._dependencies.reporter.report(result)
        return result

    async def _run(self, observed: ObservedCluster, state: StoredState) -> ClusterResult:
        kafka = observed.kafka
        configuration = _read_configuration(kafka)
        assignment = assign_node_ids(observed.requested, cluster_id=kafka.status.cluster_id or "known")
        present = _list_brokers(observed)
        known = present if state.known is None else state.known
        added = tuple(sorted(set(present) - set(known)))
        snapshot = await self._look(observed, assignment, state.auto_rebalance, added)
        blocked = _find_blocked(assignment, snapshot)
        seen = AutoRebalanceObservation(
            now=self._get_now(),
            configuration=configuration.modes,
            is_configuration_complete=configuration.is_complete,
            stored=state.auto_rebalance,
            added=added,
            removed=assignment.removed_brokers,
            blocked=blocked,
            brokers=present,
            add_rebalance=observed.rebalances.get(Mode.ADD_BROKERS),
            remove_rebalance=observed.rebalances.get(Mode.REMOVE_BROKERS),
            is_paused=is_annotated(kafka.metadata.annotations, PAUSE_ANNOTATION),
            is_deleting=kafka.metadata.deletion_timestamp is not None,
        )
        completed = await self._inputs.complete(seen, observed, snapshot)
        step = decide_step(completed.observation)
        pause = await self._find_pause(kafka)
        if pause is not None:
            return ClusterResult(kafka=kafka, at=self._get_now(), step=step, warnings=step.warnings, pause=pause)
        await self._carry_out(observed, step, state, present)
        waits = [wait for wait in (step.retry_after_s, RECHECK_S if completed.is_waiting else None) if wait is not None]
        return ClusterResult(
            kafka=kafka,
            at=self._get_now(),
            step=step,
            actions=step.actions,
            warnings=(*configuration.warnings, *observed.warnings, *completed.problems, *step.warnings),
            retry_after_s=min(waits, default=None),
        )

    async def _carry_out(
        self, observed: ObservedCluster, step: AutoRebalanceStep, state: StoredState, present: tuple[int, ...]
    ) -> None:
        kafka = observed.kafka
        ahead = step.write_ahead
        if ahead is None and step.actions:
            # The additions must outlive a crash in the middle of the actions.
            ahead = replace(state.auto_rebalance, add_brokers=step.stored.add_brokers)
        if ahead is not None:
            await self._write_state(kafka, state, StoredState(auto_rebalance=ahead, known=present))
        stored = await self._actuator.carry_out(observed, step, [])
        await self._write_state(kafka, state, StoredState(auto_rebalance=stored, known=present))

    async def _write_state(self, kafka: Kafka, before: StoredState, state: StoredState) -> None:
        if state != before:
            await self._states.write(kafka, state)

    async def _look(
        self, observed: ObservedCluster, assignment: NodeIdAssignment, stored: AutoRebalance, added: tuple[int, ...]
    ) -> BrokerSnapshot | None:
        """Look at the brokers if anything depends on it. Raises `KafkaUnavailable`."""
        if not (assignment.removed_brokers or added or stored.add_brokers or stored.remove_brokers):
            return None
        return await self._dependencies.brokers.observe(observed.kafka, leaving=assignment.removed_brokers)

    async def _find_pause(self, kafka: Kafka) -> Reason | None:
        guard = await self._dependencies.read_guard()
        return guard.reason or ActionGuard(paused=read_pause_annotation(kafka.metadata.annotations)).reason


def is_enabled(kafka: Kafka) -> bool:
    """Whether a Kafka asks the companion for automatic rebalancing."""
    return is_annotated(kafka.metadata.annotations, ENABLED_ANNOTATION)


def _read_configuration(kafka: Kafka) -> AutoRebalanceConfiguration:
    """The modes of the spec; both modes where it has none. A Kafka that no longer asks has no mode."""
    if not is_enabled(kafka):
        return AutoRebalanceConfiguration()
    configured = read_auto_rebalance_configuration(kafka.spec.cruise_control)
    return configured if configured.modes or configured.warnings else _BOTH


def _list_brokers(observed: ObservedCluster) -> tuple[int, ...]:
    """The brokers that Strimzi has given ids to."""
    return tuple(sorted({node_id for pool in observed.requested if pool.was_broker for node_id in pool.node_ids}))


def _find_blocked(assignment: NodeIdAssignment, snapshot: BrokerSnapshot | None) -> tuple[int, ...]:
    removed = assignment.removed_brokers
    return removed if snapshot is not None and snapshot.in_use.intersection(removed) else ()
