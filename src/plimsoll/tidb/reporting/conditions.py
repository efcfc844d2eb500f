"""How a TidbClusterAutoScaler stands, as conditions: a pure function of what came of a pass.

`statuses` writes them, `telling` makes events of those that changed. Messages say nothing that changes by itself, such
as seconds that are left: an equal pass must give an equal status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from plimsoll.objects.api.meta import Condition
from plimsoll.tidb.model.planner_answer import NO_METRICS
from plimsoll.tidb.model.reasons import ReasonCode
from plimsoll.tidb.model.reconcile_result import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plimsoll.core.plans import Reason
    from plimsoll.tidb.model.planner_answer import NoAnswer
    from plimsoll.tidb.model.reconcile_result import ComponentResult, ReconcileResult

READY: Final = "Ready"
VALID: Final = "Valid"
METRICS_AVAILABLE: Final = "MetricsAvailable"
PLANNER_REACHABLE: Final = "PlannerReachable"
SCALING_LIMITED: Final = "ScalingLimited"
SCALE_IN_BLOCKED: Final = "ScaleInBlocked"
CONFLICT: Final = "Conflict"
UNSCHEDULABLE: Final = "Unschedulable"
TYPES: Final = (
    READY,
    VALID,
    METRICS_AVAILABLE,
    PLANNER_REACHABLE,
    SCALING_LIMITED,
    SCALE_IN_BLOCKED,
    CONFLICT,
    UNSCHEDULABLE,
)
STARTING: Final = "ClusterStarting"
"""The reason for what is not yet so because the cluster is new: nothing to be warned of."""
LIMITS: Final = frozenset({ReasonCode.COUNT_REACHED, ReasonCode.UNKNOWN_RESOURCE_TYPE})
"""Codes of reasons that say the autoscaler's own words keep more back."""

_State = Literal["True", "False", "Unknown"]


def conditions_of(result: ReconcileResult) -> tuple[Condition, ...]:
    """Those that can be told; what a pass did not come to is left out."""
    valid = _valid(result)
    if result.standing is Phase.INVALID:
        return valid, _not_ready("Invalid", valid.message)
    if result.standing is Phase.NO_BASE:
        return valid, _not_ready("ClusterNotFound", f"there is no TidbCluster {result.base}")
    found = [valid, _conflict(result.components), _blocked(result), _limited(result), _unschedulable(result)]
    found += map(_while_starting, _asking(result.components)) if result.awaits_cluster else _asking(result.components)
    return (*found, _ready(result, found))


def _valid(result: ReconcileResult) -> Condition:
    if result.problems:
        more = len(result.problems) - 1
        told = f"{result.problems[0]}{f' (and {more} more)' if more else ''}"
        return _condition(VALID, "False", "Invalid", told)
    if result.warnings:
        return _condition(VALID, "True", "ValidWithWarnings", "; ".join(result.warnings))
    return _condition(VALID, "True", "Valid", "the specification can be followed")


def _conflict(components: Iterable[ComponentResult]) -> Condition:
    told = [
        f"{component_result.component} is scaled by the older autoscaler {component_result.rival}"
        for component_result in components
        if component_result.rival
    ]
    if told:
        return _condition(CONFLICT, "True", "OlderAutoscaler", "; ".join(told))
    return _condition(CONFLICT, "False", "NoConflict", "no older autoscaler names the same components of the cluster")


def _blocked(result: ReconcileResult) -> Condition:
    blocked = [act_done for act_done in result.done if act_done.is_blocked and act_done.reason is not None]
    if not blocked:
        return _condition(SCALE_IN_BLOCKED, "False", "NotBlocked", "no removal is held up")
    told = "; ".join(
        f"{act_done.cluster}: {_with_numbers(act_done.reason)}" for act_done in blocked if act_done.reason is not None
    )
    first = blocked[0].reason
    assert first is not None
    return _condition(SCALE_IN_BLOCKED, "True", first.code, told)


def _with_numbers(reason: Reason) -> str:
    """Whatever blocks a removal, people want to see how many stores are left of how many; if that is known."""
    up, needed = reason.facts.get("up"), reason.facts.get("needed")
    if up is None or needed is None or "needed" in reason.message:
        return str(reason)
    return f"{reason} ({up} normal stores stay Up, {needed} are needed)"


