"""What the planner answers: plans with reasons, or that it cannot plan. Expected outcomes both, so both are values."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from plimsoll.core.plans import Reason
from plimsoll.core.values import Value
from plimsoll.tidb.model.scaling_plan import ScalingPlan  # noqa: TC001 - msgspec reads annotations at run time


class ReasonCode(StrEnum):
    """Codes of reasons: contract with whoever reads them, hence spelled as the specification does."""

    HOMOGENEOUS_OUT = "homogeneous_out"
    HOMOGENEOUS_LIMIT = "homogeneous_limit"
    HOMOGENEOUS_PENDING = "homogeneous_pending"
    HETEROGENEOUS_OUT = "heterogeneous_out"
    HETEROGENEOUS_PENDING = "heterogeneous_pending"
    HETEROGENEOUS_IN = "heterogeneous_in"
    NO_FREE_NODE = "no_free_node"
    NO_ROOM = "no_room"
    """Every type that may be used is at its count."""
    METRICS_MISSING = "metrics_missing"
    """All else is low, but nothing is removed as long as one instance tells nothing."""
    SCALE_IN_VETO = "scale_in_veto"
    """The others would be too high without it."""
    CUT_TO_COUNT = "cut_to_count"
    EVICTED_FOR_NODES = "evicted_for_nodes"
    STEADY = "steady"


class Refusal(StrEnum):
    """Codes of what cannot be planned."""

    INSUFFICIENT_METRICS = "insufficient_metrics"
    MISSING_RESOURCE_TYPE = "missing_resource_type"
    NO_CAPACITY = "no_capacity"
    NO_HOMOGENEOUS_SIZE = "no_homogeneous_size"


class Planned(Value):
    """Every group that should exist, and the cluster's own instances if there should be more of them.

    A group that stands and is not among the plans is to go. `reasons` tell what was decided and what was not, with the
    numbers it rests on.
    """

    plans: tuple[ScalingPlan, ...]
    reasons: tuple[Reason, ...] = ()


class CannotPlan(Value):
    """Nothing follows, least of all that nothing is needed: whoever asked leaves everything as it is."""

    code: Refusal
    detail: str

    @property
    def is_for_lack_of_data(self) -> bool:
        """Asking again later may help; otherwise what was asked is wrong."""
        return self.code in {Refusal.INSUFFICIENT_METRICS, Refusal.NO_CAPACITY}


def because(code: ReasonCode, message: str, **facts: Any) -> Reason:
    return Reason(code=code.value, message=message, facts=facts)
