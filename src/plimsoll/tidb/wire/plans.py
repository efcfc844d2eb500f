"""Plans as JSON: the response body of `POST /autoscaling`.

The controller may use any planner, so `read_plans` validates strictly. One error rejects the whole answer, because
every group that an answer omits is removed.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

from plimsoll.core.values import Value
from plimsoll.objects.codec.decode_problems import describe_problem
from plimsoll.tidb.model.components import GROUP_LABEL, LARGEST_COUNT, LONGEST_LABEL_VALUE, Component
from plimsoll.tidb.model.scaling_plan import ScalingPlan

_PD_LABEL_KEY: Final = re.compile(r"[$]?[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?")
_PD_LABEL_VALUE: Final = re.compile(r"[-A-Za-z0-9_./]*")
_KUBERNETES_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


class RejectedPlans(Value):
    """Why an answer is rejected as a whole."""

    problem: str


class _WrittenPlan(Value, rename={}):
    """The form that planners in Go write: a nil map is null."""

    component: Component
    count: int
    resource_type: str
    labels: dict[str, str] | None = None

    def read(self) -> ScalingPlan:
        return ScalingPlan(
            component=self.component, count=self.count, resource_type=self.resource_type, labels=self.labels or {}
        )


def write_plans(plans: tuple[ScalingPlan, ...]) -> bytes:
    """Encode plans. Equal plans give equal bytes."""
    return msgspec.json.encode(plans, order="deterministic")


def read_plans(data: bytes, component: Component) -> tuple[ScalingPlan, ...] | RejectedPlans:
    """The plans in an answer about one component. `null` is the empty answer."""
    try:
        written = msgspec.json.decode(data, type=tuple[_WrittenPlan, ...] | None) or ()
        json.loads(data, object_pairs_hook=_reject_duplicate_keys)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return RejectedPlans(problem=describe_problem(error))
    except ValueError as error:  # from the second pass: a duplicate key, or a number with thousands of digits
        return RejectedPlans(problem=str(error))
    plans = tuple(plan.read() for plan in written)
    groups = [plan.group for plan in plans]
    for index, plan in enumerate(plans):
        problem = _find_problem(plan, component)
        if not problem and plan.group in groups[:index]:
            problem = f"group {plan.group} occurs twice"
        if problem:
            return RejectedPlans(problem=f"[{index}]: {problem}")
    return plans


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> None:
    """Two counts in one plan are ambiguous."""
    seen_keys: set[str] = set()
    for key, _ in pairs:
        if key in seen_keys:
            raise ValueError(f"key {key!r} occurs twice in one object")
        seen_keys.add(key)


def _find_problem(plan: ScalingPlan, component: Component) -> str:
    if plan.component is not component:
        return f"component is {plan.component}, expected {component}"
    if not plan.resource_type:
        return "resource_type is empty"
    if not 0 <= plan.count <= LARGEST_COUNT:
        return f"count {plan.count} is not between 0 and {LARGEST_COUNT}"
    for key, value in plan.labels.items():
        if not _PD_LABEL_KEY.fullmatch(key) or not _PD_LABEL_VALUE.fullmatch(value):
            return f"label {key!r}: {value!r} is not accepted by PD"
    if plan.is_homogeneous:
        return ""
    if not plan.group:
        return f"{plan.resource_type} has no label {GROUP_LABEL}"
    if len(plan.group) > LONGEST_LABEL_VALUE or not _KUBERNETES_LABEL_VALUE.fullmatch(plan.group):
        return f"group {plan.group[:100]!r} cannot be the value of a label"
    return ""
