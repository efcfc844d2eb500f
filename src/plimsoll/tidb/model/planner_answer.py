"""Why a planner gave no plans: reason codes, and the value that carries one."""

from __future__ import annotations

from typing import Final

from plimsoll.core.values import Value
from plimsoll.tidb.model.scaling_plan import ScalingPlan  # noqa: TC001 - msgspec reads annotations at run time

UNREACHABLE: Final = "PlannerUnreachable"
REFUSED: Final = "PlannerRefused"
NO_METRICS: Final = "InsufficientMetrics"
BAD_ANSWER: Final = "BadAnswer"
CLUSTER_NOT_VISIBLE: Final = frozenset({REFUSED, NO_METRICS})
"""Codes of a planner that cannot see the cluster yet."""


class PlannerAnswer(Value):
    """Accepted plans. `gaps` name what the planner did not know: it scales nothing in because of them."""

    plans: tuple[ScalingPlan, ...]
    gaps: tuple[str, ...] = ()


class NoAnswer(Value):
    """Why there are no plans. Nothing follows from it. `code` is one of the codes above."""

    code: str
    problem: str
    is_from_planner: bool = False
    """The planner was reached and answered itself that it has too little data."""
