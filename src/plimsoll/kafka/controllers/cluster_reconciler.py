"""Reconciles a Kafka cluster in the order of docs/design/kafka.md section 4.2.

Observe fresh, assign node ids, store added brokers first, check what leaves, shrink pod sets, write pool statuses, grow
pod sets, rebalance automatically, unregister brokers that are gone, write the status. A reconcile that fails writes the
reason and leaves everything else as it is stored; the next one derives what is left to do from what exists.
"""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import structlog
from msgspec.structs import replace

from plimsoll.core.plans import Reason
from plimsoll.kafka.brokers.ports import KafkaRefused, KafkaUnavailable
from plimsoll.kafka.controllers.broker_registrations import BrokerRegistrations, ClusterDecision
from plimsoll.kafka.controllers.cluster_actuator import ClusterActuator
from plimsoll.kafka.controllers.cluster_observer import MODES, KafkaObserver
from plimsoll.kafka.controllers.config_maps.auto_rebalance_states import AutoRebalanceStates, KeptState
from plimsoll.kafka.controllers.errors import ObjectsUnreadable, ReconcileFailed
from plimsoll.kafka.controllers.pod_set_changes import list_pod_set_changes
from plimsoll.kafka.controllers.pool_finalizers import PoolFinalizers
from plimsoll.kafka.controllers.rebalance_inputs import RebalanceInputs
from plimsoll.kafka.controllers.silent_brokers import BrokerCheck, SilentBrokers
from plimsoll.kafka.model.auto_rebalance import AutoRebalanceObservation
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.scaling.auto_rebalance_step import decide_step, plan_write_ahead
from plimsoll.kafka.planning.scaling.node_ids import assign_node_ids
from plimsoll.kafka.planning.scaling.quorum_check import keep_controller_roles, keep_voters
from plimsoll.kafka.planning.scaling.scale_down_check import (
    find_blocked,
    keep_roles,
    warn_of_blocked,
    warn_of_last_brokers,
)
from plimsoll.kafka.reporting.cluster_reporter import ClusterResult
from plimsoll.kafka.wire.auto_rebalance_config import read_auto_rebalance_configuration
from plimsoll.kafka.wire.kafka_status import add_pause, build_conditions, explain_creation, keep_warnings
from plimsoll.kafka.wire.names import (
    PAUSE_ANNOTATION,
    SKIP_SCALE_DOWN_CHECK_ANNOTATION,
    build_auto_rebalance_name,
    is_annotated,
)
from plimsoll.kafka.wire.node_pools import explain_no_kafka, explain_no_nodes
from plimsoll.kafka.wire.status_views import build_status_views
from plimsoll.kube.errors import UnreadableAnswer
from plimsoll.operator.pause import PAUSED, ActionGuard, read_pause_annotation

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.core.plans import Action
    from plimsoll.kafka.controllers.cluster_observer import ObservedCluster
    from plimsoll.kafka.controllers.ports import ClusterDependencies
    from plimsoll.kafka.model.auto_rebalance import (
        AutoRebalance,
        AutoRebalanceAction,
        AutoRebalanceStep,
    )

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

RECHECK_S: Final = 5.0
"""How soon a cluster is looked at again while its brokers or pods change without an event of Kubernetes."""


