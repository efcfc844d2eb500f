"""One turn of the node autoscaler: observe, plan, act, tell. The main flow of specs/nodes.md 6.1.

`Autoscaler.run_once()` is called by the controller's timer when live, and by `{loop: …}` in a scenario. Between turns
only time is remembered (timers, back-offs, what growth was asked for); everything else is read anew, so that a process
that dies at any point is followed by one that goes on from the world alone. Only time that passed while somebody looked
counts: a clock that is set, or a time in which nothing could be seen, makes no node overdue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import structlog

from plimsoll.core.errors import Unreachable
from plimsoll.core.plans import Reason
from plimsoll.nodes.actuation.node_groups import EmptyGroups, delete_groups, fix_group_sizes, raise_to_minimum
from plimsoll.nodes.actuation.taints import restore_unneeded_since
from plimsoll.nodes.actuation.timing import Pacing
from plimsoll.nodes.cluster_state.node_readiness import StartupTaints, readiness_of
from plimsoll.nodes.cluster_state.registry import ClusterState
from plimsoll.nodes.cluster_state.templates import GroupTemplates
from plimsoll.nodes.loop_result import LoopResult
from plimsoll.nodes.model.reasons import CANNOT_SEE, CLUSTER_UNHEALTHY, CONSUMING, PODS_TOO_NEW
from plimsoll.nodes.model.results import DeletedGroup
from plimsoll.nodes.model.timings import LoopTimings
from plimsoll.nodes.observing.pod_filters import PodFilter, PodFilterContext
from plimsoll.nodes.observing.provider_state import read_provider_state
from plimsoll.nodes.observing.snapshots import LoopSnapshots, with_placed_pods
from plimsoll.nodes.requests.controller import RequestContext
from plimsoll.nodes.scaledown.consolidation import Consolidator
from plimsoll.nodes.scaledown.orchestrator import NodeActuators, ScaleDownContext, ScaleDownOrchestrator
from plimsoll.nodes.scaleup.executor import ScaleUpExecutor
from plimsoll.nodes.scaleup.orchestrator import ScaleUpContext, ScaleUpOrchestrator
from plimsoll.objects.owners import controller_of
from plimsoll.operator.pause import ActionGuard

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.nodes.actuation.cleanup import TaintCleaner
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.config.source import ActiveConfig, ConfigSource
    from plimsoll.nodes.model.plan_runner import PlanRunner
    from plimsoll.nodes.model.results import CleanedNode, DeletedGroup, GroupRepair, ScaleUpPart, ScaleUpResult
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.observing.listers import ClusterListers, ClusterObjects, Stale
    from plimsoll.nodes.observing.provider_state import ProviderState
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.nodes.requests.controller import RequestController
    from plimsoll.nodes.requests.transaction import RequestTransaction
    from plimsoll.nodes.scaleup.orchestrator import ExternalExpander
    from plimsoll.objects.api.pods import Pod

log = structlog.get_logger(__name__)

T = TypeVar("T", LoopResult, ScaleDownContext)

_CLOCK_WAS_SET: Final = timedelta(seconds=1)
"""What a clock goes wrong by between two turns while it is kept right slowly is far less."""

"""Runs a pure planner: in a worker thread when live, inline in virtual time."""


class LoopReporter(Protocol):
    """Says what a turn did: `telling`."""

    async def report(self, turn: LoopResult) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerDependencies:
    """What an autoscaler is made of."""

    listers: ClusterListers
    provider: Provider
    configuration: ConfigSource
    actuators: NodeActuators
    cleaner: TaintCleaner
    reporter: LoopReporter
    clock: Clock
    stopwatch_clock: Clock
    """What measures how long things take; nothing is decided by it."""
    run_planner: PlanRunner
    expander: ExternalExpander | None = None
    """One outside this program, where the operator named it."""
    requests: RequestController | None = None
    """Where ProvisioningRequests are served; None: they are not."""
    stepped: bool = False
    """A scenario takes the steps: nothing waits for timers, and no scheduler runs by itself."""


class Autoscaler:
    """One a process. Turns must not overlap."""

    def __init__(self, parts: AutoscalerDependencies) -> None:
        self._parts = parts
        wishes = parts.configuration.current()
        self._state = ClusterState(wishes.policy)
        self._templates = GroupTemplates(wishes.policy)
        grower = ScaleUpExecutor(parts.provider, self._state)
        self._expanding = ScaleUpOrchestrator(grower, parts.run_planner, parts.expander)
        saving = Consolidator(grower, parts.run_planner)
        self._shrinking = ScaleDownOrchestrator(parts.actuators, parts.run_planner, saving, stepped=parts.stepped)
        self._emptied = EmptyGroups()
        self._sorter = PodFilter()
        self._snapshots = LoopSnapshots()
        self._turns = 0
        self._looked_at = (parts.clock.now(), parts.clock.monotonic_s())
        self._blind_since_s: float | None = None
        self._has_begun = False
        self._stopwatch = LoopTimings(parts.stopwatch_clock)

    async def synced(self) -> None:
        """Return once everything that a turn looks at has been seen."""
        await self._parts.listers.synced()
        await self._parts.configuration.synced()
        if self._parts.requests is not None:
            await self._parts.requests.synced()

    async def run_once(self) -> LoopResult:
        wishes = self._parts.configuration.current()
        self._state.policy = self._templates.policy = wishes.policy
        self._turns += 1
        self._stopwatch = LoopTimings(self._parts.stopwatch_clock)
        with self._stopwatch.timing("main"):
            turn = await self._turn(wishes, self._now())
        turn = _with(turn, function_seconds=dict(self._stopwatch.seconds), priority_problem=wishes.priority_problem)
        await self._parts.reporter.report(turn)
        return turn

    async def _turn(self, wishes: ActiveConfig, now: datetime) -> LoopResult:
        """Whatever cannot be seen ends the turn before anything is done."""
        if (stale := self._stale()) is not None:
            why = f"the cluster cannot be seen: {stale}"
            return self._blinded(wishes, now, why, error_type="apiCallError", for_s=stale.age_s)
        cluster = self._parts.listers.read()
        if (hollow := _nothing_to_begin_with(cluster, wishes)) is not None:
            return self._ended(wishes, now, hollow)
        try:
            cloud = await self._cloud(cluster, wishes, now)
        except Unreachable as error:
            return self._blinded(wishes, now, str(error), error_type="cloudProviderError")
        self._sees_again()
        return await self._seen(cluster, cloud, wishes, now)

    async def _cloud(self, cluster: ClusterObjects, wishes: ActiveConfig, now: datetime) -> ProviderState:
        provider = self._parts.provider
        with self._stopwatch.timing("cloudProviderRefresh"):
            await provider.refresh()
        pods = cluster.pods.on_nodes
        return await read_provider_state(
            provider, cluster.nodes, pods, policy=wishes.policy, templates=self._templates, now=now
        )

    async def _seen(
        self, cluster: ClusterObjects, cloud: ProviderState, wishes: ActiveConfig, now: datetime
    ) -> LoopResult:
        """Everything is known: judge it, put right what is wrong, then grow and shrink."""
        brakes = ActionGuard(dry_run=wishes.policy.operation.dry_run, paused=wishes.paused)
        cleaned = () if brakes.reason else await self._cleaned(cluster, cloud, wishes, now)
        with self._stopwatch.timing("updateClusterState"):
            changes = self._state.observe(cloud.observed(cluster.nodes, wishes.policy), now)
        if self._parts.requests is not None:
            self._parts.requests.record_changes(changes)
        repaired = () if brakes.reason else await fix_group_sizes(self._parts.provider, changes)
        turn = LoopResult(
            number=self._turns,
            at=now,
            policy=wishes.policy,
            health=self._state.health(now),
            changes=changes,
            repaired=repaired,
            cleaned=cleaned,
        )
        assert turn.health is not None
        if (unhealthy := turn.health.unhealthy_reason()) is not None:
            self._shrinking.forget()
            return _with(turn, ended_early=unhealthy)
        if any(one.after is not None and one.failure is None for one in repaired):
            told = Reason(code="SizesRepaired", message="sizes of groups were put right; the next turn looks anew")
            return _with(turn, ended_early=told)
        return await self._planned(turn, cluster, cloud, brakes)

    async def _planned(
        self, turn: LoopResult, cluster: ClusterObjects, cloud: ProviderState, brakes: ActionGuard
    ) -> LoopResult:
        assert turn.health is not None
        policy, now, health = turn.policy, turn.at, turn.health
        viewpoint = PodFilterContext(rules=policy.pods, now=now, waits_for_scheduler=not self._parts.stepped)
        pods = self._sorter.filter(cluster.pods, viewpoint, extra_pods=self._evicted(cluster, now))
        snapshot = self._snapshots.build(cluster, cloud, pods, health=health, policy=policy, number=turn.number)
        snapshot = self._expanding.with_nominations(snapshot)
        sitting = RequestContext(
            snapshot=snapshot,
            nodes=cluster.nodes,
            sizes={name: group_read.target for name, group_read in cloud.groups.items()},
            policy=policy,
            now=now,
            guard=brakes,
            consuming=[set_aside.pod for set_aside in pods.set_aside if set_aside.reason.code == CONSUMING],
        )
        session = await self._opened(sitting)
        if session is not None:
            snapshot = session.snapshot
            turn = _with(turn, requests=session.part)
            if session.ended_early is not None:
                return _with(
                    turn, ended_early=session.ended_early, pods_by_state=pods.by_state, set_aside=pods.set_aside
                )
        up = await self._expanded(snapshot, turn, brakes, session)
        if self._parts.requests is not None and session is not None:
            turn = _with(turn, requests=await self._parts.requests.finish(session, up))
            if session.remaining_plan is not None and session.remaining_plan is not up.plan:
                places = session.find_placements(up)
                self._expanding.nominate(snapshot, places.existing, places.added)
        situation = _situation(turn, cluster, with_placed_pods(snapshot, up.plan.existing), up)
        booked = frozenset() if session is None else session.booked_nodes
        with self._stopwatch.timing("scaleDown"):
            down = await self._shrinking.run(_with(situation, booked=booked), brakes)
        grown = (*up.results, *down.replacing)
        gone = () if brakes.reason or down.under_way else await self._tidied(cloud, snapshot, grown, now)
        raised = () if brakes.reason or grown else await self._raised(cloud, policy, now)
        return _with(
            turn,
            snapshot=snapshot,
            pods_by_state=pods.by_state,
            set_aside=pods.set_aside,
            scale_up=up,
            scale_down=down,
            repaired=(*turn.repaired, *raised),
            groups_gone=gone,
        )

    # ---- steps

    async def _opened(self, sitting: RequestContext) -> RequestTransaction | None:
        """Requests are read, booked and checked; those that nodes may be added for are planned with pending pods."""
        requests = self._parts.requests
        return await requests.begin(sitting) if requests is not None and sitting.policy.requests.enabled else None

    async def _expanded(
        self, snapshot: Snapshot, turn: LoopResult, brakes: ActionGuard, session: RequestTransaction | None
    ) -> ScaleUpPart:
        assert turn.health is not None
        occasion = ScaleUpContext(
            snapshot=snapshot,
            policy=turn.policy,
            now=turn.at,
            ready_nodes=len(turn.health.total.ready),
            stopwatch=self._stopwatch,
            delay_new_pods=not self._parts.stepped,
            before_execute=None if session is None else session.write_intents,
        )
        with self._stopwatch.timing("scaleUp"):
            up = await self._expanding.run(occasion, brakes)
        for result in up.results:
            if result.is_done:
                self._shrinking.cooldowns.added.note(result.group, turn.at)
        return up

    async def _cleaned(
        self, cluster: ClusterObjects, cloud: ProviderState, wishes: ActiveConfig, now: datetime
    ) -> tuple[CleanedNode, ...]:
        """Marks on nodes that nobody is removing: of a process that died, or of a removal that could not undo them."""
        remover, cleaner = self._parts.actuators.deletions, self._parts.cleaner
        remover.policy = wishes.policy
        remover.pacing = Pacing.STEPPED if self._parts.stepped else Pacing.of(wishes.policy)
        remover.forget_deleted({node.metadata.name: node for node in cluster.nodes}, cloud.has_instance)
        options = wishes.policy.scale_down
        cleaned = await cleaner.remove_deletion_taints(cluster.nodes, options, leaving=remover.in_progress.nodes)
        if not self._has_begun:
            self._shrinking.restore(restore_unneeded_since(cluster.nodes, options, now))
            await cleaner.remove_soft_taints(cluster.nodes, options)
            self._has_begun = True
        return cleaned

    def _evicted(self, cluster: ClusterObjects, now: datetime) -> list[Pod]:
        """Pods that were evicted and that their owners have not made again yet wait for a place too."""
        evicted = self._parts.actuators.deletions.recently_evicted(now, cluster.pods)
        return [pod for pod in evicted if _will_be_made_again(pod, cluster)]

    async def _raised(self, cloud: ProviderState, policy: Policy, now: datetime) -> tuple[GroupRepair, ...]:
        """Groups below their minimum are raised to it, where the operator wants that."""
        if not policy.groups.enforce_min_size:
            return ()
        raised = await raise_to_minimum(cloud, policy)
        for repaired in raised:
            if repaired.failure is None and repaired.before is not None and repaired.after is not None:
                self._state.register_scale_up(repaired.group, repaired.after - repaired.before, now)
        return raised

    async def _tidied(
        self, cloud: ProviderState, snapshot: Snapshot, grown: tuple[ScaleUpResult, ...], now: datetime
    ) -> tuple[DeletedGroup, ...]:
        used = {result.group for result in grown}
        due = self._emptied.find_due(cloud, snapshot, self._state.policy, used=used, now=now)
        return await delete_groups(due, cloud.groups)

    # ---- what is not seen

    def _stale(self) -> Stale | None:
        desk = self._parts.requests
        return self._parts.listers.stale() or (None if desk is None else desk.stale())

    def _blinded(
        self, wishes: ActiveConfig, now: datetime, why: str, *, error_type: str, for_s: float = 0.0
    ) -> LoopResult:
        since_s = self._parts.clock.monotonic_s() - for_s
        self._blind_since_s = min(since_s, since_s if self._blind_since_s is None else self._blind_since_s)
        log.warning("turn.blind", problem=why)
        return self._ended(wishes, now, Reason(code=CANNOT_SEE, message=why, facts={"errorType": error_type}))

    def _sees_again(self) -> None:
        """Time in which nobody could look counts against nobody."""
        if self._blind_since_s is not None:
            gap = timedelta(seconds=self._parts.clock.monotonic_s() - self._blind_since_s)
            self._blind_since_s = None
            self._state.exclude_time(gap)
            self._shrinking.postpone(gap)
            self._emptied.postpone(gap)

    def _ended(self, wishes: ActiveConfig, now: datetime, why: Reason) -> LoopResult:
        return LoopResult(number=self._turns, at=now, policy=wishes.policy, ended_early=why)

    def _now(self) -> datetime:
        """The wall clock's time, as objects tell theirs. When it is set, what is remembered moves along."""
        wall_before, steady_before_s = self._looked_at
        wall, steady_s = self._looked_at = (self._parts.clock.now(), self._parts.clock.monotonic_s())
        by = wall - wall_before - timedelta(seconds=steady_s - steady_before_s)
        if abs(by) >= _CLOCK_WAS_SET:
            log.warning("clock.was_set", by_s=by.total_seconds())
            self._state.adjust_clock(by)
            self._shrinking.adjust_clock(by)
            self._emptied.postpone(by)
        return wall


