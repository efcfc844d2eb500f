"""Scale-down in the loop: which nodes are unneeded, since when, and which of them are removed now.

Planning runs in every loop iteration, so that timers are kept (docs/design/nodes.md 6.8). Only times are remembered, so
after a restart nodes must be unneeded for the full time again, and none is removed too early.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from plimsoll.core.plans import Reason
from plimsoll.nodes.loop_result import ScaleDownPart
from plimsoll.nodes.model.results import RemovalResult
from plimsoll.nodes.model.scale_down_plan import NodesToDelete, UnremovableNode
from plimsoll.nodes.planning.consolidation.verification import verify_removals
from plimsoll.nodes.planning.scaledown.eligibility import RECENTLY_UNREMOVABLE, ScaleDownState
from plimsoll.nodes.planning.scaledown.planner import find_unneeded
from plimsoll.nodes.planning.scaledown.selection import select_nodes_to_delete
from plimsoll.nodes.scaledown.consolidation import ConsolidationContext, Consolidator
from plimsoll.operator.cooldowns import EventTimes, is_cooling_down

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from plimsoll.nodes.actuation.deletion_controller import NodeDeletionController
    from plimsoll.nodes.actuation.instance_deleter import InstanceDeleter
    from plimsoll.nodes.actuation.taints import SoftTaints
    from plimsoll.nodes.config.policy import Policy, ScaleDown
    from plimsoll.nodes.model.results import FinishedRemoval
    from plimsoll.nodes.model.scale_down_plan import NodeRemoval
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.plan_runner import PlanRunner
    from plimsoll.nodes.planning.scaledown.drainability import ControllerInfo, ControllerKey
    from plimsoll.nodes.planning.scaledown.planner import ScaleDownSimulation
    from plimsoll.nodes.scaledown.removal_rate import RemovalLimit
    from plimsoll.objects.api.nodes import Node
    from plimsoll.operator.pause import ActionGuard
    from plimsoll.scheduling.cluster_view import PodKey


IN_COOLDOWN = "ScaleDownInCooldown"
DISABLED = "ScaleDownDisabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDownContext:
    """The input of the scale-down of one loop iteration."""

    snapshot: Snapshot
    """With pending pods on the nodes where the scale-up plan places them."""
    policy: Policy
    now: datetime
    nodes: Mapping[str, Node]
    controllers: Mapping[ControllerKey, ControllerInfo] = field(default_factory=dict)
    unready: frozenset[str] = frozenset()
    booked: frozenset[str] = frozenset()
    groups_scaling_up: frozenset[str] = frozenset()
    """Groups with upcoming nodes."""
    blocked_by: Reason | None = None
    """Why this loop iteration starts no removal: it scaled up, or pending pods are too new to be planned."""


@dataclass(slots=True, kw_only=True)
class Cooldowns:
    """When scale-ups, removals and failed removals last happened, by group."""

    added: EventTimes = field(default_factory=EventTimes)
    removed: EventTimes = field(default_factory=EventTimes)
    failed: EventTimes = field(default_factory=EventTimes)

    def postpone(self, by: timedelta) -> None:
        for times in (self.added, self.removed, self.failed):
            times.shift(by)

    def find_cooldown(self, options: ScaleDown, now: datetime, *, group: str = "") -> str:
        """The event that scale-down still waits after; empty if there is none."""
        waits = (
            (self.added, options.delay_after_add_s, "a scale-up"),
            (self.removed, options.delay_after_delete_s, "a removal"),
            (self.failed, options.delay_after_failure_s, "a failed removal"),
        )
        for times, delay_s, what in waits:
            last = times.get_last(group)
            if last is not None and is_cooling_down(last, delay_s=delay_s, now=now):
                return f"{what} {(now - last).total_seconds():.0f} s ago, less than {delay_s:g} s"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeActuators:
    """The actuators of scale-down."""

    deletions: NodeDeletionController
    deleter: InstanceDeleter
    soft_taints: SoftTaints
    rate: RemovalLimit


class ScaleDownOrchestrator:
    """Keeps the unneeded timers of nodes between loop iterations, and starts removals."""

    def __init__(
        self, actuators: NodeActuators, run_planner: PlanRunner, consolidator: Consolidator, *, stepped: bool = False
    ) -> None:
        self._consolidator = consolidator
        self._deletions = actuators.deletions
        self._soft_taints = actuators.soft_taints
        self._rate = actuators.rate
        self._run_planner = run_planner
        self._stepped = stepped
        self._unneeded_since: dict[str, datetime] = {}
        self._unremovable_until: dict[str, datetime] = {}
        self._unremovable_reasons: dict[str, Reason] = {}
        self._hints: dict[PodKey, str] = {}
        self._postponed: tuple[str, ...] = ()
        self.cooldowns = Cooldowns()

    def forget(self) -> None:
        """Reset all timers: in an unhealthy cluster, nodes that were unneeded may be needed soon."""
        self._unneeded_since.clear()

    def restore(self, since: Mapping[str, datetime]) -> None:
        """Take over timers of an earlier process, read from the taints it left on nodes."""
        self._unneeded_since.update(since)

    async def run(self, context: ScaleDownContext, guard: ActionGuard) -> ScaleDownPart:
        before = self._note_finished(self._deletions.take_finished(), context.now)
        if not context.policy.scale_down.enabled:
            self.forget()
            return ScaleDownPart(
                skipped=Reason(code=DISABLED, message="scale-down-enabled is false"),
                finished=before,
                under_way=self._removals_in_progress,
            )
        state = self._build_state(context)
        simulation = await self._run_planner(
            lambda: find_unneeded(context.snapshot, context.policy, now=context.now, state=state)
        )
        self._remember(simulation, context.now)
        part = ScaleDownPart(
            unneeded=simulation.unneeded,
            unneeded_since=dict(self._unneeded_since),
            postponed=simulation.postponed,
            # Upcoming nodes are in the snapshot too, but no user knows their names.
            unremovable=tuple(
                self._with_first_reason(unremovable)
                for unremovable in simulation.unremovable
                if unremovable.node in context.nodes
            ),
            finished=before,
            under_way=self._removals_in_progress,
            known=state,
        )
        if context.policy.scale_down.soft_taint_count and guard.reason is None:
            await self._soft_taints.update(self._unneeded_since, context.nodes, context.policy.scale_down)
        return await self._start_removals(part, simulation, context, guard)

    def postpone(self, by: timedelta) -> None:
        """Move all timers by an outage or a clock change, so that it ends no waiting time."""
        self._unneeded_since = {node: since + by for node, since in self._unneeded_since.items()}
        self._unremovable_until = {node: until + by for node, until in self._unremovable_until.items()}
        self.cooldowns.postpone(by)
        self._consolidator.postpone(by)

    def adjust_clock(self, by: timedelta) -> None:
        """Move every remembered time to a clock that was changed by so much."""
        self.postpone(by)
        self._deletions.adjust_clock(by)
        self._rate.adjust_clock(by)

    # ---- removals

    async def _start_removals(
        self, part: ScaleDownPart, simulation: ScaleDownSimulation, context: ScaleDownContext, guard: ActionGuard
    ) -> ScaleDownPart:
        options = context.policy.scale_down
        cooldown = "" if options.delay_type_local else self.cooldowns.find_cooldown(options, context.now)
        if cooldown and not self._consolidator.is_waiting:
            reason = Reason(code=IN_COOLDOWN, message=f"in cooldown: {cooldown}")
            return replace(part, skipped=reason, is_in_cooldown=True)
        if context.blocked_by is not None:
            return replace(part, skipped=context.blocked_by)
        chosen_nodes = NodesToDelete() if cooldown else self._select_nodes(simulation, context)
        if not chosen_nodes.removals and not self._removals_in_progress:
            part, chosen_nodes = await self._consolidate(part, chosen_nodes, context, guard)
        allowed: tuple[NodeRemoval, ...] = ()
        held_back: dict[str, Reason] = {}
        if guard.reason is not None:
            held_back = dict.fromkeys((removal.node for removal in chosen_nodes.removals), guard.reason)
        else:
            allowed, held_back = await self._rate.select_allowed(chosen_nodes.removals, options.max_removals_per_hour)
        self._deletions.start(allowed, context.nodes, context.now)
        if self._stepped:
            await self._deletions.wait_until_idle()
            part = replace(
                part, finished=(*part.finished, *self._note_finished(self._deletions.take_finished(), context.now))
            )
        return replace(
            part,
            nodes_to_delete=chosen_nodes,
            held_back=held_back,
            unremovable=(*part.unremovable, *chosen_nodes.unremovable),
            under_way=self._removals_in_progress,
        )

    async def _consolidate(
        self, part: ScaleDownPart, chosen_nodes: NodesToDelete, context: ScaleDownContext, guard: ActionGuard
    ) -> tuple[ScaleDownPart, NodesToDelete]:
        """The removals that consolidation proposes, within the limits of parallel removals."""
        consolidation = ConsolidationContext(
            snapshot=context.snapshot,
            policy=context.policy,
            known=self._build_state(context),
            now=context.now,
            groups_scaling_up=context.groups_scaling_up,
        )
        consolidated = await self._consolidator.run(consolidation, may_act=guard.reason is None)
        for result in consolidated.replacing:
            if result.is_done:
                self.cooldowns.added.note(result.group, context.now)
        part = replace(part, replacements=consolidated.replacing, savings_per_hour=consolidated.savings_per_hour)
        removals = _limit_parallel(consolidated.removals, context.policy.scale_down)
        return part, await self._verify(replace(chosen_nodes, removals=removals), context)

    async def _verify(self, chosen_nodes: NodesToDelete, context: ScaleDownContext) -> NodesToDelete:
        """The removals of consolidation for whose pods the plain rules know places too."""
        if all(removal.is_empty for removal in chosen_nodes.removals):
            return chosen_nodes
        verified = await self._run_planner(
            lambda: verify_removals(
                context.snapshot,
                context.policy,
                chosen_nodes.removals,
                now=context.now,
                state=self._build_state(context),
            )
        )
        refused = tuple(UnremovableNode(node=node, reason=reason) for node, reason in verified.refused.items())
        return replace(chosen_nodes, removals=verified.removals, unremovable=(*chosen_nodes.unremovable, *refused))

    def _select_nodes(self, simulation: ScaleDownSimulation, context: ScaleDownContext) -> NodesToDelete:
        """The nodes to delete now; with local delays, without groups that are in cooldown themselves."""
        chosen_nodes = select_nodes_to_delete(
            simulation, context.policy, now=context.now, state=self._build_state(context)
        )
        if not context.policy.scale_down.delay_type_local:
            return chosen_nodes
        free = [removal for removal in chosen_nodes.removals if not self._is_in_cooldown(removal, context)]
        return replace(chosen_nodes, removals=tuple(free))

    def _is_in_cooldown(self, removal: NodeRemoval, context: ScaleDownContext) -> bool:
        return bool(self.cooldowns.find_cooldown(context.policy.scale_down, context.now, group=removal.group))

    # ---- state between loop iterations

    @property
    def _removals_in_progress(self) -> int:
        return self._deletions.in_progress.removals

    def _build_state(self, context: ScaleDownContext) -> ScaleDownState:
        busy = self._deletions.in_progress
        return ScaleDownState(
            unneeded_since=self._unneeded_since,
            unremovable_until=self._unremovable_until,
            controllers=context.controllers,
            hints=self._hints,
            postponed=self._postponed,
            being_deleted=busy.nodes,
            deletions=busy.by_group,
            unready=context.unready,
            booked=context.booked,
            removals_under_way=busy.removals,
            drains_under_way=busy.drains,
        )

    def _remember(self, simulation: ScaleDownSimulation, now: datetime) -> None:
        self._hints = simulation.build_pod_hints()
        self._postponed = simulation.postponed
        self._unneeded_since = {
            unneeded_node.node: self._unneeded_since.get(unneeded_node.node, now)
            for unneeded_node in simulation.unneeded
        }
        retried = {
            unremovable.node: unremovable.retry_at
            for unremovable in simulation.unremovable
            if unremovable.retry_at is not None
        }
        there = {unremovable.node for unremovable in simulation.unremovable}
        waiting = {name: until for name, until in self._unremovable_until.items() if name in there and until > now}
        self._unremovable_until = waiting | retried
        found = {
            unremovable.node: unremovable.reason
            for unremovable in simulation.unremovable
            if unremovable.retry_at is not None
        }
        self._unremovable_reasons = {
            name: reason
            for name, reason in (self._unremovable_reasons | found).items()
            if name in self._unremovable_until
        }

    def _with_first_reason(self, unremovable: UnremovableNode) -> UnremovableNode:
        """Instead of "recently unremovable", the reason that was found when the node was last tried."""
        first = self._unremovable_reasons.get(unremovable.node)
        if unremovable.reason.code != RECENTLY_UNREMOVABLE or first is None:
            return unremovable
        return replace(unremovable, reason=first)

    def _note_finished(self, ended: Iterable[FinishedRemoval], now: datetime) -> tuple[FinishedRemoval, ...]:
        finished_removals = tuple(ended)
        for finished in finished_removals:
            if finished.result is RemovalResult.REMOVED:
                self.cooldowns.removed.note(finished.removal.group, now)
                self._unneeded_since.pop(finished.removal.node, None)
            elif finished.result is RemovalResult.FAILED:
                self.cooldowns.failed.note(finished.removal.group, now)
        return finished_removals


def _limit_parallel(removals: Sequence[NodeRemoval], options: ScaleDown) -> tuple[NodeRemoval, ...]:
    """The first removals that `--max-scale-down-parallelism` and `--max-drain-parallelism` allow; empty nodes first."""
    empty = [removal for removal in removals if removal.is_empty]
    drained = [removal for removal in removals if not removal.is_empty][: options.drain_parallelism]
    return tuple([*empty, *drained][: options.parallelism])