def _limited(result: ReconcileResult) -> Condition:
    """A limit keeps instances back in the pass that makes as many as it allows, too."""
    limits = [
        (act.key, limit)
        for component in result.components
        for act in (*component.decided.acts, *component.decided.held)
        for limit in _limits_in(act.reason)
    ]
    if not limits:
        return _condition(SCALING_LIMITED, "False", "WithinLimits", "no limit keeps instances back")
    told = dict.fromkeys(f"{key}: {limit}" if key else str(limit) for key, limit in limits)
    return _condition(SCALING_LIMITED, "True", limits[0][1].code, "; ".join(told))


def _limits_in(reason: Reason) -> Iterator[Reason]:
    if reason.code in LIMITS:
        yield reason
        return
    for cause in reason.because:
        yield from _limits_in(cause)


def _unschedulable(result: ReconcileResult) -> Condition:
    waiting = [name for component in result.components for name in component.waiting]
    if not waiting:
        return _condition(UNSCHEDULABLE, "False", "PodsHaveNodes", "no pod of a group has waited long for a node")
    told = f"pods find no node: {', '.join(waiting)}; no more are added there"
    return _condition(UNSCHEDULABLE, "True", "PodsWithoutNode", told)


def _asking(components: Iterable[ComponentResult]) -> Iterator[Condition]:
    """What the planner said; nothing, if it was asked nothing."""
    asked = [component_result for component_result in components if component_result.asked]
    if not asked:
        return
    failed = [
        (component_result, component_result.no_answer)
        for component_result in asked
        if component_result.no_answer is not None
    ]
    if not failed:
        yield _condition(PLANNER_REACHABLE, "True", "Answered", "every question was answered")
        if any(not component_result.is_external for component_result in asked):
            yield _condition(METRICS_AVAILABLE, "True", "Answered", "the planner knows enough to plan")
        return
    refused = [(component_result, why) for component_result, why in failed if not why.is_plain]
    if refused:
        yield _condition(PLANNER_REACHABLE, "False", refused[0][1].code, _problems(refused))
    else:
        yield _condition(PLANNER_REACHABLE, "True", "Answered", "the planner answers that it cannot plan")
    blind = [(component_result, why) for component_result, why in failed if why.code == NO_METRICS]
    if blind:
        yield _condition(METRICS_AVAILABLE, "False", NO_METRICS, _problems(blind))
    elif any(not component_result.is_external for component_result, _ in failed):
        yield _condition(METRICS_AVAILABLE, "Unknown", "NotPlanned", "the planner gave no plan")


def _while_starting(condition: Condition) -> Condition:
    """Under a reason of its own, so that it is news if it stays so."""
    return replace(condition, reason=STARTING) if condition.status == "False" else condition


def _ready(result: ReconcileResult, found: Iterable[Condition]) -> Condition:
    by_type = {condition.type: condition for condition in found}
    if result.standing is Phase.DELETED:
        return _not_ready("BeingDeleted", result.told or "its groups are being removed")
    if by_type[CONFLICT].status == "True":
        return _not_ready("Conflict", by_type[CONFLICT].message)
    problems = [
        f"{component_result.component}: {component_result.problem}"
        for component_result in result.components
        if component_result.problem
    ]
    if problems:
        return _not_ready("Failed", "; ".join(problems))
    for asked in (PLANNER_REACHABLE, METRICS_AVAILABLE):
        if asked in by_type and by_type[asked].status == "False":
            return _not_ready(by_type[asked].reason, by_type[asked].message)
    if result.brake is not None:
        return _not_ready(result.brake.code, str(result.brake))
    held = [
        f"{component_result.component}: {why.reason}"
        for component_result in result.components
        for why in component_result.decided.held
        if not why.key
    ]
    if held:
        return _condition(READY, "True", "ScaleHeld", "; ".join(held))
    return _condition(READY, "True", "Scaling", f"scales {result.base}")


def _problems(failed: Iterable[tuple[ComponentResult, NoAnswer]]) -> str:
    return "; ".join(f"{component_result.component}: {why.problem}" for component_result, why in failed)


def _not_ready(reason: str, message: str) -> Condition:
    return _condition(READY, "False", reason, message)


def _condition(of_type: str, status: _State, reason: str, message: str) -> Condition:
    return Condition(type=of_type, status=status, reason=reason, message=message)
