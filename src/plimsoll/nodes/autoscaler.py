"""The main loop of the node autoscaler: observe, plan, act, report (docs/design/nodes.md 6.1).

`Autoscaler.run_once` is one loop iteration. Live, the loop timer calls it; in a scenario, `{loop: …}` does. Between
iterations only times are remembered (unneeded timers, back-offs, requested scale-ups). Everything else is read again,
so that a new process can continue from the cluster alone after a crash at any point. Only time during which the cluster
was observed counts: a changed clock or an outage makes no node overdue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from plimsoll.core.errors import Unreachable
from plimsoll.core.plans import Reason
from plimsoll.nodes.actuation.node_group_maintenance import (
    EmptyGroups,
    delete_groups,
    fix_group_sizes,
    raise_to_minimum,
)
from plimsoll.nodes.actuation.taints import restore_unneeded_since
from plimsoll.nodes.actuation.timing import Pacing
from plimsoll.nodes.cluster_state.node_readiness import StartupTaints, classify_readiness
from plimsoll.nodes.cluster_state.registry import ClusterState
from plimsoll.nodes.cluster_state.templates import GroupTemplates
from plimsoll.nodes.loop_result import LoopResult
from plimsoll.nodes.loop_timings import LoopTimings
from plimsoll.nodes.model.reasons import (
    CANNOT_SEE,
    CLUSTER_UNHEALTHY,
    CONSUMING,
    LIST_NOT_BELIEVED,
    OBJECTS_SET_ASIDE,
    PODS_TOO_NEW,
)
from plimsoll.nodes.model.results import DeletedGroup
from plimsoll.nodes.observing.leaving_nodes import LeavingNodes
from plimsoll.nodes.observing.pod_filters import PodFilter, PodFilterContext
from plimsoll.nodes.observing.provider_checks import ProviderStateChecker
from plimsoll.nodes.observing.provider_state import read_provider_state
from plimsoll.nodes.observing.snapshots import LoopSnapshots, find_bad_fields, place_pods
from plimsoll.nodes.requests.controller import RequestContext
from plimsoll.nodes.scaledown.consolidation import Consolidator
from plimsoll.nodes.scaledown.orchestrator import NodeActuators, ScaleDownContext, ScaleDownOrchestrator
from plimsoll.nodes.scaleup.executor import ScaleUpExecutor
from plimsoll.nodes.scaleup.orchestrator import ScaleUpContext, ScaleUpOrchestrator
from plimsoll.objects.owners import find_controller
from plimsoll.operator.pause import ActionGuard

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.nodes.actuation.cleanup import TaintCleaner
    from plimsoll.nodes.cluster_state.changes import Changes
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.config.source import ActiveConfig, ConfigSource
    from plimsoll.nodes.model.results import CleanedNode, DeletedGroup, GroupRepair, ScaleUpPart
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.observing.listers import ClusterListers, ClusterObjects, Stale
    from plimsoll.nodes.observing.other_autoscalers import OtherAutoscaler, OtherAutoscalers
    from plimsoll.nodes.observing.pod_filters import FilteredPods
    from plimsoll.nodes.observing.provider_state import ProviderState
    from plimsoll.nodes.plan_runner import PlanRunner
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.nodes.requests.controller import RequestController
    from plimsoll.nodes.requests.transaction import RequestTransaction
    from plimsoll.nodes.scaleup.orchestrator import ExternalExpander
    from plimsoll.objects.api.pods import Pod

log = structlog.get_logger(__name__)

_MOST_SET_ASIDE: Final = 100
"""So many objects may be set aside in one loop iteration; each costs a new beginning."""
_CLOCK_TOLERANCE: Final = timedelta(seconds=1)
"""A clock that is only slewed drifts far less than this between two loop iterations."""


class LoopReporter(Protocol):
    """Reports the result of a loop iteration: log, Events, metrics, status, journal."""

    async def report(self, result: LoopResult) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerDependencies:
    """What an autoscaler works with."""

    listers: ClusterListers
    provider: Provider
    configuration: ConfigSource
    actuators: NodeActuators
    cleaner: TaintCleaner
    reporter: LoopReporter
    clock: Clock
    stopwatch_clock: Clock
    """Measures durations for metrics; no decision uses it."""
    run_planner: PlanRunner
    expander: ExternalExpander | None = None
    """The external expander, if `--expander=grpc` names one."""
    requests: RequestController | None = None
    """Serves ProvisioningRequests; None if they are not enabled."""
    other_autoscalers: OtherAutoscalers | None = None
    """Looks for other autoscalers in the cluster; None: there are none."""
    stepped: bool = False
    """True in a scenario that takes single steps: timers are not waited for, and no scheduler runs on its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observation:
    """What one loop iteration has read, and what limits its actions."""

    number: int
    now: datetime
    policy: Policy
    guard: ActionGuard
    cluster: ClusterObjects
    provider: ProviderState
    hold: Reason | None = None
    """Why nothing may shrink: a list that is not believed."""


