"""Decisions about a component: from what is observed and advised to acts, holds and status. Pure.

`decide` takes an accepted answer of the planner, `decide_external` the number of an external service, and
`decide_removal` handles a component or autoscaler that is removed. After the acts, `conclude` gives the status to
write. Without an accepted answer nothing is called and the status stays: a rejected answer counts for nothing.

The drainer carries out a `TakeOut`, which may take many reconciles. Only when the store is gone are the replicas
lowered, and only then is the act done. Lowering them and clearing the drain record must be one write, because a
leftover record would claim that the next store is gone too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.tidb.model.components import HOT_REGION, SPECIAL_USE_LABEL, Component
from plimsoll.tidb.model.reasons import ReasonCode, make_reason
from plimsoll.tidb.model.reconcile_types import (
    EXTERNAL,
    BringBack,
    CreateGroup,
    Decision,
    Held,
    RaiseBase,
    Remove,
    Resize,
    Size,
    TakeOut,
)
from plimsoll.tidb.model.scaling_plan import ScalingPlan
from plimsoll.tidb.planning.reconcile.base import compute_base_count, find_component_hold, plan_base_raise
from plimsoll.tidb.planning.reconcile.context import ReconcileContext
from plimsoll.tidb.planning.reconcile.desired import DesiredCount, compute_desired_counts, select_oldest_per_key
from plimsoll.tidb.planning.reconcile.group import plan_group_step
from plimsoll.tidb.planning.reconcile.progress import is_lowered, is_shrinking
from plimsoll.tidb.planning.reconcile.status_entries import apply_acts, build_base_entry, build_group_entry

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from plimsoll.core.plans import Reason
    from plimsoll.objects.api.tidb import GroupScalingStatus
    from plimsoll.tidb.model.reconcile_types import Act, ObservedComponent, ReconcilePolicy
    from plimsoll.tidb.planning.reconcile.group import Step

_SIZE_OF_THE_BASE: Final = Size(cpu_milli=0, memory_bytes=0)
# These groups stay in any case, so nothing waits for their nodes.
_NOT_GOING: Final = frozenset({ReasonCode.NOT_REGISTERED, ReasonCode.REMOVALS_SUPPRESSED})


def decide(
    observed: ObservedComponent, answer: tuple[ScalingPlan, ...], *, policy: ReconcilePolicy, now: datetime
) -> Decision:
    """The decision for an accepted answer. Every key of it leads to an act, is held, or is as desired."""
    desired_counts, hold = compute_desired_counts(observed, answer), find_component_hold(observed.base)
    context = ReconcileContext(
        observed=observed, policy=policy, now=now, may_remove=hold is None and not desired_counts.suppresses_removals
    )
    steps = _list_steps(desired_counts.groups, context, hold=hold)
    base_count = compute_base_count(observed, answer)
    base_step: Step = plan_base_raise(base_count, context, awaited=_find_groups_to_shrink_first(steps, context))
    if hold is not None and base_step is not None:
        base_step = Held(key=base_count.key, reason=hold)
    status = _build_status(steps, context)
    if (entry := build_base_entry(base_count, base_step, context)) is not None:
        status[base_count.key] = entry
    held = (*_find_config_holds(observed), *desired_counts.refused, *_find_unmanaged_holds(observed, steps))
    return _build_decision([base_step, *(step for _, step in steps)], hold=hold, held=held, status=status)


def decide_external(
    observed: ObservedComponent, recommended: int, *, policy: ReconcilePolicy, now: datetime
) -> Decision:
    """The decision about the cluster that an external service sizes. `recommended` is not yet limited by `maxReplicas`.

    A `CreateGroup` with the key `EXTERNAL` has no size of its own: `build_external_manifest` builds its TidbCluster.
    """
    hold = find_component_hold(observed.base)
    context = ReconcileContext(observed=observed, policy=policy, now=now, may_remove=hold is None, spares_young=False)
    groups, duplicates = select_oldest_per_key(group for group in observed.groups if group.key == EXTERNAL)
    desired = _build_external_desired(observed, recommended)
    steps = _list_steps([*(replace(desired, group=group) for group in groups)] or [desired], context, hold=hold)
    held = (*_find_config_holds(observed), *duplicates, *_find_unmanaged_holds(observed, steps))
    return _build_decision([step for _, step in steps], hold=hold, held=held, status=_build_status(steps, context))


def decide_removal(
    observed: ObservedComponent, *, ignores_cooldown: bool, policy: ReconcilePolicy, now: datetime
) -> Decision:
    """The next step towards a component without groups. The base cluster keeps its size. No confirmation is needed."""
    hold = find_component_hold(observed.base)
    context = ReconcileContext(
        observed=observed, policy=policy, now=now, spares_young=False, is_final=True, ignores_cooldown=ignores_cooldown
    )
    groups, duplicates = select_oldest_per_key(observed.groups)
    steps = _list_steps([DesiredCount(key=group.key, count=0, group=group) for group in groups], context, hold=hold)
    return _build_decision(
        [step for _, step in steps], hold=hold, held=duplicates, status=_build_status(steps, context)
    )


def note_gaps(decision: Decision, observed: ObservedComponent, gaps: tuple[str, ...]) -> Decision:
    """The decision, with what the planner did not know: no group is scaled in because of it."""
    if not gaps or not observed.groups:
        return decision
    reason = make_reason(ReasonCode.METRICS_INCOMPLETE, f"nothing is scaled in: {'; '.join(gaps)}")
    return replace(decision, held=(Held(key="", reason=reason), *decision.held))


def conclude(decided: Decision, done: Collection[str], *, now: datetime) -> dict[str, GroupScalingStatus]:
    """The status to write after the acts of these keys succeeded: their replicas and the start of their cooldown.

    A `TakeOut` is done when replicas were lowered, a `Remove` when the TidbCluster is deleted.
    """
    return apply_acts(decided, done, now=now)


def _build_external_desired(observed: ObservedComponent, recommended: int) -> DesiredCount:
    assert observed.scaled is not None, "called only for a scaled component"
    assert observed.scaled.external is not None, "called only with an external service"
    most, component = observed.scaled.external.max_replicas, observed.component
    count = max(0, recommended if most is None else min(recommended, most))
    labels = {SPECIAL_USE_LABEL: HOT_REGION} if component is Component.TIKV else {}
    plan = ScalingPlan(component=component, count=count, resource_type=EXTERNAL, labels=labels)
    notes: tuple[Reason, ...] = ()
    if count < recommended:
        notes = (make_reason(ReasonCode.COUNT_REACHED, f"maxReplicas is {most}", wanted=recommended, count=count),)
    return DesiredCount(key=EXTERNAL, count=count, plan=plan, size=_SIZE_OF_THE_BASE, notes=notes)


# ---- groups


def _list_steps(
    desired_counts: Iterable[DesiredCount], context: ReconcileContext, *, hold: Reason | None
) -> list[tuple[DesiredCount, Step]]:
    """The steps of all groups, taken together."""
    steps = [(desired, plan_group_step(desired, context)) for desired in desired_counts]
    if hold is not None:
        return [(desired, step and Held(key=desired.key, reason=hold)) for desired, step in steps]
    return _limit_to_one_store(steps, context)


def _limit_to_one_store(
    steps: list[tuple[DesiredCount, Step]], context: ReconcileContext
) -> list[tuple[DesiredCount, Step]]:
    """A removal that was started continues, and no other is started meanwhile."""
    leaving = {group.name for group in context.observed.groups if context.is_tikv and is_shrinking(group)}
    draining = [step.group for _, step in steps if isinstance(step, TakeOut)]
    first = next((name for name in draining if name in leaving), draining[0] if draining else "")
    is_other_leaving = bool(leaving - {first, *draining})
    message = "another store is being removed or is removed first"
    return [
        (
            desired,
            Held(key=desired.key, reason=make_reason(ReasonCode.ONE_STORE_AT_A_TIME, message, wanted=desired.count)),
        )
        if isinstance(step, TakeOut) and (is_other_leaving or step.group != first)
        else (desired, step)
        for desired, step in steps
    ]


def _find_groups_to_shrink_first(steps: list[tuple[DesiredCount, Step]], context: ReconcileContext) -> tuple[str, ...]:
    """Groups that must lose their stores before the base cluster grows: the answer uses their nodes for it."""
    if not context.is_tikv:
        return ()
    return tuple(desired.key for desired, step in steps if _is_shrinking_first(desired, step))


def _is_shrinking_first(desired: DesiredCount, step: Step) -> bool:
    if desired.group is None or desired.count > desired.current:
        return False
    if isinstance(step, Held) and step.reason.code in _NOT_GOING:
        return False
    return desired.count < desired.current or is_lowered(desired.group)


# ---- the decision


def _build_status(steps: list[tuple[DesiredCount, Step]], context: ReconcileContext) -> dict[str, GroupScalingStatus]:
    """The status of every group that exists or should exist, and of groups that this decision does not cover."""
    decided = {desired.key: build_group_entry(desired, step, context) for desired, step in steps}
    existing = {group.key for group in context.observed.groups} | {context.observed.component.homogeneous_type}
    others = {key: entry for key, entry in context.observed.status.items() if key in existing and key not in decided}
    return others | {key: entry for key, entry in decided.items() if entry is not None}


def _find_config_holds(observed: ObservedComponent) -> tuple[Held, ...]:
    """No group is created from an unreadable configuration, and none follows it. Everything else continues."""
    problem = observed.base.config_problem
    return (Held(key="", reason=make_reason(ReasonCode.BASE_CONFIG, f"the cluster's {problem}")),) if problem else ()


def _find_unmanaged_holds(observed: ObservedComponent, steps: list[tuple[DesiredCount, Step]]) -> tuple[Held, ...]:
    """Groups of an earlier way of scaling, which nothing sizes any more."""
    keys = {group.key for group in observed.groups} - {desired.key for desired, _ in steps}
    message = "the autoscaler no longer sizes it; it stays as it is"
    return tuple(Held(key=key, reason=make_reason(ReasonCode.NOT_MANAGED, message)) for key in sorted(keys))


def _build_decision(
    steps: Iterable[Step], *, hold: Reason | None, held: Iterable[Held], status: dict[str, GroupScalingStatus]
) -> Decision:
    found = list(steps)
    acts = [step for step in found if step is not None and not isinstance(step, Held)]
    whole = [Held(key="", reason=hold)] if hold else []
    return Decision(
        acts=tuple(sorted(acts, key=lambda act: (_order(act), act.key))),
        held=(*whole, *(step for step in found if isinstance(step, Held)), *held),
        status=dict(sorted(status.items())),
    )


def _order(act: Act) -> int:
    """The base cluster first, then removals, then scale-out, then new groups."""
    match act:
        case RaiseBase():
            return 0
        case TakeOut() | Remove():
            return 1
        case Resize():
            return 1 if act.replicas < act.was else 2
        case BringBack():
            return 2
        case CreateGroup():
            return 3
