"""Messages about a reconcile: sentences, Events, and the plan for the journal. Pure.

Events are built for changes: an act that was done, a condition that changed, a group that is held for a new reason. An
equal reconcile repeats nothing, even after a restart, because the last state is in the status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Action, NotDone, Outcome, Plan, Reason, Ref
from plimsoll.core.values import Value
from plimsoll.kube.recorder.event_objects import EventType
from plimsoll.tidb.model.reconcile_result import Phase
from plimsoll.tidb.model.reconcile_types import BringBack, CreateGroup, RaiseBase, Remove, Resize, TakeOut
from plimsoll.tidb.reporting.conditions import (
    CONFLICT,
    METRICS_AVAILABLE,
    PLANNER_REACHABLE,
    READY,
    SCALE_IN_BLOCKED,
    SCALING_LIMITED,
    STARTING,
    UNSCHEDULABLE,
    VALID,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from plimsoll.objects.api.meta import Condition
    from plimsoll.objects.api.tidb import TidbClusterAutoScalerStatus
    from plimsoll.tidb.model.reconcile_result import ActResult, ComponentResult, ReconcileResult
    from plimsoll.tidb.model.reconcile_types import Act

SUBSYSTEM: Final = "tidb"
SCALED_OUT: Final = "ScaledOut"
SCALED_IN: Final = "ScaledIn"
SCALE_HELD: Final = "ScaleHeld"
_BAD_STATES: Final = {
    VALID: "False",
    PLANNER_REACHABLE: "False",
    METRICS_AVAILABLE: "False",
    SCALE_IN_BLOCKED: "True",
    SCALING_LIMITED: "True",
    CONFLICT: "True",
    UNSCHEDULABLE: "True",
}
"""A condition that changes to this status, or to another reason for it, is worth a warning."""


class EventMessage(Value):
    """An Event to record."""

    type: EventType
    reason: str
    message: str


# ---- sentences


def build_sentences(result: ReconcileResult) -> list[str]:
    """One sentence per component, or one for the whole if there are none."""
    autoscaler = f"{result.autoscaler.namespace}/{result.autoscaler.name}"
    match result.phase:
        case Phase.NO_BASE:
            return [f"{autoscaler}: nothing to do, TidbCluster {result.base} does not exist"]
        case Phase.INVALID:
            more = len(result.problems) - 1
            return [f"{autoscaler}: invalid, no action: {result.problems[0]}{f' (and {more} more)' if more else ''}"]
        case Phase.UNREADABLE:
            return [f"{autoscaler}: nothing is done, {result.message}"]
        case Phase.DELETED:
            parts = [f"{autoscaler}: being deleted: {result.message}"]
        case Phase.ACTED:
            parts = [] if result.components else [f"{autoscaler}: scales nothing"]
    return parts + [
        f"{autoscaler} {component_result.component}: {build_component_sentence(component_result)}"
        for component_result in result.components
    ]


def build_component_sentence(result: ComponentResult) -> str:
    """What was done, or why nothing was."""
    if result.problem:
        return f"failed: {result.problem}"
    if result.older_autoscaler:
        return f"scaled by the older autoscaler {result.older_autoscaler}"
    if result.no_answer is not None:
        return f"no change: {result.no_answer.problem}"
    parts = [_format_act(act_done) for act_done in result.done]
    parts += [f"held{f' {held.key}' if held.key else ''}: {held.reason}" for held in result.decision.held]
    return "; ".join(parts) or "as desired"


def _format_act(done: ActResult) -> str:
    action_text = describe_act(done.act, done.cluster)
    if done.is_done:
        return f"{action_text}: {done.act.reason}"
    reason = done.reason or done.act.reason
    if done.is_blocked:
        return f"{action_text} is blocked: {reason}"
    return f"{action_text} is in progress: {reason}" if done.is_underway else f"{action_text}, but not now: {reason}"


def describe_act(act: Act, cluster: str) -> str:
    """The act as the beginning of a sentence."""
    match act:
        case RaiseBase():
            return f"{cluster} from {act.was} to {act.replicas}"
        case CreateGroup():
            return f"{cluster or act.key} created with {act.plan.count}"
        case Resize() | TakeOut() | BringBack():
            return f"{cluster} from {act.was} to {act.replicas}"
        case Remove():
            return f"{cluster} removed"


# ---- events


def build_events(
    result: ReconcileResult, conditions: Iterable[Condition], *, before: TidbClusterAutoScalerStatus
) -> tuple[EventMessage, ...]:
    """The Events of a reconcile."""
    condition_events = _build_condition_events(conditions, before.conditions)
    # Missing metrics change two conditions and make one Event.
    return tuple(dict.fromkeys((*_build_act_events(result), *_hold_events(result, before), *condition_events)))


def _build_act_events(result: ReconcileResult) -> Iterator[EventMessage]:
    for component in result.components:
        for act_done in component.done:
            if act_done.is_done:
                parts = f"{component.component}: {describe_act(act_done.act, act_done.cluster)}: {act_done.act.reason}"
                yield EventMessage(
                    type=EventType.NORMAL, reason=SCALED_OUT if _is_out(act_done.act) else SCALED_IN, message=parts
                )


def _is_out(act: Act) -> bool:
    match act:
        case RaiseBase() | CreateGroup() | BringBack():
            return True
        case Resize():
            return act.replicas > act.was
        case _:
            return False


def _hold_events(result: ReconcileResult, before: TidbClusterAutoScalerStatus) -> Iterator[EventMessage]:
    for component in result.components:
        known: Mapping[str, object] = getattr(before, component.component.value)
        for held in component.decision.held:
            was, now = known.get(held.key), component.status.get(held.key)
            if now is None or getattr(was, "reason", "") == now.reason:
                continue
            yield EventMessage(
                type=EventType.NORMAL, reason=SCALE_HELD, message=f"{component.component}: {held.key}: {held.reason}"
            )


def _build_condition_events(conditions: Iterable[Condition], before: Iterable[Condition]) -> Iterator[EventMessage]:
    known = {condition.type: condition for condition in before}
    for condition in conditions:
        was = known.get(condition.type)
        is_changed = was is None or (was.status, was.reason, was.message) != (
            condition.status,
            condition.reason,
            condition.message,
        )
        if not is_changed or condition.reason == STARTING:
            continue
        if _BAD_STATES.get(condition.type) == condition.status:
            yield EventMessage(type=EventType.WARNING, reason=condition.reason, message=condition.message)
        elif condition.type == READY and condition.reason in {SCALE_HELD, "ClusterNotFound", "Unreadable"}:
            yield EventMessage(type=EventType.NORMAL, reason=condition.reason, message=condition.message)


# ---- the journal


def build_journal_plan(result: ReconcileResult, *, number: int) -> tuple[Plan, tuple[Outcome, ...]]:
    """The plan for `plimsoll why tidbclusterautoscaler/NS/NAME` and `tidbcluster/NS/NAME`, with its outcomes."""
    autoscaler = Ref(kind="tidbclusterautoscaler", namespace=result.autoscaler.namespace, name=result.autoscaler.name)
    actions: list[Action] = []
    outcomes: list[Outcome] = []
    not_done: list[NotDone] = [_build_not_done(autoscaler, reason) for reason in _list_failure_reasons(result)]
    for component in result.components:
        for act_done in component.done:
            action = _build_action(act_done, result, component, autoscaler=autoscaler)
            actions.append(action)
            outcomes.append(Outcome(action=action, result=act_done.result, reason=act_done.reason))
        for held in component.decision.held:
            about = (autoscaler, *_list_cluster_refs(held.key, component, result))
            not_done.append(NotDone(what=f"{component.component} left as it is", about=about, reason=held.reason))
    plan = Plan(
        subsystem=SUBSYSTEM,
        snapshot=number,
        at=result.at,
        actions=tuple(actions),
        not_done=tuple(not_done),
        subject=autoscaler,
    )
    return plan, tuple(outcomes)


def _list_failure_reasons(result: ReconcileResult) -> Iterator[Reason]:
    """Why the reconcile, or a component of it, did nothing."""
    if result.phase is Phase.INVALID:
        yield Reason(code="Invalid", message="; ".join(map(str, result.problems)))
    elif result.phase is Phase.NO_BASE:
        yield Reason(code="ClusterNotFound", message=f"TidbCluster {result.base} does not exist")
    elif result.phase is Phase.UNREADABLE:
        yield Reason(code="Unreadable", message=result.message)
    elif result.phase is Phase.DELETED:
        yield Reason(code="BeingDeleted", message=result.message)
    for component_result in result.components:
        if code := _find_failure_code(component_result):
            yield Reason(
                code=code, message=f"{component_result.component}: {build_component_sentence(component_result)}"
            )


def _find_failure_code(result: ComponentResult) -> str:
    """The code of what prevented scaling; empty: nothing did."""
    if result.problem:
        return "Failed"
    if result.older_autoscaler:
        return "Conflict"
    return result.no_answer.code if result.no_answer is not None else ""


def _build_not_done(autoscaler: Ref, reason: Reason) -> NotDone:
    return NotDone(what="does nothing", about=(autoscaler,), reason=reason)


def _build_action(done: ActResult, result: ReconcileResult, component: ComponentResult, *, autoscaler: Ref) -> Action:
    """The action, found under the changed cluster, the autoscaler, and the base cluster."""
    act = done.act
    namespace, _, base = result.base.partition("/")
    arguments: dict[str, object] = {"component": component.component.value, "key": act.key}
    if isinstance(act, CreateGroup):
        arguments["replicas"] = act.plan.count
    elif not isinstance(act, Remove):
        arguments["replicas"] = act.replicas
    was = {} if isinstance(act, CreateGroup | Remove) else {"replicas": act.was}
    target = Ref(kind="tidbcluster", namespace=namespace, name=done.cluster)
    scaled = Ref(kind="tidbcluster", namespace=namespace, name=base)
    return Action(
        verb=VERBS[type(act)],
        target=target,
        reason=act.reason,
        arguments=arguments,
        precondition=was,
        concerns=tuple(ref for ref in (autoscaler, scaled) if ref != target),
    )


def _list_cluster_refs(key: str, component: ComponentResult, result: ReconcileResult) -> Iterator[Ref]:
    namespace, _, base = result.base.partition("/")
    name = base if key == component.component.homogeneous_type else component.clusters.get(key, "")
    if name:
        yield Ref(kind="tidbcluster", namespace=namespace, name=name)


VERBS: Final = {
    RaiseBase: "raise",
    CreateGroup: "create",
    Resize: "resize",
    TakeOut: "take-out",
    BringBack: "bring-back",
    Remove: "remove",
}
