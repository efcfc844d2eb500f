"""The form of a goal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.kafka.planning.goal_list import HARD_GOALS
from plimsoll.kafka.planning.goals.obstacles import explain_outside
from plimsoll.kafka.planning.search.metric_search import MetricSearch

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import Flags
    from plimsoll.kafka.model.proposals import Refusal
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.planning.goals.obstacles import HigherGoals
    from plimsoll.kafka.planning.placement import Limits, Placement
    from plimsoll.kafka.planning.search.budget import Budget
    from plimsoll.kafka.planning.search.metric_search import Means


class Goal:
    """A goal over one placement. The base holds always and does nothing."""

    moves_replicas = True

    def __init__(self, name: str, placement: Placement, settings: AnalyzerSettings) -> None:
        self.name = name
        self.placement = placement
        self.settings = settings
        self._exchanges_tried = 0

    @property
    def is_hard(self) -> bool:
        return self.name in HARD_GOALS

    @property
    def limits(self) -> Limits | None:
        """What the goal limits per broker, if it is a range of a metric."""
        return None

    def find_inapplicable(self) -> Reason | None:
        """Why the goal says nothing about this cluster; None: it applies."""
        return None

    def find_obstacle(self) -> Refusal | None:
        """Why no placement at all can meet a hard goal; None: some might."""
        return None

    def judge(self) -> Reason | None:
        """How the goal is violated; None: it holds."""
        return None

    def explain(self, higher: HigherGoals) -> tuple[Reason, ...]:
        """Why the goal is still violated: what forbids the changes that could help."""
        limits = self.limits
        return () if limits is None else self.explain_broker(limits.find_worst(self.placement.load), higher)

    def explain_broker(self, broker: int, higher: HigherGoals) -> tuple[Reason, ...]:
        """Why a broker is still outside the limits."""
        assert self.limits is not None
        scope = self.placement.scope
        movable = scope.is_repairable if self.is_hard else scope.is_movable
        causes = explain_outside(
            self.placement, self.limits, higher, broker=broker, movable=movable, may_move=self.moves_replicas
        )
        if not self._exchanges_tried:
            return causes
        message = f"none of {self._exchanges_tried} exchanges of a replica that moves for another one helps"
        return (*causes, Reason(code="NoAcceptedExchange", message=message, facts={"exchanges": self._exchanges_tried}))

    def measure_violation(self) -> float:
        """How far the goal is from holding; 0: it holds."""
        limits = self.limits
        if limits is None:
            return 0.0 if self.judge() is None else 1.0
        excess = np.abs(limits.measure_excess(self.placement.load))
        return float((excess / np.where(np.isfinite(limits.high), np.maximum(limits.high, 1.0), 1.0)).sum())

    def optimize(self, budget: Budget) -> None:
        """Change the placement for the goal, within everything accepted so far."""

    def run_search(self, budget: Budget, *, means: Means, movable: Flags) -> None:
        """Search for changes within the limits of the goal."""
        assert self.limits is not None
        search = MetricSearch(self.placement, self.limits, budget, means=means, movable=movable)
        search.run()
        self._exchanges_tried = search.exchanges_tried

    def accept(self) -> None:
        """Bind the goals that follow."""
        limits = self.limits
        if limits is not None and not self.is_hard:
            self.placement.accepted.append(limits)


class InapplicableGoal(Goal):
    """A goal that this cluster has no data for."""

    def __init__(self, name: str, placement: Placement, settings: AnalyzerSettings, reason: Reason) -> None:
        super().__init__(name, placement, settings)
        self._reason = reason

    def find_inapplicable(self) -> Reason | None:
        return self._reason
