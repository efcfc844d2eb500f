"""Results of the planner: plans with reasons, or a refusal to plan. Both are expected, so both are values."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from plimsoll.core.plans import Reason
from plimsoll.core.values import Value
from plimsoll.tidb.model.scaling_plan import ScalingPlan  # noqa: TC001 - msgspec reads annotations at run time


class PlannerReason(StrEnum):
    """Reason codes of plans, spelled as in docs/design/tidb.md."""

    HOMOGENEOUS_OUT = "homogeneous_out"
    HOMOGENEOUS_LIMIT = "homogeneous_limit"
    HOMOGENEOUS_PENDING = "homogeneous_pending"
    HETEROGENEOUS_OUT = "heterogeneous_out"
    HETEROGENEOUS_PENDING = "heterogeneous_pending"
    HETEROGENEOUS_IN = "heterogeneous_in"
    NO_FREE_NODE = "no_free_node"
    NO_ROOM = "no_room"
    """Every usable type is at its count."""
    METRICS_MISSING = "metrics_missing"
    """Usage is low, but nothing is removed while an instance has no metrics."""
    INSTANCES_UNLISTED = "instances_unlisted"
    """Instances that their TidbClusters call registered are not listed: nothing is removed."""
    SCALE_IN_VETO = "scale_in_veto"
    """The other instances would be above the upper threshold without it."""
    CUT_TO_COUNT = "cut_to_count"
    EVICTED_FOR_NODES = "evicted_for_nodes"
    STEADY = "steady"


class Refusal(StrEnum):
    """Codes of refusals to plan."""

    INSUFFICIENT_METRICS = "insufficient_metrics"
    MISSING_RESOURCE_TYPE = "missing_resource_type"
    NO_CAPACITY = "no_capacity"
    NO_HOMOGENEOUS_SIZE = "no_homogeneous_size"


class PlannerResult(Value):
    """Every group that should exist, and the base cluster if it should grow.

    An existing group without a plan is to be removed. `reasons` explain what was decided and what was not, with the
    numbers.
    """

    plans: tuple[ScalingPlan, ...]
    reasons: tuple[Reason, ...] = ()


class CannotPlan(Value):
    """The planner cannot plan.

    Nothing follows from it, in particular not that nothing is needed: everything stays as it is.
    """

    code: Refusal
    detail: str

    @property
    def is_for_lack_of_data(self) -> bool:
        """Whether a later request may succeed; otherwise the request is wrong."""
        return self.code in {Refusal.INSUFFICIENT_METRICS, Refusal.NO_CAPACITY}


def make_planner_reason(code: PlannerReason, message: str, **facts: Any) -> Reason:
    return Reason(code=code.value, message=message, facts=facts)
