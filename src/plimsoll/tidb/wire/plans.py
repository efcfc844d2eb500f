"""Plans on the wire: the answer of `POST /autoscaling`, written by our planner and read by our controller.

The controller may ask any planner, so an answer is read with distrust (`read_plans`): one thing wrong and the whole is
refused, because whatever an answer leaves out is removed.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

from plimsoll.core.values import Value
from plimsoll.objects.codec.decode_problems import problem_of
from plimsoll.tidb.model.components import GROUP_LABEL, LARGEST_COUNT, LONGEST_LABEL_VALUE, Component
from plimsoll.tidb.model.scaling_plan import ScalingPlan

_PD_LABEL_KEY: Final = re.compile(r"[$]?[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?")
_PD_LABEL_VALUE: Final = re.compile(r"[-A-Za-z0-9_./]*")
_KUBERNETES_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


class RejectedAnswer(Value):
    """Why an answer is refused as a whole."""

    problem: str


class _WrittenPlan(Value, rename={}):
    """As planners in Go write it: a map that was never made is null."""

    component: Component
    count: int
    resource_type: str
    labels: dict[str, str] | None = None

    def read(self) -> ScalingPlan:
        return ScalingPlan(
            component=self.component, count=self.count, resource_type=self.resource_type, labels=self.labels or {}
        )


def write_plans(plans: tuple[ScalingPlan, ...]) -> bytes:
    """The same plans give the same bytes."""
    return msgspec.json.encode(plans, order="deterministic")


def read_plans(data: bytes, component: Component) -> tuple[ScalingPlan, ...] | RejectedAnswer:
    """The plans of an answer to a question about one component; `null` is the empty answer."""
    try:
        written = msgspec.json.decode(data, type=tuple[_WrittenPlan, ...] | None) or ()
        json.loads(data, object_pairs_hook=_each_once)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return RejectedAnswer(problem=problem_of(error))
    except ValueError as error:  # of the second reading: a key that stands twice, a number of thousands of digits
        return RejectedAnswer(problem=str(error))
    plans = tuple(one.read() for one in written)
    groups = [plan.group for plan in plans]
    for index, plan in enumerate(plans):
        problem = _problem(plan, component)
        if not problem and plan.group in groups[:index]:
            problem = f"group {plan.group} stands twice"
        if problem:
            return RejectedAnswer(problem=f"[{index}]: {problem}")
    return plans


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    """Of two counts in one plan nobody can say which was meant."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise ValueError(f"key {key!r} stands twice in one object")
        seen.add(key)


def _problem(plan: ScalingPlan, asked: Component) -> str:
    if plan.component is not asked:
        return f"component {plan.component}, asked was {asked}"
    if not plan.resource_type:
        return "resource_type is empty"
    if not 0 <= plan.count <= LARGEST_COUNT:
        return f"count {plan.count} is not between 0 and {LARGEST_COUNT}"
    for key, value in plan.labels.items():
        if not _PD_LABEL_KEY.fullmatch(key) or not _PD_LABEL_VALUE.fullmatch(value):
            return f"label {key!r}: {value!r} is none that PD takes"
    if plan.is_homogeneous:
        return ""
    if not plan.group:
        return f"{plan.resource_type} has no label {GROUP_LABEL}"
    if len(plan.group) > LONGEST_LABEL_VALUE or not _KUBERNETES_LABEL_VALUE.fullmatch(plan.group):
        return f"group {plan.group[:100]!r} cannot be the value of a label"
    return ""