class ClusterReconciler:
    """Reconciles all Kafka clusters, each by one worker at a time."""

    def __init__(self, dependencies: ClusterDependencies) -> None:
        self._dependencies = dependencies
        self._observer = KafkaObserver(dependencies.client)
        self._actuator = ClusterActuator(dependencies.client, dependencies.clock, dependencies.cruise_controls)
        self._finalizers = PoolFinalizers(dependencies.client)
        self._silent = SilentBrokers(dependencies.brokers, dependencies.clock)

    async def run(self, namespace: str, name: str) -> ClusterResult | None:
        """Reconcile one cluster; None: it is gone. Raises errors of the API server, which end the reconcile.

        `name` empty: node pools that belong to no cluster are let go, and say so.
        """
        if not name:
            await self._release(namespace, name)
            return None
        try:
            observed = await self._observer.observe(namespace, name)
        except ReconcileFailed as error:
            return await self._report_unreadable(namespace, name, error)
        if observed is None:
            await self._release(namespace, name)
            return None
        result = await self._build_reconcile(observed).run()
        await self._dependencies.reporter.report(result)
        return result

    async def _report_unreadable(self, namespace: str, name: str, error: ReconcileFailed) -> ClusterResult:
        """An object that cannot be decoded is named in conditions, of the Kafka and of its pool; that is all."""
        observed = await self._observer.observe_kafka(namespace, name)
        if observed is None:
            raise error
        result = await self._build_reconcile(observed).fail(error.reason)
        if isinstance(error, ObjectsUnreadable):
            result = dataclasses.replace(result, unreadable=error.objects)
            if result.pause is None:
                await self._actuator.explain_unreadable_pools(error.objects)
        await self._dependencies.reporter.report(result)
        return result

    def _build_reconcile(self, observed: ObservedCluster) -> _Reconcile:
        return _Reconcile(self._dependencies, self._observer, self._actuator, self._finalizers, self._silent, observed)

    async def _release(self, namespace: str, name: str) -> None:
        """The Kafka is gone: nothing holds its automatic rebalances and its node pools any longer."""
        if name:
            await self._dependencies.brokers.forget(namespace, name)
            self._silent.forget(namespace, name)
        if (await self._dependencies.read_guard()).reason is not None:
            return
        for mode in MODES if name else ():
            await self._actuator.delete_rebalance(namespace, build_auto_rebalance_name(name, mode))
        pools = await self._finalizers.remove_from_all(namespace, name)
        await self._actuator.explain_unreadable_pools(pools.bad)
        for pool in pools.items:
            await self._actuator.write_pool_warning(pool, explain_no_kafka(pool))


