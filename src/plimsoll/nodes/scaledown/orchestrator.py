"""The second half of a turn: which nodes are unneeded, since when, and which of them go now (specs/nodes.md 6.8).

Planning always runs, so that timers are kept; removals begin unless something speaks against it. What is remembered
here is only time: after a restart nodes have to be unneeded anew, so nothing goes too early.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from plimsoll.core.plans import Reason
from plimsoll.nodes.loop_result import ScaleDownPart
from plimsoll.nodes.model.results import RemovalResult
from plimsoll.nodes.model.scale_down_plan import NodesToDelete
from plimsoll.nodes.planning.scaledown.eligibility import RECENTLY_UNREMOVABLE, ScaleDownState
from plimsoll.nodes.planning.scaledown.planner import find_unneeded
from plimsoll.nodes.planning.scaledown.selection import nodes_to_delete
from plimsoll.nodes.scaledown.consolidation import ConsolidationContext, Consolidator
from plimsoll.operator.cooldowns import EventTimes, is_cooling_down

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from plimsoll.nodes.actuation.deletion_controller import NodeDeletionController
    from plimsoll.nodes.actuation.taints import SoftTaints
    from plimsoll.nodes.config.policy import Policy, ScaleDown
    from plimsoll.nodes.model.plan_runner import PlanRunner
    from plimsoll.nodes.model.results import FinishedRemoval
    from plimsoll.nodes.model.scale_down_plan import NodeRemoval, UnremovableNode
    from plimsoll.nodes.model.snapshot import Snapshot
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
    """What a turn knows when it comes to shrinking."""

    snapshot: Snapshot
    """With pending pods where the plan found room for them."""
    policy: Policy
    now: datetime
    nodes: Mapping[str, Node]
    controllers: Mapping[ControllerKey, ControllerInfo] = field(default_factory=dict)
    unready: frozenset[str] = frozenset()
    booked: frozenset[str] = frozenset()
    groups_scaling_up: frozenset[str] = frozenset()
    """Groups with nodes still on their way."""
    blocked_by: Reason | None = None
    """Why nothing may begin in this turn whatever is unneeded: a growth, pods that are too new."""


@dataclass(slots=True, kw_only=True)
class Cooldowns:
    """When something last happened that scale-down waits for, by group."""

    added: EventTimes = field(default_factory=EventTimes)
    removed: EventTimes = field(default_factory=EventTimes)
    failed: EventTimes = field(default_factory=EventTimes)

    def postpone(self, by: timedelta) -> None:
        for times in (self.added, self.removed, self.failed):
            times.shift(by)

    def cooldown(self, options: ScaleDown, now: datetime, *, group: str = "") -> str:
        """What scale-down waits for, of a group or of any; empty: it need not wait."""
        waits = (
            (self.added, options.delay_after_add_s, "a scale-up"),
            (self.removed, options.delay_after_delete_s, "a removal"),
            (self.failed, options.delay_after_failure_s, "a failed removal"),
        )
        for times, delay_s, what in waits:
            last = times.last(group)
            if last is not None and is_cooling_down(last, delay_s=delay_s, now=now):
                return f"{what} {(now - last).total_seconds():.0f} s ago, less than {delay_s:g} s"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeActuators:
    """What acts on nodes."""

    deletions: NodeDeletionController
    soft_taints: SoftTaints
    rate: RemovalLimit


class ScaleDownOrchestrator:
    """Remembers timers between turns, and begins removals."""

    def __init__(
        self, hands: NodeActuators, planning: PlanRunner, saving: Consolidator, *, stepped: bool = False
    ) -> None:
        self._saving = saving
        self._remover = hands.deletions
        self._soft_taints = hands.soft_taints
        self._ledger = hands.rate
        self._planning = planning
        self._stepped = stepped
        self._since: dict[str, datetime] = {}
        self._unremovable_until: dict[str, datetime] = {}
        self._why_unremovable: dict[str, Reason] = {}
        self._hints: dict[PodKey, str] = {}
        self.cooldowns = Cooldowns()

    def forget(self) -> None:
        """The cluster is not healthy: who was unneeded may be needed soon."""
        self._since.clear()

    def restore(self, since: Mapping[str, datetime]) -> None:
        """Timers of an earlier process, from the marks it left on nodes."""
        self._since.update(since)

    async def run(self, at: ScaleDownContext, brakes: ActionGuard) -> ScaleDownPart:
        before = self._noted(self._remover.take_finished(), at.now)
        if not at.policy.scale_down.enabled:
            self.forget()
            return ScaleDownPart(
                skipped=Reason(code=DISABLED, message="scale-down-enabled is false"), ended=before, under_way=self._busy
            )
        known = self._known(at)
        simulation = await self._planning(lambda: find_unneeded(at.snapshot, at.policy, now=at.now, state=known))
        self._remember(simulation, at.now)
        part = ScaleDownPart(
            unneeded=simulation.unneeded,
            unneeded_since=dict(self._since),
            # Machines on their way stand in the snapshot as nodes; nobody can look for those by name.
            kept=tuple(self._as_found(unremovable) for unremovable in simulation.kept if unremovable.node in at.nodes),
            ended=before,
            under_way=self._busy,
            known=known,
        )
        if at.policy.scale_down.soft_taint_count and brakes.reason is None:
            await self._soft_taints.update(self._since, at.nodes, at.policy.scale_down)
        return await self._begun(part, simulation, at, brakes)

    def postpone(self, by: timedelta) -> None:
        """Nobody could look for so long, or the clock was set by so much: nothing goes, and no wait ends, for that."""
        self._since = {node: since + by for node, since in self._since.items()}
        self._unremovable_until = {node: until + by for node, until in self._unremovable_until.items()}
        self.cooldowns.postpone(by)
        self._saving.postpone(by)

    def adjust_clock(self, by: timedelta) -> None:
        """What was noted by the old time is told by the new one, also of what is no wait."""
        self.postpone(by)
        self._remover.adjust_clock(by)
        self._ledger.clock_was_set(by)

    # ---- beginning

    async def _begun(
        self, part: ScaleDownPart, simulation: ScaleDownSimulation, at: ScaleDownContext, brakes: ActionGuard
    ) -> ScaleDownPart:
        options = at.policy.scale_down
        waits_for = "" if options.delay_type_local else self.cooldowns.cooldown(options, at.now)
        if waits_for and not self._saving.is_waiting:
            reason = Reason(code=IN_COOLDOWN, message=f"in cool-down: {waits_for}")
            return replace(part, skipped=reason, is_in_cooldown=True)
        if at.blocked_by is not None:
            return replace(part, skipped=at.blocked_by)
        departures = NodesToDelete() if waits_for else self._departing(simulation, at)
        if not departures.removals and not self._busy:
            part, departures = await self._saved(part, departures, at, brakes)
        chosen: tuple[NodeRemoval, ...] = ()
        held_back: dict[str, Reason] = {}
        if brakes.reason is not None:
            held_back = dict.fromkeys((node_removal.node for node_removal in departures.removals), brakes.reason)
        else:
            chosen, held_back = await self._ledger.allowed(departures.removals, options.max_removals_per_hour)
        self._remover.start(chosen, at.nodes, at.now)
        if self._stepped:
            await self._remover.wait_until_idle()
            part = replace(part, ended=(*part.ended, *self._noted(self._remover.take_finished(), at.now)))
        return replace(
            part,
            departures=departures,
            held_back=held_back,
            kept=(*part.kept, *departures.unremovable),
            under_way=self._busy,
        )

    async def _saved(
        self, part: ScaleDownPart, departures: NodesToDelete, at: ScaleDownContext, brakes: ActionGuard
    ) -> tuple[ScaleDownPart, NodesToDelete]:
        """What consolidation adds, within what may go on at once."""
        asked = ConsolidationContext(
            snapshot=at.snapshot,
            policy=at.policy,
            known=self._known(at),
            now=at.now,
            groups_scaling_up=at.groups_scaling_up,
        )
        saved = await self._saving.run(asked, may_act=brakes.reason is None)
        for result in saved.replacing:
            if result.is_done:
                self.cooldowns.added.note(result.group, at.now)
        part = replace(part, replacing=saved.replacing, savings_per_hour=saved.savings_per_hour)
        return part, replace(departures, removals=_at_once(saved.removals, at.policy.scale_down))

    def _departing(self, simulation: ScaleDownSimulation, at: ScaleDownContext) -> NodesToDelete:
        """Those that go now, but for groups that are in a cool-down of their own."""
        departures = nodes_to_delete(simulation, at.policy, now=at.now, state=self._known(at))
        if not at.policy.scale_down.delay_type_local:
            return departures
        free = [node_removal for node_removal in departures.removals if not self._waits(node_removal, at)]
        return replace(departures, removals=tuple(free))

    def _waits(self, removal: NodeRemoval, at: ScaleDownContext) -> bool:
        return bool(self.cooldowns.cooldown(at.policy.scale_down, at.now, group=removal.group))

    # ---- remembering

    @property
    def _busy(self) -> int:
        return self._remover.in_progress.removals

    def _known(self, at: ScaleDownContext) -> ScaleDownState:
        busy = self._remover.in_progress
        return ScaleDownState(
            unneeded_since=self._since,
            unremovable_until=self._unremovable_until,
            controllers=at.controllers,
            hints=self._hints,
            being_deleted=busy.nodes,
            deletions=busy.by_group,
            unready=at.unready,
            booked=at.booked,
            removals_under_way=busy.removals,
            drains_under_way=busy.drains,
        )

    def _remember(self, simulation: ScaleDownSimulation, now: datetime) -> None:
        self._hints = simulation.pod_hints()
        self._since = {
            unneeded_node.node: self._since.get(unneeded_node.node, now) for unneeded_node in simulation.unneeded
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
        self._why_unremovable = {
            name: reason for name, reason in (self._why_unremovable | found).items() if name in self._unremovable_until
        }

    def _as_found(self, kept: UnremovableNode) -> UnremovableNode:
        """That a node was tried a short while ago tells nobody anything: what was found then does."""
        why = self._why_unremovable.get(kept.node)
        return replace(kept, reason=why) if kept.reason.code == RECENTLY_UNREMOVABLE and why is not None else kept

    def _noted(self, ended: Iterable[FinishedRemoval], now: datetime) -> tuple[FinishedRemoval, ...]:
        seen = tuple(ended)
        for finished in seen:
            if finished.result is RemovalResult.REMOVED:
                self.cooldowns.removed.note(finished.removal.group, now)
                self._since.pop(finished.removal.node, None)
            elif finished.result is RemovalResult.FAILED:
                self.cooldowns.failed.note(finished.removal.group, now)
        return seen


def _at_once(removals: Sequence[NodeRemoval], options: ScaleDown) -> tuple[NodeRemoval, ...]:
    """As many as may go at the same time, and no more of them drained than may be."""
    empty = [node_removal for node_removal in removals if node_removal.is_empty]
    drained = [node_removal for node_removal in removals if not node_removal.is_empty][: options.drain_parallelism]
    return tuple([*empty, *drained][: options.parallelism])
