"""What is done about one group whose number of instances should be another: an act, or why not now. Pure.

Nothing here looks at other groups; `applying` does, and sees to it that stores leave one at a time. A group whose last
change is not finished may only go back towards what is there. TiKV never loses an instance but by `TakeOut`, which asks
PD: what the status of a TidbCluster tells may be old.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.tidb.model.reasons import ReasonCode, instances, told
from plimsoll.tidb.model.reconcile_types import Act, BringBack, CreateGroup, Held, Remove, Resize, TakeOut
from plimsoll.tidb.planning.reconcile.cooldown import IN, OUT
from plimsoll.tidb.planning.reconcile.progress import (
    is_lowered,
    missing_instances,
    store_may_stay,
    unfinished,
    unfinished_for_fewer,
)

if TYPE_CHECKING:
    from plimsoll.tidb.model.reconcile_types import GroupSeen
    from plimsoll.tidb.planning.reconcile.context import ReconcileContext
    from plimsoll.tidb.planning.reconcile.desired import DesiredCount

Step = Act | Held | None


def step_of(want: DesiredCount, turn: ReconcileContext) -> Step:
    """None: the group is as it should be."""
    group = want.group
    if group is None:
        return _create(want, turn) if want.count else _noted(want)
    if group.is_being_deleted:
        return _held(want, ReasonCode.BEING_DELETED, f"{group.name} is being deleted")
    if want.count and turn.is_tikv and store_may_stay(group, wanted=want.count):
        return _bring_back(want, group, turn)
    if want.count >= group.replicas and want.count and turn.is_past_grace(group.waiting_since):
        return _held(want, ReasonCode.UNSCHEDULABLE, "an instance of it finds no node")
    if want.count > group.replicas:
        return _out(want, group, turn)
    if want.count == 0:
        return _towards_nothing(want, group, turn)
    if want.count < group.replicas:
        return _in(want, group, turn, target=want.count)
    return _noted(want)


def _create(want: DesiredCount, turn: ReconcileContext) -> Step:
    assert want.plan is not None, "only an answer makes a group"
    assert want.size is not None, "only of a known type"
    if problem := turn.seen.base.config_problem:
        return _held(want, ReasonCode.BASE_CONFIG, problem)
    wait, jumps = turn.waits(want.key, OUT)
    if wait:
        return Held(key=want.key, reason=wait)
    reason = told(ReasonCode.GROUP_CREATED, f"{instances(want.count)} in a new group", *want.notes, *jumps)
    return CreateGroup(key=want.key, plan=replace(want.plan, count=want.count), size=want.size, reason=reason)


def _out(want: DesiredCount, group: GroupSeen, turn: ReconcileContext) -> Step:
    target = want.count
    if group.running is not None and group.running > group.replicas and not turn.is_tikv:
        target = min(target, group.running)
    elif problem := unfinished(group, is_tikv=turn.is_tikv):
        return _held(want, ReasonCode.UNFINISHED, problem)
    wait, jumps = turn.waits(want.key, OUT, annotated=group.last_change)
    if wait:
        return Held(key=want.key, reason=wait)
    message = f"{instances(target)} instead of {group.replicas}"
    reason = told(ReasonCode.GROUP_GROWS, message, *want.notes, *jumps, wanted=want.count)
    return Resize(key=want.key, group=group.name, replicas=target, was=group.replicas, reason=reason)


def _bring_back(want: DesiredCount, group: GroupSeen, turn: ReconcileContext) -> Step:
    """Stores that are leaving stay. Replicas that were lowered already are raised like any others: in their time.

    A store that is Up counts as there, whatever is told of its pod; one that is Offline without a pod cannot come back.
    """
    target = min(want.count, max(group.running or 0, group.registered or 0, group.replicas))
    if target == group.replicas and is_lowered(group) and group.mark is None:
        return _held(want, ReasonCode.UNFINISHED, "a store of it is leaving, and its pod is gone already")
    if target > group.replicas:
        wait, _ = turn.waits(want.key, OUT, annotated=group.last_change)
        if wait:
            return Held(key=want.key, reason=wait)
    reason = told(ReasonCode.STORE_STAYS, "it is wanted again", *want.notes, wanted=want.count)
    return BringBack(key=want.key, group=group.name, replicas=target, was=group.replicas, reason=reason)


def _in(want: DesiredCount, group: GroupSeen, turn: ReconcileContext, *, target: int) -> Step:
    """Fewer instances, at least `target`; of TiKV one fewer. The cool-down holds for what is begun too."""
    problem = unfinished_for_fewer(group, is_tikv=turn.is_tikv)
    if problem and (is_lowered(group) or not turn.is_final):
        return _held(want, ReasonCode.UNFINISHED, problem)
    if not turn.is_tikv and group.running is not None and group.running < group.replicas:
        target = max(target, group.running)
    wait, jumps = turn.waits(want.key, IN, annotated=group.last_change)
    if wait:
        return Held(key=want.key, reason=wait)
    target = group.replicas - 1 if turn.is_tikv else target
    message = f"{instances(target)} instead of {group.replicas}"
    reason = told(ReasonCode.GROUP_SHRINKS, message, *want.notes, *jumps, wanted=want.count)
    act = TakeOut if turn.is_tikv else Resize
    return act(key=want.key, group=group.name, replicas=target, was=group.replicas, reason=reason)


def _towards_nothing(want: DesiredCount, group: GroupSeen, turn: ReconcileContext) -> Step:
    """A group that nobody wants any more, if that is sure."""
    if not turn.is_final:
        needed = turn.policy.removal_confirmations
        if not turn.may_remove:
            return _held(want, ReasonCode.REMOVALS_SUPPRESSED, "the answer names what nobody knows: nothing is removed")
        # A store that leaves is no longer among the planner's instances, so its answer may leave out those that stay.
        goes_on = group.mark is not None and group.replicas > 1
        if turn.omitted(want) < needed and not goes_on:
            return _held(want, ReasonCode.UNCONFIRMED, f"{needed} answers in a row must leave it out", needed=needed)
    if group.replicas == 0:
        return _remove_empty(want, group, turn)
    missing = missing_instances(group)
    if turn.spares_young and missing and turn.is_past_grace(group.waiting_since):
        return _in(want, group, turn, target=group.registered or 0)
    if turn.spares_young and missing:
        return _held(want, ReasonCode.NOT_REGISTERED, "not all of its instances have registered")
    # A store that was begun with may be buried already: its pod is of no use to anybody.
    if turn.spares_young and group.mark is None and not turn.is_past_grace(group.created):
        return _held(want, ReasonCode.TOO_YOUNG, "its instances may not be known to the planner yet")
    return _in(want, group, turn, target=0) if turn.is_tikv else _remove_servers(want, group, turn)


def _remove_servers(want: DesiredCount, group: GroupSeen, turn: ReconcileContext) -> Step:
    """TiDB servers hold nothing: the TidbCluster goes with them, or after them if they are given time to end."""
    problem = unfinished(group, is_tikv=False)
    if problem and not turn.is_final:
        return _held(want, ReasonCode.UNFINISHED, problem)
    wait, jumps = turn.waits(want.key, IN, annotated=group.last_change)
    if wait:
        return Held(key=want.key, reason=wait)
    message = f"{instances(group.replicas)} {'is' if group.replicas == 1 else 'are'} no longer wanted"
    if turn.policy.tidb_drain_s:
        reason = told(ReasonCode.GROUP_SHRINKS, message, *want.notes, *jumps)
        return Resize(key=want.key, group=group.name, replicas=0, was=group.replicas, reason=reason)
    return Remove(key=want.key, group=group.name, reason=told(ReasonCode.GROUP_REMOVED, message, *want.notes, *jumps))


def _remove_empty(want: DesiredCount, group: GroupSeen, turn: ReconcileContext) -> Step:
    """No status is no proof that its pods are gone. Stores without a pod are the drainer's business, before it goes."""
    if turn.is_tikv and group.running != 0:
        return _held(want, ReasonCode.UNFINISHED, "its last instance is not gone yet")
    if not turn.is_tikv and group.running != 0 and _is_ending(group, turn):
        return _held(want, ReasonCode.UNFINISHED, f"its servers have {turn.policy.tidb_drain_s:g} s to end")
    return Remove(key=want.key, group=group.name, reason=told(ReasonCode.GROUP_REMOVED, "it has no instances left"))


def _is_ending(group: GroupSeen, turn: ReconcileContext) -> bool:
    """Whether the time of its servers runs; a clock that was ahead gives them no more than that."""
    if group.last_change is None:
        return False
    return abs((turn.now - group.last_change).total_seconds()) < turn.policy.tidb_drain_s


def _noted(want: DesiredCount) -> Held | None:
    """It is as it may be, but not as the answer says."""
    return Held(key=want.key, reason=want.notes[0]) if want.notes else None


def _held(want: DesiredCount, code: ReasonCode, message: str, **facts: int) -> Held:
    return Held(key=want.key, reason=told(code, message, *want.notes, wanted=want.count, **facts))