def _with(whole: T, **parts: Any) -> T:
    return replace(whole, **parts)


def _situation(turn: LoopResult, cluster: ClusterObjects, snapshot: Snapshot, up: ScaleUpPart) -> ScaleDownContext:
    assert turn.health is not None
    return ScaleDownContext(
        snapshot=snapshot,
        policy=turn.policy,
        now=turn.at,
        nodes={node.metadata.name: node for node in cluster.nodes},
        controllers=cluster.controllers,
        unready=frozenset(turn.health.total.unready),
        groups_scaling_up=frozenset(turn.health.upcoming),
        blocked_by=_hindrance(up),
    )


def _will_be_made_again(pod: Pod, cluster: ClusterObjects) -> bool:
    owner = controller_of(pod.metadata)
    if owner is None:
        return False
    known = cluster.controllers.get((pod.metadata.namespace, owner.kind, owner.name))
    return known is not None and known.exists


def _nothing_to_begin_with(cluster: ClusterObjects, wishes: ActiveConfig) -> Reason | None:
    if wishes.policy.groups.scale_up_from_zero:
        return None
    startup = StartupTaints(wishes.policy.pods)
    if any(readiness_of(node, startup).is_ready for node in cluster.nodes):
        return None
    what = "ready nodes" if cluster.nodes else "nodes"
    return Reason(code=CLUSTER_UNHEALTHY, message=f"the cluster has no {what}, and scale-up-from-zero is false")


def _hindrance(up: ScaleUpPart) -> Reason | None:
    """What of growing keeps a turn from shrinking."""
    grown = [result for result in up.results if result.is_done]
    if grown:
        told = ", ".join(f"{result.group} {result.before}->{result.after}" for result in grown)
        return Reason(code="ScaledUp", message=f"this turn scaled up: {told}")
    if up.skipped is not None and up.skipped.code == PODS_TOO_NEW:
        return up.skipped
    return None
