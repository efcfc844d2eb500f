"""The form of a goal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.kafka.planning.goal_list import HARD_GOALS

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason
    from plimsoll.kafka.model.proposals import Refusal
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.planning.placement import Limits, Placement
    from plimsoll.kafka.planning.search.budget import Budget


class Goal:
    """A goal over one placement. The base holds always and does nothing."""

    def __init__(self, name: str, placement: Placement, settings: AnalyzerSettings) -> None:
        self.name = name
        self.placement = placement
        self.settings = settings

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

    def measure_violation(self) -> float:
        """How far the goal is from holding; 0: it holds."""
        limits = self.limits
        if limits is None:
            return 0.0 if self.judge() is None else 1.0
        excess = np.abs(limits.measure_excess(self.placement.load))
        return float((excess / np.where(np.isfinite(limits.high), np.maximum(limits.high, 1.0), 1.0)).sum())

    def optimize(self, budget: Budget) -> None:
        """Change the placement for the goal, within everything accepted so far."""

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