class Autoscaler:
    """The node autoscaler of one process. Loop iterations must not overlap."""

    def __init__(self, dependencies: AutoscalerDependencies) -> None:
        self._dependencies = dependencies
        policy = dependencies.configuration.get_current().policy
        self._state = ClusterState(policy)
        self._templates = GroupTemplates(policy)
        executor = ScaleUpExecutor(dependencies.provider, self._state, dependencies.actuators.deleter)
        self._scale_up = ScaleUpOrchestrator(executor, dependencies.run_planner, dependencies.expander)
        self._scale_down = ScaleDownOrchestrator(
            dependencies.actuators,
            dependencies.run_planner,
            Consolidator(executor, dependencies.run_planner),
            stepped=dependencies.stepped,
        )
        self._empty_groups = EmptyGroups()
        self._provider_checker = ProviderStateChecker()
        self._pod_filter = PodFilter()
        self._snapshots = LoopSnapshots()
        self._leaving_nodes = LeavingNodes()
        self._loops = 0
        self._last_times = (dependencies.clock.now(), dependencies.clock.monotonic_s())
        self._blind_since_s: float | None = None
        self._has_started = False
        self._timings = LoopTimings(dependencies.stopwatch_clock)

    async def wait_until_synced(self) -> None:
        """Return once every cache that a loop iteration reads has been filled."""
        await self._dependencies.listers.wait_until_synced()
        await self._dependencies.configuration.wait_until_synced()
        if self._dependencies.requests is not None:
            await self._dependencies.requests.wait_until_synced()

    def forget_timers(self) -> None:
        """Forget how long nodes have been unneeded: the cluster was not observed, and another program may have acted.

        The next iteration starts as in a new process.
        """
        self._scale_down.forget()
        self._has_started = False

    # ---- the main flow

    async def run_once(self) -> LoopResult:
        """One loop iteration."""
        config = self._dependencies.configuration.get_current()
        self._state.policy = self._templates.policy = config.policy
        self._loops += 1
        self._timings = LoopTimings(self._dependencies.stopwatch_clock)
        with self._timings.measure("main"):
            result = await self._run_without_failing_objects(config)
        result = replace(
            result,
            hold=self._dependencies.actuators.deleter.hold,
            held_deletions=self._dependencies.actuators.deleter.take_held(),
            function_seconds=dict(self._timings.seconds),
            priority_problem=config.priority_problem,
            bad_objects=self._dependencies.listers.list_bad(),
        )
        await self._dependencies.reporter.report(result)
        return result

    async def _run_without_failing_objects(self, config: ActiveConfig) -> LoopResult:
        """Observe, plan and act. An object that makes this fail is set aside, and the rest begins again without it."""
        for _ in range(_MOST_SET_ASIDE):
            try:
                observed = await self._observe(config, self._read_clock())
                return await self._plan_and_act(observed) if isinstance(observed, _Observation) else observed
            except Exception as error:
                if not self._set_aside(error):
                    raise
        message = f"more than {_MOST_SET_ASIDE} objects cannot be judged; the next loop iteration goes on"
        return self._end_early(config, self._dependencies.clock.now(), Reason(code=OBJECTS_SET_ASIDE, message=message))

    def _set_aside(self, error: Exception) -> bool:
        """Set aside the object that an error comes from. What was computed from it is computed again."""
        bad = self._dependencies.listers.set_aside(error)
        if bad is None:
            return False
        log.warning("loop.object_set_aside", kind=bad.kind, object=f"{bad.namespace}/{bad.name}", problem=bad.problem)
        self._pod_filter = PodFilter()
        self._snapshots = LoopSnapshots()
        return True

    async def _observe(self, config: ActiveConfig, now: datetime) -> _Observation | LoopResult:
        """Read the cluster and the provider; the final result if one of them cannot be read."""
        if (stale := self._find_stale()) is not None:
            problem = f"the cluster cannot be observed: {stale}"
            return self._end_blind(config, now, problem, error_type="apiCallError", for_s=stale.age_s)
        cluster = self._dependencies.listers.read()
        if (problem_of_start := _check_not_empty(cluster, config.policy)) is not None:
            return self._end_early(config, now, problem_of_start)
        try:
            provider = await self._read_provider(cluster, config.policy, now)
        except Unreachable as error:
            return self._end_blind(config, now, str(error), error_type="cloudProviderError")
        self._end_outage()
        provider, hold = self._check_lists(cluster, provider)
        guard = ActionGuard(
            dry_run=config.policy.operation.dry_run,
            paused=config.paused,
            other_autoscaler=", ".join(map(str, await self._find_other_autoscalers(config.policy))),
        )
        return _Observation(
            number=self._loops,
            now=now,
            policy=config.policy,
            guard=guard,
            cluster=cluster,
            provider=provider,
            hold=hold,
        )

    async def _plan_and_act(self, loop: _Observation) -> LoopResult:
        result = await self._update_state(loop)
        if result.ended_early is not None:
            return result
        pods = self._filter_pods(loop)
        result = replace(
            result,
            pods_by_state=pods.by_state,
            filtered_pods=pods.filtered_out,
            ignored_fields=(*loop.provider.ignored_fields, *pods.ignored_fields),
        )
        snapshot = self._build_snapshot(loop, pods, result)
        result = replace(result, ignored_fields=(*result.ignored_fields, *find_bad_fields(snapshot.view)))
        transaction = await self._begin_requests(loop, snapshot, pods)
        if transaction is not None:
            snapshot = transaction.snapshot
            result = replace(result, requests=transaction.part, ended_early=transaction.ended_early)
            if result.ended_early is not None:
                return result
        result = await self._run_scale_up(loop, replace(result, snapshot=snapshot), transaction)
        try:
            result = await self._run_scale_down(loop, result, transaction)
        except Exception as error:
            # What was scaled up is reported; the next loop plans removals without the object.
            if not self._set_aside(error):
                raise
            return result
        return await self._adjust_groups(loop, result)

    # ---- observing

    async def _find_other_autoscalers(self, policy: Policy) -> tuple[OtherAutoscaler, ...]:
        finder = self._dependencies.other_autoscalers
        if finder is None or policy.operation.ignore_other_autoscalers:
            return ()
        return await finder.find(policy.operation)

    def _find_stale(self) -> Stale | None:
        requests = self._dependencies.requests
        return self._dependencies.listers.find_stale() or (None if requests is None else requests.find_stale())

    async def _read_provider(self, cluster: ClusterObjects, policy: Policy, now: datetime) -> ProviderState:
        provider = self._dependencies.provider
        with self._timings.measure("cloudProviderRefresh"):
            await provider.refresh()
        pods = cluster.pods.on_nodes
        return await read_provider_state(
            provider, cluster.nodes, pods, policy=policy, templates=self._templates, now=now
        )

    def _check_lists(self, cluster: ClusterObjects, read: ProviderState) -> tuple[ProviderState, Reason | None]:
        """The provider's state to plan with, and why nothing may shrink; None if all lists are believed."""
        deleter = self._dependencies.actuators.deleter
        checked = self._provider_checker.check(read, cluster.nodes, requested=deleter.requested)
        contradiction = self._dependencies.listers.find_contradiction() or checked.contradiction
        deleter.hold = Reason(code=LIST_NOT_BELIEVED, message=contradiction) if contradiction else None
        deleter.guard.nodes_of_groups = self._provider_checker.nodes_of_groups
        deleter.requested &= self._provider_checker.list_known()
        if contradiction:
            log.warning("loop.list_not_believed", problem=contradiction)
        return checked.state, deleter.hold

    async def _update_state(self, loop: _Observation) -> LoopResult:
        """Clean up old taints, update the cluster state, and fix group sizes that are wrong."""
        may_act = loop.guard.reason is None
        cleaned = await self._remove_old_taints(loop) if may_act else ()
        with self._timings.measure("updateClusterState"):
            observed = loop.provider.build_observed_cluster(
                loop.cluster.nodes, loop.policy, unreadable=loop.cluster.bad_nodes
            )
            changes = self._state.observe(observed, loop.now)
        if self._dependencies.requests is not None:
            self._dependencies.requests.record_changes(changes)
        repaired = await self._fix_group_sizes(changes) if may_act else ()
        result = LoopResult(
            number=loop.number,
            at=loop.now,
            policy=loop.policy,
            held_back=loop.guard.reason,
            health=self._state.assess_health(loop.now),
            changes=changes,
            repairs=repaired,
            cleaned=cleaned,
        )
        assert result.health is not None
        if (unhealthy := result.health.find_unhealthy_reason()) is not None:
            self._scale_down.forget()
            return replace(result, ended_early=unhealthy)
        if any(repair.after is not None and repair.failure is None for repair in repaired):
            message = "group sizes were corrected; the next loop iteration reads them again"
            return replace(result, ended_early=Reason(code="SizesRepaired", message=message))
        return result

    async def _fix_group_sizes(self, changes: Changes) -> tuple[GroupRepair, ...]:
        return await fix_group_sizes(self._dependencies.provider, changes, self._dependencies.actuators.deleter)

    async def _remove_old_taints(self, loop: _Observation) -> tuple[CleanedNode, ...]:
        """Taints of nodes that are not being removed: left by a crash, or by a removal that could not undo them."""
        deletions, cleaner = self._dependencies.actuators.deletions, self._dependencies.cleaner
        deletions.policy = loop.policy
        deletions.pacing = Pacing.STEPPED if self._dependencies.stepped else Pacing.from_policy(loop.policy)
        nodes = loop.cluster.nodes
        deletions.forget_deleted({node.metadata.name: node for node in nodes}, loop.provider.has_instance)
        options = loop.policy.scale_down
        cleaned = await cleaner.remove_deletion_taints(nodes, options, leaving=deletions.in_progress.nodes)
        if not self._has_started:
            self._scale_down.restore(restore_unneeded_since(nodes, options, loop.now))
            await cleaner.remove_soft_taints(nodes, options)
            self._has_started = True
        return cleaned

    def _filter_pods(self, loop: _Observation) -> FilteredPods:
        """Sort pods by what planning does with them. Evicted pods count until their owners have recreated them."""
        requests = self._dependencies.requests if loop.policy.requests.enabled else None
        context = PodFilterContext(
            rules=loop.policy.pods,
            now=loop.now,
            waits_for_scheduler=not self._dependencies.stepped,
            served_requests=frozenset() if requests is None else requests.find_served_pods(loop.policy),
        )
        evicted = self._dependencies.actuators.deletions.find_recently_evicted(loop.now, loop.cluster.pods)
        recreated = [pod for pod in evicted if _will_be_recreated(pod, loop.cluster)]
        return self._pod_filter.filter(loop.cluster.pods, context, extra_pods=recreated)

    def _build_snapshot(self, loop: _Observation, pods: FilteredPods, result: LoopResult) -> Snapshot:
        assert result.health is not None
        in_progress = self._dependencies.actuators.deletions.in_progress.nodes
        nodes = self._leaving_nodes.mark(loop.cluster.nodes, loop.provider, in_progress)
        cluster = replace(loop.cluster, nodes=tuple(nodes))
        snapshot = self._snapshots.build(
            cluster, loop.provider, pods, health=result.health, policy=loop.policy, number=loop.number
        )
        return self._scale_up.with_nominations(snapshot)

    # ---- planning and acting

    async def _begin_requests(
        self, loop: _Observation, snapshot: Snapshot, pods: FilteredPods
    ) -> RequestTransaction | None:
        """Read, book and check ProvisioningRequests. Those that need nodes are planned together with pending pods."""
        requests = self._dependencies.requests
        if requests is None or not loop.policy.requests.enabled:
            return None
        return await requests.begin(
            RequestContext(
                snapshot=snapshot,
                nodes=loop.cluster.nodes,
                unreadable_nodes=loop.cluster.bad_nodes,
                sizes={name: group.target for name, group in loop.provider.groups.items()},
                policy=loop.policy,
                now=loop.now,
                guard=loop.guard,
                consuming=[filtered.pod for filtered in pods.filtered_out if filtered.reason.code == CONSUMING],
            )
        )

    async def _run_scale_up(
        self, loop: _Observation, result: LoopResult, transaction: RequestTransaction | None
    ) -> LoopResult:
        assert result.health is not None
        assert result.snapshot is not None
        context = ScaleUpContext(
            snapshot=result.snapshot,
            policy=loop.policy,
            now=loop.now,
            ready_nodes=len(result.health.total.ready),
            stopwatch=self._timings,
            delay_new_pods=not self._dependencies.stepped,
            before_execute=None if transaction is None else transaction.write_intents,
        )
        with self._timings.measure("scaleUp"):
            scale_up = await self._scale_up.run(context, loop.guard)
        for executed in scale_up.results:
            if executed.is_done:
                self._scale_down.cooldowns.added.note(executed.group, loop.now)
        result = replace(result, scale_up=scale_up)
        if self._dependencies.requests is None or transaction is None:
            return result
        result = replace(result, requests=await self._dependencies.requests.finish(transaction, scale_up))
        if transaction.remaining_plan is not None and transaction.remaining_plan is not scale_up.plan:
            placements = transaction.find_placements(scale_up)
            self._scale_up.nominate(transaction.snapshot, placements.existing, placements.added)
        return result

    async def _run_scale_down(
        self, loop: _Observation, result: LoopResult, transaction: RequestTransaction | None
    ) -> LoopResult:
        assert result.health is not None
        assert result.snapshot is not None
        context = ScaleDownContext(
            snapshot=place_pods(result.snapshot, result.scale_up.plan.existing),
            policy=loop.policy,
            now=loop.now,
            nodes={node.metadata.name: node for node in loop.cluster.nodes},
            controllers=loop.cluster.controllers,
            unready=frozenset(result.health.total.unready),
            booked=frozenset() if transaction is None else transaction.booked_nodes,
            groups_scaling_up=frozenset(result.health.upcoming),
            blocked_by=loop.hold or _find_scale_down_block(result.scale_up),
        )
        with self._timings.measure("scaleDown"):
            return replace(result, scale_down=await self._scale_down.run(context, loop.guard))

    async def _adjust_groups(self, loop: _Observation, result: LoopResult) -> LoopResult:
        """Delete empty created groups, and scale groups up to their minimum size."""
        if loop.guard.reason is not None:
            return result
        if not result.scale_down.under_way:
            result = replace(result, deleted_groups=await self._delete_empty_groups(loop, result))
        if not result.scale_up_results:
            raised = await self._raise_to_minimum(loop)
            result = replace(result, repairs=(*result.repairs, *raised))
        return result

    async def _delete_empty_groups(self, loop: _Observation, result: LoopResult) -> tuple[DeletedGroup, ...]:
        assert result.snapshot is not None
        used = {scale_up.group for scale_up in result.scale_up_results}
        due = self._empty_groups.find_due(loop.provider, result.snapshot, loop.policy, used=used, now=loop.now)
        return await delete_groups(due, loop.provider.groups, self._dependencies.actuators.deleter)

    async def _raise_to_minimum(self, loop: _Observation) -> tuple[GroupRepair, ...]:
        """`--enforce-node-group-min-size`."""
        if not loop.policy.groups.enforce_min_size:
            return ()
        raised = await raise_to_minimum(loop.provider, loop.policy)
        for repaired in raised:
            if repaired.failure is None and repaired.before is not None and repaired.after is not None:
                self._state.register_scale_up(repaired.group, repaired.after - repaired.before, loop.now)
        return raised

    # ---- outages and clock changes

    def _end_blind(
        self, config: ActiveConfig, now: datetime, problem: str, *, error_type: str, for_s: float = 0.0
    ) -> LoopResult:
        """The result of a loop iteration that cannot observe; the outage is remembered."""
        since_s = self._dependencies.clock.monotonic_s() - for_s
        self._blind_since_s = min(since_s, since_s if self._blind_since_s is None else self._blind_since_s)
        log.warning("loop.blind", problem=problem)
        return self._end_early(config, now, Reason(code=CANNOT_SEE, message=problem, facts={"errorType": error_type}))

    def _end_outage(self) -> None:
        """Time during which nothing could be observed counts for no timer."""
        if self._blind_since_s is not None:
            gap = timedelta(seconds=self._dependencies.clock.monotonic_s() - self._blind_since_s)
            self._blind_since_s = None
            self._state.exclude_time(gap)
            self._scale_down.postpone(gap)
            self._empty_groups.postpone(gap)

    def _end_early(self, config: ActiveConfig, now: datetime, reason: Reason) -> LoopResult:
        return LoopResult(number=self._loops, at=now, policy=config.policy, ended_early=reason)

    def _read_clock(self) -> datetime:
        """The wall clock's time. When the clock was changed, remembered times are moved along."""
        wall_before, steady_before_s = self._last_times
        clock = self._dependencies.clock
        wall, steady_s = self._last_times = (clock.now(), clock.monotonic_s())
        change = wall - wall_before - timedelta(seconds=steady_s - steady_before_s)
        if abs(change) >= _CLOCK_TOLERANCE:
            log.warning("clock.was_set", by_s=change.total_seconds())
            self._state.adjust_clock(change)
            self._scale_down.adjust_clock(change)
            self._empty_groups.postpone(change)
        return wall


