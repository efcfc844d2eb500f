"""Consolidation in the loop: proposed, confirmed by a later loop iteration, then carried out.

It runs only with `--consolidation=underutilized|balance`, and only while no other removal is in progress
(docs/design/nodes.md 8.6). A proposal must be found again after 15 s before any node is touched. A replacement adds the
cheaper nodes first and removes the expensive ones when those have arrived; if they do not arrive in time, nothing is
removed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.core.durations import add_seconds
from plimsoll.nodes.config.node_disruption_budgets import DEFAULT_BUDGETS, parse_budget
from plimsoll.nodes.planning.consolidation.planner import Consolidation, ConsolidationOptions, consolidate

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.planner_cache import PlannerCache
    from plimsoll.nodes.model.results import ScaleUpResult
    from plimsoll.nodes.model.scale_down_plan import NodeRemoval
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.plan_runner import PlanRunner
    from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
    from plimsoll.nodes.scaleup.executor import ScaleUpExecutor


MODES: Final = ("underutilized", "balanced")
_CONFIRM_AFTER: Final = timedelta(seconds=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationResult:
    """Nodes to remove now, and requested scale-ups that replace others."""

    removals: tuple[NodeRemoval, ...] = ()
    replacing: tuple[ScaleUpResult, ...] = ()
    savings_per_hour: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationContext:
    """The input of one loop iteration. `groups_scaling_up` have upcoming nodes."""

    snapshot: Snapshot
    policy: Policy
    known: ScaleDownState
    now: datetime
    groups_scaling_up: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replacement:
    """Expensive nodes that are removed when the groups scaled up for them have their new nodes."""

    nodes: frozenset[str]
    groups: frozenset[str]
    until: datetime


@dataclass(slots=True)
class _Proposal:
    nodes: frozenset[str] = frozenset()
    since: datetime | None = None
    memory: PlannerCache | None = field(default=None, repr=False)


class Consolidator:
    """Remembers the last proposal, and the replacement in progress."""

    def __init__(self, executor: ScaleUpExecutor, run_planner: PlanRunner) -> None:
        self._executor = executor
        self._run_planner = run_planner
        self._proposal = _Proposal()
        self._replacement: _Replacement | None = None

    def forget(self) -> None:
        self._proposal = _Proposal(memory=self._proposal.memory)

    def postpone(self, by: timedelta) -> None:
        """Move remembered times by an outage or a clock change, which confirms and gives up nothing."""
        if self._proposal.since is not None:
            self._proposal.since += by
        if self._replacement is not None:
            self._replacement = replace(self._replacement, until=self._replacement.until + by)

    @property
    def is_waiting(self) -> bool:
        """Whether a replacement is in progress, which no cooldown may interrupt."""
        return self._replacement is not None

    async def run(self, context: ConsolidationContext, *, may_act: bool) -> ConsolidationResult:
        if context.policy.scale_down.consolidation not in MODES:
            return ConsolidationResult()
        found = await self._propose(context)
        if self._replacement is not None:
            return self._finish_replacement(found, context, self._replacement)
        if not may_act or not self._is_confirmed(found, context.now):
            return ConsolidationResult(savings_per_hour=found.savings_per_hour)
        self.forget()
        if found.removals or found.replacement is None:
            return ConsolidationResult(removals=found.removals, savings_per_hour=found.savings_per_hour)
        results = await self._executor.execute(found.replacement.plan.scale_ups, now=context.now)
        if any(result.is_done for result in results):
            self._replacement = _Replacement(
                nodes=frozenset(found.replacement.nodes),
                groups=frozenset(result.group for result in results if result.is_done),
                until=add_seconds(context.now, context.policy.groups.provision_time_s),
            )
        return ConsolidationResult(replacing=results, savings_per_hour=found.savings_per_hour)

    async def _propose(self, context: ConsolidationContext) -> Consolidation:
        written = context.policy.scale_down.consolidation_budgets
        budgets = tuple(parse_budget(text) for text in written) or DEFAULT_BUDGETS
        options = ConsolidationOptions(budgets=budgets, may_replace=self._replacement is None)
        found: Consolidation = await self._run_planner(
            lambda: consolidate(
                context.snapshot,
                context.policy,
                now=context.now,
                state=context.known,
                options=options,
                cache=self._proposal.memory,
            )
        )
        self._proposal.memory = found.cache
        return found

    def _is_confirmed(self, found: Consolidation, now: datetime) -> bool:
        """Whether the same nodes have been proposed for long enough."""
        nodes = frozenset(removal.node for removal in found.removals)
        nodes |= frozenset(() if found.replacement is None else found.replacement.nodes)
        if not nodes:
            self.forget()
            return False
        if nodes != self._proposal.nodes or self._proposal.since is None:
            self._proposal.nodes, self._proposal.since = nodes, now
            return False
        return now - self._proposal.since >= _CONFIRM_AFTER

    def _finish_replacement(
        self, found: Consolidation, context: ConsolidationContext, replacement: _Replacement
    ) -> ConsolidationResult:
        if context.now > replacement.until:
            self._replacement = None
            return ConsolidationResult(savings_per_hour=found.savings_per_hour)
        if replacement.groups & context.groups_scaling_up:
            return ConsolidationResult(savings_per_hour=found.savings_per_hour)
        going = tuple(removal for removal in found.removals if removal.node in replacement.nodes)
        if going:
            self._replacement = None
        return ConsolidationResult(removals=going, savings_per_hour=found.savings_per_hour)
