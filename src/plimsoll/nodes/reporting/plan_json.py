"""Plans and loop results as JSON: the output of `plimsoll plan -o json`, and the elements of a scenario's `loops`.

docs/design/formats/plan.md fixes the form. The same plan gives the same bytes: keys are in the order given here. A loop
entry (docs/design/nodes.md 14) has the form of a plan with the outcome of each group. It contains no measured time
unless `is_timed` is set.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from plimsoll.nodes.model.reasons import BLOCKED_BY_POD, PODS_TOO_NEW, WAITS_FOR_COMPLETION
from plimsoll.nodes.model.scale_up_plan import Result
from plimsoll.nodes.reporting.min_size_enforcement import find_raised_groups
from plimsoll.operator.pause import DRY_RUN

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason
    from plimsoll.nodes.loop_result import LoopResult, ScaleDownPart
    from plimsoll.nodes.model.results import ScaleUpResult
    from plimsoll.nodes.model.scale_up_plan import GroupScaleUp, ScaleUpOption, ScaleUpPlan, UnschedulablePods
    from plimsoll.nodes.reporting.min_size_enforcement import RaisedGroup
    from plimsoll.objects.api.nodes import Taint


INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"

Json = dict[str, Any]


def encode_plan(plan: ScaleUpPlan, *, plan_seconds: float | None = None) -> Json:
    found: Json = {"result": str(plan.result), "plan": [_encode_scale_up(scale_up) for scale_up in plan.scale_ups]}
    if plan.existing:
        found["existing"] = [{"node": name, "pods": dict(pods)} for name, pods in plan.existing.items()]
    found["helped"] = plan.scheduled
    found["remaining"] = [_encode_unschedulable(unschedulable) for unschedulable in plan.unschedulable]
    found["costPerHour"] = float(plan.cost_per_hour)
    found["lowerBoundPerHour"] = float(plan.lower_bound_per_hour)
    if plan.label_sets:
        found["labelSets"] = [
            {
                "labels": dict(label_set.labels),
                "merged": [*map(dict, label_set.merged)],
                "served": [*map(dict, label_set.served)],
            }
            for label_set in plan.label_sets
        ]
    if plan.verification_failures:
        found["verificationFailures"] = plan.verification_failures
    if plan_seconds is not None:
        found["planSeconds"] = plan_seconds
    return found


def _encode_scale_up(scale_up: GroupScaleUp) -> Json:
    entry: Json = {
        "group": scale_up.option.group,
        "machineType": get_machine_type(scale_up.option),
        "from": scale_up.before,
        "to": scale_up.after,
        "max": scale_up.option.max_size,
        "created": not scale_up.option.exists,
    }
    if scale_up.option.zone:
        entry["zone"] = scale_up.option.zone
    if scale_up.option.profile is not None:
        entry["labels"] = dict(scale_up.option.profile.labels)
        entry["taints"] = [_encode_taint(taint) for taint in scale_up.option.node.spec.taints]
        entry["capacityType"] = str(scale_up.option.capacity_type)
    if scale_up.option.profile is not None or scale_up.reason.because:
        entry["reason"] = str(scale_up.reason)
    entry["patterns"] = [{"nodes": pattern.nodes, "pods": dict(pattern.pods)} for pattern in scale_up.patterns]
    return entry


def _encode_taint(taint: Taint) -> Json:
    return {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}


def get_machine_type(option: ScaleUpOption) -> str:
    """The machine type; for a group that only has a template, the template's label, or empty."""
    return option.machine_type or option.node.metadata.labels.get(INSTANCE_TYPE, "")


def _encode_unschedulable(unschedulable: UnschedulablePods) -> Json:
    return {"pods": unschedulable.pods, "reasons": [str(reason) for reason in unschedulable.reasons]}


_SCALE_UP_NOT_TRIED = "NotTried"
_SCALE_UP_IN_COOLDOWN = "InCooldown"
_SCALE_UP_ERROR = "ScaleUpError"


class ScaleDownResult(StrEnum):
    """The result of scale-down in Cluster Autoscaler's words."""

    NOT_TRIED = "ScaleDownNotTried"
    IN_COOLDOWN = "ScaleDownInCooldown"
    IN_PROGRESS = "ScaleDownInProgress"
    NO_UNNEEDED = "ScaleDownNoUnneeded"
    NO_NODE_DELETED = "ScaleDownNoNodeDeleted"
    STARTED = "ScaleDownNodeDeleteStarted"


