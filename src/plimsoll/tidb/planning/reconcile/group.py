"""The step for one group whose count should change: an act, or why not now. Pure.

This module looks at one group only; `decide` ensures that stores are removed one at a time. A group whose last change
is unfinished may only return towards what exists. TiKV loses an instance only by `TakeOut`, which asks PD, because the
status of a TidbCluster may be outdated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.tidb.model.reasons import ReasonCode, format_instances, make_reason
from plimsoll.tidb.model.reconcile_types import Act, BringBack, CreateGroup, Held, Remove, Resize, TakeOut
from plimsoll.tidb.planning.reconcile.cooldown import IN, OUT
from plimsoll.tidb.planning.reconcile.progress import (
    count_missing_instances,
    describe_unfinished,
    describe_unfinished_for_fewer,
    is_lowered,
    store_may_stay,
)

if TYPE_CHECKING:
    from plimsoll.tidb.model.reconcile_types import ObservedGroup
    from plimsoll.tidb.planning.reconcile.context import ReconcileContext
    from plimsoll.tidb.planning.reconcile.desired import DesiredCount

Step = Act | Held | None


def plan_group_step(desired: DesiredCount, context: ReconcileContext) -> Step:
    """The step for a group; None: the group is as desired."""
    group = desired.group
    if group is None:
        return _create_group(desired, context) if desired.count else _hold_for_note(desired)
    if group.is_being_deleted:
        return _hold(desired, ReasonCode.BEING_DELETED, f"{group.name} is being deleted")
    if desired.count and context.is_tikv and store_may_stay(group, wanted=desired.count):
        return _bring_back(desired, group, context)
    if desired.count >= group.replicas and desired.count and context.is_past_grace(group.unschedulable_since):
        return _hold(desired, ReasonCode.UNSCHEDULABLE, "one of its pods is unschedulable")
    if desired.count > group.replicas:
        return _scale_out(desired, group, context)
    if desired.count == 0:
        return _scale_to_zero(desired, group, context)
    if desired.count < group.replicas:
        return _scale_in(desired, group, context, target=desired.count)
    return _hold_for_note(desired)


def _create_group(desired: DesiredCount, context: ReconcileContext) -> Step:
    assert desired.plan is not None, "only an answer creates a group"
    assert desired.size is not None, "a new group has a known type"
    if problem := context.observed.base.config_problem:
        return _hold(desired, ReasonCode.BASE_CONFIG, problem)
    wait, clock_notes = context.check_wait(desired.key, OUT)
    if wait:
        return Held(key=desired.key, reason=wait)
    reason = make_reason(
        ReasonCode.GROUP_CREATED, f"{format_instances(desired.count)} in a new group", *desired.notes, *clock_notes
    )
    return CreateGroup(
        key=desired.key, plan=replace(desired.plan, count=desired.count), size=desired.size, reason=reason
    )


def _scale_out(desired: DesiredCount, group: ObservedGroup, context: ReconcileContext) -> Step:
    target = desired.count
    if group.running is not None and group.running > group.replicas and not context.is_tikv:
        target = min(target, group.running)
    elif problem := describe_unfinished(group, is_tikv=context.is_tikv):
        return _hold(desired, ReasonCode.UNFINISHED, problem)
    wait, clock_notes = context.check_wait(desired.key, OUT, annotated=group.last_change)
    if wait:
        return Held(key=desired.key, reason=wait)
    message = f"{format_instances(target)} instead of {group.replicas}"
    reason = make_reason(ReasonCode.GROUP_GROWS, message, *desired.notes, *clock_notes, wanted=desired.count)
    return Resize(key=desired.key, group=group.name, replicas=target, was=group.replicas, reason=reason)


def _bring_back(desired: DesiredCount, group: ObservedGroup, context: ReconcileContext) -> Step:
    """Keep stores that are being removed. Lowered replicas are raised like any others, after the cooldown.

    A store that is Up exists, whatever the status of its pod says. A store that is Offline without a pod cannot come
    back.
    """
    target = min(desired.count, max(group.running or 0, group.registered or 0, group.replicas))
    if target == group.replicas and is_lowered(group) and group.drain_record is None:
        return _hold(desired, ReasonCode.UNFINISHED, "one of its stores is being removed, and its pod is gone already")
    if target > group.replicas:
        wait, _ = context.check_wait(desired.key, OUT, annotated=group.last_change)
        if wait:
            return Held(key=desired.key, reason=wait)
    reason = make_reason(ReasonCode.STORE_STAYS, "the store is needed again", *desired.notes, wanted=desired.count)
    return BringBack(key=desired.key, group=group.name, replicas=target, was=group.replicas, reason=reason)


def _scale_in(desired: DesiredCount, group: ObservedGroup, context: ReconcileContext, *, target: int) -> Step:
    """Remove instances down to `target`; for TiKV remove one. The cooldown applies to started removals too."""
    problem = describe_unfinished_for_fewer(group, is_tikv=context.is_tikv)
    if problem and (is_lowered(group) or not context.is_final):
        return _hold(desired, ReasonCode.UNFINISHED, problem)
    if not context.is_tikv and group.running is not None and group.running < group.replicas:
        target = max(target, group.running)
    wait, clock_notes = context.check_wait(desired.key, IN, annotated=group.last_change)
    if wait:
        return Held(key=desired.key, reason=wait)
    target = group.replicas - 1 if context.is_tikv else target
    message = f"{format_instances(target)} instead of {group.replicas}"
    reason = make_reason(ReasonCode.GROUP_SHRINKS, message, *desired.notes, *clock_notes, wanted=desired.count)
    act = TakeOut if context.is_tikv else Resize
    return act(key=desired.key, group=group.name, replicas=target, was=group.replicas, reason=reason)


def _scale_to_zero(desired: DesiredCount, group: ObservedGroup, context: ReconcileContext) -> Step:
    """Remove a group that is no longer wanted, if that is certain."""
    if not context.is_final:
        needed = context.policy.removal_confirmations
        if not context.may_remove:
            return _hold(
                desired, ReasonCode.REMOVALS_SUPPRESSED, "the answer names an unknown resource type; nothing is removed"
            )
        # The planner no longer counts a store that is being removed, so its answer may omit the remaining ones.
        goes_on = group.drain_record is not None and group.replicas > 1
        if context.count_omissions(desired) < needed and not goes_on:
            return _hold(desired, ReasonCode.UNCONFIRMED, f"{needed} consecutive answers must omit it", needed=needed)
    if group.replicas == 0:
        return _remove_empty(desired, group, context)
    missing = count_missing_instances(group)
    if context.spares_young and missing and context.is_past_grace(group.unschedulable_since):
        return _scale_in(desired, group, context, target=group.registered or 0)
    if context.spares_young and missing:
        return _hold(desired, ReasonCode.NOT_REGISTERED, "not all of its instances have registered")
    # A store whose removal was started may be a Tombstone already: its pod is of no use.
    if context.spares_young and group.drain_record is None and not context.is_past_grace(group.created):
        return _hold(desired, ReasonCode.TOO_YOUNG, "the planner may not know its instances yet")
    return _scale_in(desired, group, context, target=0) if context.is_tikv else _remove_servers(desired, group, context)


def _remove_servers(desired: DesiredCount, group: ObservedGroup, context: ReconcileContext) -> Step:
    """Remove TiDB servers, which hold no data: the TidbCluster is deleted with them, or after their drain time."""
    problem = describe_unfinished(group, is_tikv=False)
    if problem and not context.is_final:
        return _hold(desired, ReasonCode.UNFINISHED, problem)
    wait, clock_notes = context.check_wait(desired.key, IN, annotated=group.last_change)
    if wait:
        return Held(key=desired.key, reason=wait)
    message = f"{format_instances(group.replicas)} {'is' if group.replicas == 1 else 'are'} no longer needed"
    if context.policy.tidb_drain_s:
        reason = make_reason(ReasonCode.GROUP_SHRINKS, message, *desired.notes, *clock_notes)
        return Resize(key=desired.key, group=group.name, replicas=0, was=group.replicas, reason=reason)
    return Remove(
        key=desired.key,
        group=group.name,
        reason=make_reason(ReasonCode.GROUP_REMOVED, message, *desired.notes, *clock_notes),
    )


def _remove_empty(desired: DesiredCount, group: ObservedGroup, context: ReconcileContext) -> Step:
    """Delete an empty group.

    A missing status does not prove that pods are gone. The drainer handles stores without a pod.
    """
    if context.is_tikv and group.running != 0:
        return _hold(desired, ReasonCode.UNFINISHED, "its last instance is not gone yet")
    if not context.is_tikv and group.running != 0 and _is_ending(group, context):
        return _hold(desired, ReasonCode.UNFINISHED, f"its servers have {context.policy.tidb_drain_s:g} s to shut down")
    return Remove(
        key=desired.key, group=group.name, reason=make_reason(ReasonCode.GROUP_REMOVED, "it has no instances left")
    )


def _is_ending(group: ObservedGroup, context: ReconcileContext) -> bool:
    """Whether its servers are within their drain time. A clock that was ahead does not extend it."""
    if group.last_change is None:
        return False
    return abs((context.now - group.last_change).total_seconds()) < context.policy.tidb_drain_s


def _hold_for_note(desired: DesiredCount) -> Held | None:
    """The group is as allowed, but not as the answer says."""
    return Held(key=desired.key, reason=desired.notes[0]) if desired.notes else None


def _hold(desired: DesiredCount, code: ReasonCode, message: str, **facts: int) -> Held:
    return Held(key=desired.key, reason=make_reason(code, message, *desired.notes, wanted=desired.count, **facts))
