"""What a pass is told as: sentences, events, and the plan that the journal keeps. Pure; `teller` carries it out.

Events are told of what changed: an act that was done, a condition that turned, a group that is held for another reason
than before. So an equal pass tells nothing twice, over restarts too, because what was told last stands in the status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Action, NotDone, Outcome, Plan, Reason, Ref
from plimsoll.core.values import Value
from plimsoll.kube.recorder.texts import EventType
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
    from plimsoll.tidb.model.reconcile_result import ActDone, ComponentResult, ReconcileResult
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
"""Worth a warning when a condition turns to it, or to another reason for it."""


class EventMessage(Value):
    """An event to be."""

    type: EventType
    reason: str
    message: str


# ---- sentences


def sentences_of(result: ReconcileResult) -> list[str]:
    """One for each component, or one for the whole if it came to none."""
    whose = f"{result.about.namespace}/{result.about.name}"
    match result.standing:
        case Phase.NO_BASE:
            return [f"{whose}: nothing to do, there is no TidbCluster {result.base}"]
        case Phase.INVALID:
            more = len(result.problems) - 1
            return [f"{whose}: invalid, nothing is done: {result.problems[0]}{f' (and {more} more)' if more else ''}"]
        case Phase.DELETED:
            told = [f"{whose}: being deleted: {result.told}"]
        case Phase.ACTED:
            told = [] if result.components else [f"{whose}: scales nothing"]
    return told + [
        f"{whose} {component_result.component}: {component_sentence(component_result)}"
        for component_result in result.components
    ]


def component_sentence(result: ComponentResult) -> str:
    """What was done, or why nothing was."""
    if result.problem:
        return f"failed: {result.problem}"
    if result.rival:
        return f"left to the older autoscaler {result.rival}"
    if result.no_answer is not None:
        return f"nothing is changed: {result.no_answer.problem}"
    told = [_act_sentence(act_done) for act_done in result.done]
    told += [f"held{f' {held.key}' if held.key else ''}: {held.reason}" for held in result.decided.held]
    return "; ".join(told) or "as it should be"


def _act_sentence(done: ActDone) -> str:
    what = act_words(done.act, done.cluster)
    if done.is_done:
        return f"{what}: {done.act.reason}"
    why = done.reason or done.act.reason
    if done.is_blocked:
        return f"{what} is blocked: {why}"
    return f"{what} is under way: {why}" if done.is_underway else f"{what}, but not now: {why}"


def act_words(act: Act, cluster: str) -> str:
    match act:
        case RaiseBase():
            return f"{cluster} from {act.was} to {act.replicas}"
        case CreateGroup():
            return f"{cluster or act.key} made with {act.plan.count}"
        case Resize() | TakeOut() | BringBack():
            return f"{cluster} from {act.was} to {act.replicas}"
        case Remove():
            return f"{cluster} removed"


# ---- events


def events_of(
    result: ReconcileResult, conditions: Iterable[Condition], *, before: TidbClusterAutoScalerStatus
) -> tuple[EventMessage, ...]:
    turned = _of_conditions(conditions, before.conditions)
    # What the planner lacks makes two conditions, and one event.
    return tuple(dict.fromkeys((*_of_acts(result), *_of_holds(result, before), *turned)))


def _of_acts(result: ReconcileResult) -> Iterator[EventMessage]:
    for component in result.components:
        for act_done in component.done:
            if act_done.is_done:
                told = f"{component.component}: {act_words(act_done.act, act_done.cluster)}: {act_done.act.reason}"
                yield EventMessage(
                    type=EventType.NORMAL, reason=SCALED_OUT if _is_out(act_done.act) else SCALED_IN, message=told
                )


def _is_out(act: Act) -> bool:
    match act:
        case RaiseBase() | CreateGroup() | BringBack():
            return True
        case Resize():
            return act.replicas > act.was
        case _:
            return False


def _of_holds(result: ReconcileResult, before: TidbClusterAutoScalerStatus) -> Iterator[EventMessage]:
    for component in result.components:
        known: Mapping[str, object] = getattr(before, component.component.value)
        for held in component.decided.held:
            was, now = known.get(held.key), component.status.get(held.key)
            if now is None or getattr(was, "reason", "") == now.reason:
                continue
            yield EventMessage(
                type=EventType.NORMAL, reason=SCALE_HELD, message=f"{component.component}: {held.key}: {held.reason}"
            )


def _of_conditions(conditions: Iterable[Condition], before: Iterable[Condition]) -> Iterator[EventMessage]:
    known = {one.type: one for one in before}
    for condition in conditions:
        was = known.get(condition.type)
        is_news = was is None or (was.status, was.reason, was.message) != (
            condition.status,
            condition.reason,
            condition.message,
        )
        if not is_news or condition.reason == STARTING:
            continue
        if _BAD_STATES.get(condition.type) == condition.status:
            yield EventMessage(type=EventType.WARNING, reason=condition.reason, message=condition.message)
        elif condition.type == READY and condition.reason in {SCALE_HELD, "ClusterNotFound"}:
            yield EventMessage(type=EventType.NORMAL, reason=condition.reason, message=condition.message)


# ---- the journal


def plan_of(result: ReconcileResult, *, number: int) -> tuple[Plan, tuple[Outcome, ...]]:
    """The pass for `plimsoll why tidbclusterautoscaler/NS/NAME` and `tidbcluster/NS/NAME`."""
    autoscaler = Ref(kind="tidbclusterautoscaler", namespace=result.about.namespace, name=result.about.name)
    actions: list[Action] = []
    outcomes: list[Outcome] = []
    left: list[NotDone] = [_not_done(autoscaler, reason) for reason in _whole(result)]
    for component in result.components:
        for act_done in component.done:
            action = _action(act_done, result, component, autoscaler=autoscaler)
            actions.append(action)
            outcomes.append(Outcome(action=action, result=act_done.result, reason=act_done.reason))
        for held in component.decided.held:
            about = (autoscaler, *_cluster_of(held.key, component, result))
            left.append(NotDone(what=f"{component.component} left as it is", about=about, reason=held.reason))
    plan = Plan(subsystem=SUBSYSTEM, snapshot=number, at=result.at, actions=tuple(actions), not_done=tuple(left))
    return plan, tuple(outcomes)


def _whole(result: ReconcileResult) -> Iterator[Reason]:
    """Why a pass, or a component of it, came to nothing."""
    if result.standing is Phase.INVALID:
        yield Reason(code="Invalid", message="; ".join(map(str, result.problems)))
    elif result.standing is Phase.NO_BASE:
        yield Reason(code="ClusterNotFound", message=f"there is no TidbCluster {result.base}")
    elif result.standing is Phase.DELETED:
        yield Reason(code="BeingDeleted", message=result.told)
    for component_result in result.components:
        if code := _trouble_of(component_result):
            yield Reason(code=code, message=f"{component_result.component}: {component_sentence(component_result)}")


def _trouble_of(result: ComponentResult) -> str:
    """The code of what kept a component from being scaled; empty: nothing did."""
    if result.problem:
        return "Failed"
    if result.rival:
        return "Conflict"
    return result.no_answer.code if result.no_answer is not None else ""


def _not_done(autoscaler: Ref, reason: Reason) -> NotDone:
    return NotDone(what="does nothing", about=(autoscaler,), reason=reason)


def _action(done: ActDone, result: ReconcileResult, component: ComponentResult, *, autoscaler: Ref) -> Action:
    """Found under the cluster that it changes, under the autoscaler, and under the cluster that is scaled."""
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


def _cluster_of(key: str, component: ComponentResult, result: ReconcileResult) -> Iterator[Ref]:
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