class _Reconcile:
    """Reconciles a Kafka once: it holds what this reconcile has read and written."""

    def __init__(
        self,
        dependencies: ClusterDependencies,
        observer: KafkaObserver,
        actuator: ClusterActuator,
        finalizers: PoolFinalizers,
        silent: SilentBrokers,
        observed: ObservedCluster,
    ) -> None:
        self._dependencies = dependencies
        self._observer = observer
        self._actuator = actuator
        self._finalizers = finalizers
        self._silent = silent
        self._observed = observed
        self._kafka = observed.kafka
        self._now = dependencies.clock.now().replace(microsecond=0)
        self._state = KeptState(AutoRebalanceStates(dependencies.client), observed.kafka)
        self._done: list[AutoRebalanceAction] = []
        self._pod_set_changes: tuple[Action, ...] = ()
        self._warnings_of_objects: tuple[Reason, ...] | None = None
        """What is wrong in the objects; None: they have not been looked at."""

    async def run(self) -> ClusterResult:
        try:
            return await self._run()
        except ReconcileFailed as error:
            return await self.fail(error.reason)
        except (KafkaUnavailable, KafkaRefused) as error:
            message = f"the brokers cannot be seen, and nothing is changed: {error}"
            return await self.fail(Reason(code="KafkaUnavailable", message=message))

    async def _run(self) -> ClusterResult:
        decision = self._assign(await self._state.read())
        pause = await self._find_pause()
        if self._kafka.metadata.deletion_timestamp is not None and pause is None:
            return self._conclude(await self._rebalance(decision), decision)
        if self._is_annotated(PAUSE_ANNOTATION):
            step = decide_step(await self._build_observation(decision, is_paused=True))
            await self._write_status(decision, step, problem=None, is_paused=True)
            return self._conclude(step, decision)
        await BrokerCheck(self._dependencies.brokers, self._silent, self._observed).run(decision)
        self._check_scale_down(decision)
        before = self._observed
        if pause is not None:
            self._pod_set_changes = list_pod_set_changes(before, decision.assignment, decision.blocked)
            await self._show_pause(pause)
            return self._conclude(decide_step(await self._build_observation(decision)), decision, pause=pause)
        pools = decision.assignment.pools
        await self._observer.confirm_pools(self._observed, [ids.pool for ids in pools if ids.removed])
        await self._store_added(decision)
        await self._configure_engine(decision)
        held = [ids.pool for ids in decision.assignment.pools if ids.desired and ids.pool in self._observed.pools]
        self._observed = await self._finalizers.add(self._observed, held)
        await self._scale_down(decision)
        await self._write_pool_statuses(decision)
        await self._write_pod_sets(decision)
        self._pod_set_changes = list_pod_set_changes(before, decision.assignment, decision.blocked)
        await self._release_pools(decision)
        registrations = self._build_registrations()
        await registrations.change_cordons(decision)
        step = await self._rebalance(decision)
        left = await registrations.unregister(decision)
        problem = self._find_problem(decision)
        is_created = bool(decision.get_cluster_id(self._kafka))
        creation = None if is_created else explain_creation(decision.assignment.desired_brokers)
        await self._write_status(decision, step, problem=problem or creation, registered=left)
        return self._conclude(step, decision, problem=problem)

    async def fail(self, problem: Reason) -> ClusterResult:
        """Write the reason. The rest of the status stays as it is, with the warnings that still hold."""
        guard = await self._find_pause()
        if guard is None:
            before = self._observed.status.get("conditions")
            warnings = keep_warnings(before, self._warnings_of_objects)
            conditions = build_conditions(before, now=self._now, problem=problem, warnings=warnings)
            patch = {"conditions": conditions, "observedGeneration": self._kafka.metadata.generation}
            with suppress(UnreadableAnswer):  # accepted, of a Kafka that cannot be decoded
                await self._actuator.write_kafka_status(self._observed, patch)
        return ClusterResult(
            kafka=self._kafka,
            at=self._now,
            problem=problem,
            actions=tuple(self._done),
            pod_set_changes=self._pod_set_changes,
            pause=guard,
            retry_after_s=RECHECK_S,
        )

    async def _show_pause(self, pause: Reason) -> None:
        """Add the pause to the conditions; the others stay as they are. A dry run writes nothing."""
        if pause.code != PAUSED:
            return
        conditions = add_pause(self._observed.status.get("conditions"), pause, now=self._now)
        await self._actuator.write_kafka_status(self._observed, {"conditions": conditions})

    def _conclude(
        self,
        step: AutoRebalanceStep,
        decision: ClusterDecision,
        *,
        problem: Reason | None = None,
        pause: Reason | None = None,
    ) -> ClusterResult:
        waits = [RECHECK_S] if decision.is_waiting else []
        if step.retry_after_s is not None:
            waits.append(step.retry_after_s)
        return ClusterResult(
            kafka=self._kafka,
            at=self._now,
            step=step,
            actions=tuple(self._done),
            pod_set_changes=self._pod_set_changes,
            warnings=(*decision.warnings, *step.warnings),
            problem=problem,
            pause=pause,
            retry_after_s=min(waits, default=None),
        )

    # ---- 1. node ids

    def _assign(self, stored: AutoRebalance) -> ClusterDecision:
        configuration = read_auto_rebalance_configuration(self._kafka.spec.cruise_control)
        assignment = assign_node_ids(self._observed.requested, cluster_id=self._kafka.status.cluster_id)
        self._warnings_of_objects = (*configuration.warnings, *self._observed.warnings)
        warnings = [*self._warnings_of_objects, *assignment.problems[1:]]
        return ClusterDecision(configuration=configuration, assignment=assignment, stored=stored, warnings=warnings)

    def _find_problem(self, decision: ClusterDecision) -> Reason | None:
        """Why the cluster is not as it is specified. What could be done was done."""
        if not self._observed.pools and self._kafka.spec.kafka.replicas is None:
            return explain_no_nodes(self._kafka)
        return next(iter(decision.assignment.problems), decision.unavailable)

    async def _find_pause(self) -> Reason | None:
        guard = await self._dependencies.read_guard()
        return guard.reason or ActionGuard(paused=read_pause_annotation(self._kafka.metadata.annotations)).reason

    def _is_annotated(self, annotation: str) -> bool:
        return is_annotated(self._kafka.metadata.annotations, annotation)

    # ---- 2. write-ahead

    async def _store_added(self, decision: ClusterDecision) -> None:
        """Store the added brokers before a pool or a pod set has them: a crash must not lose the list."""
        ahead = plan_write_ahead(await self._build_observation(decision, looks_up=False))
        if ahead is not None:
            await self._store(ahead)
            decision.stored = ahead

    # ---- 3. the scale-down check, and the check of the quorum, which nothing skips

    def _check_scale_down(self, decision: ClusterDecision) -> None:
        assignment, observed, snapshot = decision.assignment, self._observed, decision.snapshot
        voters = None if snapshot is None else snapshot.voters
        is_skipped = snapshot is None or self._is_annotated(SKIP_SCALE_DOWN_CHECK_ANNOTATION)
        in_use = frozenset[int]() if snapshot is None or is_skipped else snapshot.in_use
        requested, warnings = keep_roles(observed.requested, assignment, in_use)
        requested, quorum_warnings = keep_controller_roles(requested, assignment, voters)
        if warnings or quorum_warnings:
            self._observed = dataclasses.replace(observed, requested=requested)
            assignment = assign_node_ids(requested, cluster_id=self._kafka.status.cluster_id)
            decision.warnings += (*warnings, *quorum_warnings)
        assignment, warnings = keep_voters(requested, assignment, voters)
        decision.assignment = assignment
        decision.warnings += warnings
        decision.is_waiting = decision.is_waiting or bool(warnings or quorum_warnings)
        decision.blocked = find_blocked(assignment, in_use)
        if decision.blocked and not decision.configuration.has_mode(Mode.REMOVE_BROKERS):
            decision.warnings += warn_of_blocked(requested, assignment, in_use, decision.blocked)
        else:
            decision.warnings += warn_of_last_brokers(assignment, in_use, decision.blocked)

    # ---- 4. to 6. pods and pool statuses

    async def _configure_engine(self, decision: ClusterDecision) -> None:
        if self._kafka.spec.cruise_control is None:
            return
        try:
            problems = await self._dependencies.brokers.configure(self._kafka, tuple(self._observed.pools.values()))
        except (KafkaUnavailable, KafkaRefused) as error:
            log.info("engine.unavailable", kafka=self._kafka.metadata.name, problem=str(error))
            return
        decision.warnings += problems

    async def _scale_down(self, decision: ClusterDecision) -> None:
        """Shrink the pod sets by what may leave, and wait until the pods are gone."""
        gone: list[int] = []
        for pool, planned in decision.list_pools(self._observed.requested):
            if gone and planned.removed:
                await self._check_again(decision, gone)
            ids = decision.assignment.get_pool(pool.name)
            leaving = [node_id for node_id in ids.removed if node_id not in decision.blocked]
            if not leaving:
                continue
            pod_set = self._observed.pod_sets.get(pool.name)
            listed = frozenset() if pod_set is None else pod_set.node_ids
            staying = [node_id for node_id in ids.list_kept(decision.blocked) if node_id in listed]
            if await self._actuator.write_pod_set(self._observed, pool, staying):
                self._observed = await self._observer.refresh_pod_sets(self._observed)
            await self._actuator.wait_until_gone(self._kafka, pool.name, leaving)
            gone += leaving

    async def _check_again(self, decision: ClusterDecision, gone: Collection[int]) -> None:
        """The pods of another pool took minutes to go: brokers that leave next may have got replicas meanwhile."""
        if decision.snapshot is None:
            return
        is_skipped = self._is_annotated(SKIP_SCALE_DOWN_CHECK_ANNOTATION)
        if is_skipped and not decision.assignment.has_leaving_controllers:
            return
        left = tuple(broker for broker in decision.assignment.removed_brokers if broker not in gone)
        decision.snapshot = await self._dependencies.brokers.observe(self._kafka, leaving=left)
        decision.assignment, warnings = keep_voters(
            self._observed.requested, decision.assignment, decision.snapshot.voters, gone=gone
        )
        decision.warnings += warnings
        if is_skipped:
            return
        if decision.snapshot.in_use.intersection(left):
            decision.blocked = left
            decision.is_waiting = True

    async def _write_pool_statuses(self, decision: ClusterDecision) -> None:
        cluster_id = decision.get_cluster_id(self._kafka)
        for pool, ids in decision.list_pools(self._observed.requested):
            await self._actuator.write_pool_status(
                self._observed,
                pool,
                ids,
                blocked=decision.blocked,
                cluster_id=cluster_id,
                warnings=[warning for warning in decision.warnings if warning.facts.get("pool") == pool.name],
            )

    async def _write_pod_sets(self, decision: ClusterDecision) -> None:
        for pool, ids in decision.list_pools(self._observed.requested):
            if ids.problem is None and pool.name not in self._observed.orphaned:
                await self._actuator.write_pod_set(self._observed, pool, ids.list_kept(decision.blocked))

    async def _release_pools(self, decision: ClusterDecision) -> None:
        """Let deleted pools go whose pods are gone."""
        released = [
            self._observed.pools[pool.name]
            for pool, ids in decision.list_pools(self._observed.requested)
            if pool.name in self._observed.pools
            and pool.is_deleting
            and not ids.problem
            and not ids.list_kept(decision.blocked)
        ]
        if released:
            # The statuses of their pod sets have changed while the pods went.
            self._observed = await self._observer.refresh_pod_sets(self._observed)
        for pool in released:
            await self._actuator.delete_pod_set(self._observed, pool.metadata.name)
            await self._finalizers.remove(pool)

    # ---- 7. automatic rebalancing

    async def _rebalance(self, decision: ClusterDecision) -> AutoRebalanceStep:
        step = decide_step(await self._build_observation(decision))
        if step.write_ahead is not None:
            await self._store(step.write_ahead)
        return replace(step, stored=await self._actuator.carry_out(self._observed, step, self._done))

    async def _build_observation(
        self, decision: ClusterDecision, *, looks_up: bool = True, is_paused: bool = False
    ) -> AutoRebalanceObservation:
        """`looks_up` False: settings, readiness and the engine are not asked for, because nothing depends on them."""
        assignment, observed = decision.assignment, self._observed
        seen = AutoRebalanceObservation(
            now=self._now,
            configuration=decision.configuration.modes,
            is_configuration_complete=decision.configuration.is_complete,
            stored=decision.stored,
            added=assignment.added_brokers,
            removed=assignment.removed_brokers,
            blocked=decision.blocked,
            brokers=tuple(sorted({*assignment.desired_brokers, *decision.blocked})),
            add_rebalance=observed.rebalances.get(Mode.ADD_BROKERS),
            remove_rebalance=observed.rebalances.get(Mode.REMOVE_BROKERS),
            is_paused=is_paused,
            is_deleting=self._kafka.metadata.deletion_timestamp is not None,
        )
        if not looks_up or is_paused:
            return seen
        inputs = RebalanceInputs(self._observer, self._dependencies.brokers, self._dependencies.cruise_controls)
        completed = await inputs.complete(seen, observed, decision.snapshot, cordoned=decision.left_cordoned)
        decision.is_waiting = decision.is_waiting or completed.is_waiting
        decision.warnings += [problem for problem in completed.problems if problem not in decision.warnings]
        return completed.observation

    # ---- 8. cordons, before the step stores that brokers stay, and registrations

    def _build_registrations(self) -> BrokerRegistrations:
        names = [pool.name for pool in self._observed.requested]
        return BrokerRegistrations(self._dependencies.brokers, self._actuator, self._kafka, names)

    # ---- 9. status

    async def _write_status(
        self,
        decision: ClusterDecision,
        step: AutoRebalanceStep,
        *,
        problem: Reason | None,
        is_paused: bool = False,
        registered: tuple[int, ...] | None = None,
    ) -> None:
        conditions = build_conditions(
            self._observed.status.get("conditions"),
            now=self._now,
            problem=problem,
            warnings=(*decision.warnings, *step.warnings),
            is_paused=is_paused,
        )
        patch: dict[str, Any] = {"conditions": conditions, "observedGeneration": self._kafka.metadata.generation}
        if is_paused:
            await self._actuator.write_kafka_status(self._observed, patch)
        else:
            patch["kafkaVersion"] = self._kafka.spec.kafka.version or None
            patch["kafkaMetadataVersion"] = self._kafka.spec.kafka.metadata_version or None
            patch["kafkaNodePools"] = [{"name": name} for name in sorted(self._observed.pools)] or None
            if registered is not None:
                patch["registeredNodeIds"] = list(registered) or None
            if cluster_id := decision.get_cluster_id(self._kafka):
                patch["clusterId"] = cluster_id
            await self._store(step.stored, patch)

    async def _store(self, stored: AutoRebalance, patch: dict[str, Any] | None = None) -> None:
        """Write both views of automatic rebalancing, and more of the status."""
        await self._state.prepare_write(stored)
        written = await self._actuator.write_kafka_status(
            self._observed, {**build_status_views(stored), **(patch or {})}
        )
        await self._state.conclude_write(stored, written)
