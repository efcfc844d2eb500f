"""Conditions of a TidbClusterAutoScaler: a pure function of a reconcile result.

Messages contain nothing that changes by itself, such as remaining seconds: an equal reconcile must give an equal
status.
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
"""The reason for conditions that are False because the cluster is new: not worth a warning."""
LIMITS: Final = frozenset({ReasonCode.COUNT_REACHED, ReasonCode.UNKNOWN_RESOURCE_TYPE})
"""Reason codes of limits in the autoscaler itself."""

_State = Literal["True", "False", "Unknown"]


def build_conditions(result: ReconcileResult) -> tuple[Condition, ...]:
    """The conditions that are known; those that the reconcile did not reach are left out."""
    valid = _build_valid(result)
    if result.phase is Phase.INVALID:
        return valid, _build_not_ready("Invalid", valid.message)
    if result.phase is Phase.NO_BASE:
        return valid, _build_not_ready("ClusterNotFound", f"TidbCluster {result.base} does not exist")
    if result.phase is Phase.UNREADABLE:
        return (_build_not_ready("Unreadable", result.message),)
    conditions = [
        valid,
        _build_conflict(result.components),
        _build_blocked(result),
        _build_limited(result),
        _build_unschedulable(result),
    ]
    conditions += (
        map(_mark_starting, _build_source_conditions(result.components))
        if result.awaits_cluster
        else _build_source_conditions(result.components)
    )
    return (*conditions, _build_ready(result, conditions))


def _build_valid(result: ReconcileResult) -> Condition:
    if result.problems:
        more = len(result.problems) - 1
        messages = f"{result.problems[0]}{f' (and {more} more)' if more else ''}"
        return _build_condition(VALID, "False", "Invalid", messages)
    if result.warnings:
        return _build_condition(VALID, "True", "ValidWithWarnings", "; ".join(result.warnings))
    return _build_condition(VALID, "True", "Valid", "the specification is valid")


def _build_conflict(components: Iterable[ComponentResult]) -> Condition:
    messages = [
        f"{result.component} is scaled by the older autoscaler {result.older_autoscaler}"
        for result in components
        if result.older_autoscaler
    ]
    if messages:
        return _build_condition(CONFLICT, "True", "OlderAutoscaler", "; ".join(messages))
    return _build_condition(
        CONFLICT, "False", "NoConflict", "no older autoscaler scales the same components of the cluster"
    )


def _build_blocked(result: ReconcileResult) -> Condition:
    blocked = [act_result for act_result in result.done if act_result.is_blocked and act_result.reason is not None]
    if not blocked:
        return _build_condition(SCALE_IN_BLOCKED, "False", "NotBlocked", "no removal is blocked")
    messages = "; ".join(
        f"{act_result.cluster}: {_with_numbers(act_result.reason)}"
        for act_result in blocked
        if act_result.reason is not None
    )
    first = blocked[0].reason
    assert first is not None
    return _build_condition(SCALE_IN_BLOCKED, "True", first.code, messages)


def _with_numbers(reason: Reason) -> str:
    """The reason, with the number of remaining stores if known."""
    up, needed = reason.facts.get("up"), reason.facts.get("needed")
    if up is None or needed is None or "needed" in reason.message:
        return str(reason)
    return f"{reason} ({up} normal stores stay Up, {needed} are needed)"


def _build_limited(result: ReconcileResult) -> Condition:
    """A limit also counts in the reconcile that creates as many instances as it allows."""
    limits = [
        (act.key, limit)
        for component in result.components
        for act in (*component.decision.acts, *component.decision.held)
        for limit in _find_limits(act.reason)
    ]
    if not limits:
        return _build_condition(SCALING_LIMITED, "False", "WithinLimits", "no limit is reached")
    messages = dict.fromkeys(f"{key}: {limit}" if key else str(limit) for key, limit in limits)
    return _build_condition(SCALING_LIMITED, "True", limits[0][1].code, "; ".join(messages))


def _find_limits(reason: Reason) -> Iterator[Reason]:
    if reason.code in LIMITS:
        yield reason
        return
    for cause in reason.because:
        yield from _find_limits(cause)


def _build_unschedulable(result: ReconcileResult) -> Condition:
    waiting = [name for component in result.components for name in component.unschedulable]
    if not waiting:
        return _build_condition(
            UNSCHEDULABLE, "False", "PodsHaveNodes", "no pod of a group has been unschedulable for long"
        )
    messages = f"pods are unschedulable in {', '.join(waiting)}; no more instances are added there"
    return _build_condition(UNSCHEDULABLE, "True", "PodsWithoutNode", messages)


def _build_source_conditions(components: Iterable[ComponentResult]) -> Iterator[Condition]:
    """Conditions about the planner; none if it was not asked."""
    queried = [result for result in components if result.is_queried]
    if not queried:
        return
    failed = [(result, result.no_answer) for result in queried if result.no_answer is not None]
    if not failed:
        yield _build_condition(PLANNER_REACHABLE, "True", "Answered", "every request was answered")
        if any(not result.is_external for result in queried):
            yield _build_condition(METRICS_AVAILABLE, "True", "Answered", "the planner has enough metrics")
        return
    refused = [(result, no_answer) for result, no_answer in failed if not no_answer.is_from_planner]
    if refused:
        yield _build_condition(PLANNER_REACHABLE, "False", refused[0][1].code, _join_problems(refused))
    else:
        yield _build_condition(PLANNER_REACHABLE, "True", "Answered", "the planner answered that it cannot plan")
    without_metrics = [(result, no_answer) for result, no_answer in failed if no_answer.code == NO_METRICS]
    if without_metrics:
        yield _build_condition(METRICS_AVAILABLE, "False", NO_METRICS, _join_problems(without_metrics))
    elif any(not result.is_external for result, _ in failed):
        yield _build_condition(METRICS_AVAILABLE, "Unknown", "NotPlanned", "the planner gave no plan")


def _mark_starting(condition: Condition) -> Condition:
    """Use a separate reason, so that a lasting problem is reported as a change later."""
    return replace(condition, reason=STARTING) if condition.status == "False" else condition


def _build_ready(result: ReconcileResult, conditions: Iterable[Condition]) -> Condition:
    by_type = {condition.type: condition for condition in conditions}
    if result.phase is Phase.DELETED:
        return _build_not_ready("BeingDeleted", result.message or "its groups are being removed")
    if by_type[CONFLICT].status == "True":
        return _build_not_ready("Conflict", by_type[CONFLICT].message)
    problems = [f"{result.component}: {result.problem}" for result in result.components if result.problem]
    if problems:
        return _build_not_ready("Failed", "; ".join(problems))
    for queried in (PLANNER_REACHABLE, METRICS_AVAILABLE):
        if queried in by_type and by_type[queried].status == "False":
            return _build_not_ready(by_type[queried].reason, by_type[queried].message)
    if result.pause is not None:
        return _build_not_ready(result.pause.code, str(result.pause))
    held = [
        f"{result.component}: {no_answer.reason}"
        for result in result.components
        for no_answer in result.decision.held
        if not no_answer.key
    ]
    if held:
        return _build_condition(READY, "True", "ScaleHeld", "; ".join(held))
    return _build_condition(READY, "True", "Scaling", f"scales {result.base}")


def _join_problems(failed: Iterable[tuple[ComponentResult, NoAnswer]]) -> str:
    return "; ".join(f"{result.component}: {no_answer.problem}" for result, no_answer in failed)


def _build_not_ready(reason: str, message: str) -> Condition:
    return _build_condition(READY, "False", reason, message)


def _build_condition(condition_type: str, status: _State, reason: str, message: str) -> Condition:
    return Condition(type=condition_type, status=status, reason=reason, message=message)
