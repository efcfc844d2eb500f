"""Consolidation for money in the loop (specs/nodes.md 8.6): proposed in one turn, looked at again, then done.

Only with `--consolidation=underutilized|balanced`, and only when nothing else is going on. A proposal has to be found
again after 15 s before anything is touched. Where cheaper nodes take the place of dear ones, the cheap ones come first,
and the dear ones go when those are there; if they do not come in time, everything stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.config.disruption_budgets import DEFAULT_BUDGETS, parse_budget
from plimsoll.nodes.planning.consolidation.planner import Consolidation, ConsolidationOptions, consolidate

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.plan_runner import PlanRunner
    from plimsoll.nodes.model.planner_cache import PlannerCache
    from plimsoll.nodes.model.results import ScaleUpResult
    from plimsoll.nodes.model.scale_down_plan import NodeRemoval
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
    from plimsoll.nodes.scaleup.executor import ScaleUpExecutor


MODES: Final = ("underutilized", "balanced")
_LOOKED_AT_AGAIN: Final = timedelta(seconds=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationResult:
    """What a turn makes of it: nodes that may go now, and growth that was asked for."""

    removals: tuple[NodeRemoval, ...] = ()
    replacing: tuple[ScaleUpResult, ...] = ()
    savings_per_hour: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationContext:
    """One look at the cluster. `groups_scaling_up` are groups with nodes still on their way."""

    snapshot: Snapshot
    policy: Policy
    known: ScaleDownState
    now: datetime
    groups_scaling_up: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replacing:
    """Dear nodes that go when the groups that were grown for them have what they asked for."""

    nodes: frozenset[str]
    groups: frozenset[str]
    until: datetime


@dataclass(slots=True)
class _Proposal:
    nodes: frozenset[str] = frozenset()
    since: datetime | None = None
    memory: PlannerCache | None = field(default=None, repr=False)


class Consolidator:
    """Remembers what was proposed, and what is being replaced."""

    def __init__(self, grower: ScaleUpExecutor, planning: PlanRunner) -> None:
        self._grower = grower
        self._planning = planning
        self._proposal = _Proposal()
        self._replacing: _Replacing | None = None

    def forget(self) -> None:
        self._proposal = _Proposal(memory=self._proposal.memory)

    def postpone(self, by: timedelta) -> None:
        """Nobody could look for so long, or the clock was set by so much: nothing is confirmed or given up by that."""
        if self._proposal.since is not None:
            self._proposal.since += by
        if self._replacing is not None:
            self._replacing = replace(self._replacing, until=self._replacing.until + by)

    @property
    def is_waiting(self) -> bool:
        """Whether cheaper nodes were asked for: what they are for must not be undone by a cool-down."""
        return self._replacing is not None

    async def run(self, asked: ConsolidationContext, *, may_act: bool) -> ConsolidationResult:
        if asked.policy.scale_down.consolidation not in MODES:
            return ConsolidationResult()
        found = await self._proposed(asked)
        if self._replacing is not None:
            return self._replaced(found, asked, self._replacing)
        if not may_act or not self._is_confirmed(found, asked.now):
            return ConsolidationResult(savings_per_hour=found.savings_per_hour)
        self.forget()
        if found.removals or found.replacement is None:
            return ConsolidationResult(removals=found.removals, savings_per_hour=found.savings_per_hour)
        grown = await self._grower.execute(found.replacement.plan.scale_ups, now=asked.now)
        if any(result.is_done for result in grown):
            self._replacing = _Replacing(
                nodes=frozenset(found.replacement.nodes),
                groups=frozenset(result.group for result in grown if result.is_done),
                until=asked.now + timedelta(seconds=asked.policy.groups.provision_time_s),
            )
        return ConsolidationResult(replacing=grown, savings_per_hour=found.savings_per_hour)

    async def _proposed(self, asked: ConsolidationContext) -> Consolidation:
        written = asked.policy.scale_down.consolidation_budgets
        budgets = tuple(parse_budget(one) for one in written) or DEFAULT_BUDGETS
        terms = ConsolidationOptions(budgets=budgets, may_replace=self._replacing is None)
        found: Consolidation = await self._planning(
            lambda: consolidate(
                asked.snapshot,
                asked.policy,
                now=asked.now,
                state=asked.known,
                options=terms,
                cache=self._proposal.memory,
            )
        )
        self._proposal.memory = found.cache
        return found

    def _is_confirmed(self, found: Consolidation, now: datetime) -> bool:
        """Whether the same nodes have been proposed for long enough."""
        nodes = frozenset(node_removal.node for node_removal in found.removals)
        nodes |= frozenset(() if found.replacement is None else found.replacement.nodes)
        if not nodes:
            self.forget()
            return False
        if nodes != self._proposal.nodes or self._proposal.since is None:
            self._proposal.nodes, self._proposal.since = nodes, now
            return False
        return now - self._proposal.since >= _LOOKED_AT_AGAIN

    def _replaced(
        self, found: Consolidation, asked: ConsolidationContext, replacing: _Replacing
    ) -> ConsolidationResult:
        if asked.now > replacing.until:
            self._replacing = None
            return ConsolidationResult(savings_per_hour=found.savings_per_hour)
        if replacing.groups & asked.groups_scaling_up:
            return ConsolidationResult(savings_per_hour=found.savings_per_hour)
        going = tuple(node_removal for node_removal in found.removals if node_removal.node in replacing.nodes)
        if going:
            self._replacing = None
        return ConsolidationResult(removals=going, savings_per_hour=found.savings_per_hour)