def _will_be_recreated(pod: Pod, cluster: ClusterObjects) -> bool:
    owner = find_controller(pod.metadata)
    if owner is None:
        return False
    known = cluster.controllers.get((pod.metadata.namespace, owner.kind, owner.name))
    return known is not None and known.exists


def _check_not_empty(cluster: ClusterObjects, policy: Policy) -> Reason | None:
    """Why a cluster without ready nodes is left alone; None if it has some, or `--scale-up-from-zero` holds."""
    if policy.groups.scale_up_from_zero:
        return None
    startup = StartupTaints(policy.pods)
    if any(classify_readiness(node, startup).is_ready for node in cluster.nodes):
        return None
    missing = "ready nodes" if cluster.nodes else "nodes"
    return Reason(code=CLUSTER_UNHEALTHY, message=f"the cluster has no {missing}, and scale-up-from-zero is false")


def _find_scale_down_block(scale_up: ScaleUpPart) -> Reason | None:
    """Why a loop iteration removes no node because of its scale-up."""
    done = [result for result in scale_up.results if result.is_done]
    if done:
        sizes = ", ".join(f"{result.group} {result.before}->{result.after}" for result in done)
        return Reason(code="ScaledUp", message=f"this loop iteration scaled up: {sizes}")
    if scale_up.skipped is not None and scale_up.skipped.code == PODS_TOO_NEW:
        return scale_up.skipped
    return None