def build_loop_entry(result: LoopResult, *, is_timed: bool = False) -> Json:
    """The entry without its time, which the caller adds. `is_timed`: with `planSeconds`."""
    entry = {"scaleUp": _build_scale_up(result, is_timed=is_timed), "scaleDown": _build_scale_down(result)}
    return entry if result.ended_early is None else {"endedEarly": str(result.ended_early), **entry}


def _build_scale_up(loop: LoopResult, *, is_timed: bool) -> Json:
    part = loop.scale_up
    found = encode_plan(part.plan, plan_seconds=part.plan_seconds if is_timed else None)
    found["result"] = _find_scale_up_result(loop) or found["result"]
    done: dict[int, list[ScaleUpResult]] = {}
    for result in part.results:
        done.setdefault(id(result.scale_up), []).append(result)
    found["plan"] = [
        entry
        for scale_up, planned in zip(part.plan.scale_ups, found["plan"], strict=True)
        for entry in _list_done(planned, done.get(id(scale_up), []))
    ]
    raised = find_raised_groups(loop)
    found["plan"] += [_encode_minimum_increase(raised_group) for raised_group in raised]
    if found["result"] == Result.NOT_NEEDED and any(raised_group.failure is None for raised_group in raised):
        found["result"] = str(Result.NEEDED)
    return found


def _encode_minimum_increase(raised: RaisedGroup) -> Json:
    """A scale-up without pods, in the form of the others."""
    sizes = {"from": raised.before, "to": raised.after, "max": raised.max_size, "created": False}
    entry: Json = {"group": raised.group, "machineType": raised.machine_type, **sizes}
    if raised.zone:
        entry["zone"] = raised.zone
    entry["patterns"] = []
    return entry if raised.failure is None else {**entry, "error": raised.failure.message}


def _find_scale_up_result(loop: LoopResult) -> str:
    """The result where the plan alone does not determine it."""
    part = loop.scale_up
    if loop.ended_early is not None:
        return _SCALE_UP_NOT_TRIED
    if part.skipped is not None and part.skipped.code == PODS_TOO_NEW:
        return _SCALE_UP_IN_COOLDOWN
    failed = any(result.failure is not None for result in part.results)
    return _SCALE_UP_ERROR if failed and not any(result.is_done for result in part.results) else ""


def _list_done(planned: Json, done: list[ScaleUpResult]) -> list[Json]:
    """One entry per provider group: a provider may create several for a planned one. The first has all patterns."""
    if not done:
        return [planned]
    found: list[Json] = []
    for number, result in enumerate(done):
        entry = {**planned, "group": result.group, "from": result.before, "to": result.after}
        entry["created"] = planned["created"] if result.held_back is not None else result.created
        if number:
            entry["patterns"] = []
        if result.failure is not None:
            entry["error"] = result.failure.message
        if result.held_back is not None:
            entry["heldBack"] = str(result.held_back)
        found.append(entry)
    return found


def _build_scale_down(loop: LoopResult) -> Json:
    part = loop.scale_down
    held_back = {node: reason for node, reason in part.held_back.items() if reason.code != DRY_RUN}
    going = [node_removal for node_removal in part.nodes_to_delete.removals if node_removal.node not in held_back]
    unremovable = {
        unremovable_node.node: _format_unremovable(unremovable_node.reason) for unremovable_node in part.unremovable
    }
    unremovable.update({node: _format_unremovable(reason) for node, reason in held_back.items()})
    return {
        "result": str(_find_scale_down_result(loop, part)),
        "empty": [node_removal.node for node_removal in going if node_removal.is_empty],
        "drained": [node_removal.node for node_removal in going if not node_removal.is_empty],
        "unremovable": dict(sorted(unremovable.items())),
    }


def _find_scale_down_result(loop: LoopResult, part: ScaleDownPart) -> ScaleDownResult:
    if loop.ended_early is not None:
        return ScaleDownResult.NOT_TRIED
    if part.started:
        return ScaleDownResult.STARTED
    grew = any(result.is_done for result in loop.scale_up.results)
    is_waiting = loop.scale_up.skipped is not None and loop.scale_up.skipped.code == PODS_TOO_NEW
    if part.is_in_cooldown or grew or is_waiting:
        return ScaleDownResult.IN_COOLDOWN
    if part.skipped is not None:
        return ScaleDownResult.NOT_TRIED
    if part.under_way:
        return ScaleDownResult.IN_PROGRESS
    return ScaleDownResult.NO_NODE_DELETED if part.unneeded else ScaleDownResult.NO_UNNEEDED


def _format_unremovable(reason: Reason) -> str:
    """Cluster Autoscaler's code; for a blocking pod also which pod and why."""
    return f"{reason.code}: {reason}" if reason.code in {BLOCKED_BY_POD, WAITS_FOR_COMPLETION} else reason.code
