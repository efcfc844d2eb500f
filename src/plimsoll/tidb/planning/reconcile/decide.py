"""What a pass does about a component: from what it sees and what it is advised to acts, holds and status. Pure.

The controller calls `decide` with an accepted answer of the planner, `decide_external` with the number of an external
service, `decide_removal` for a component (or a whole autoscaler) that goes; then it acts, and `concluded` gives the
status to write. Without an accepted answer nothing is called and the status stays as it is: a rejected answer counts
for nothing.

`TakeOut` goes to the drainer, which may need many passes: only when the store has left are the replicas lowered, and
only then is the act done. Lowering them and taking the mark away must be one write, or a mark that was left would tell
that the next store has left too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.tidb.model.components import HOT_REGION, SPECIAL_USE_LABEL, Component
from plimsoll.tidb.model.reasons import ReasonCode, told
from plimsoll.tidb.model.reconcile_types import (
    EXTERNAL,
    BringBack,
    CreateGroup,
    Decided,
    Held,
    RaiseBase,
    Remove,
    Resize,
    Size,
    TakeOut,
)
from plimsoll.tidb.model.scaling_plan import ScalingPlan
from plimsoll.tidb.planning.reconcile.base import component_hold, raise_of, wanted_of_base
from plimsoll.tidb.planning.reconcile.context import ReconcileContext
from plimsoll.tidb.planning.reconcile.desired import DesiredCount, first_of_each, wants_of
from plimsoll.tidb.planning.reconcile.group import step_of
from plimsoll.tidb.planning.reconcile.progress import is_lowered, is_shrinking
from plimsoll.tidb.planning.reconcile.status_entries import after_acts, entry_of_base, entry_of_group

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from plimsoll.core.plans import Reason
    from plimsoll.objects.api.tidb import GroupScalingStatus
    from plimsoll.tidb.model.reconcile_types import Act, ComponentSeen, PassPolicy
    from plimsoll.tidb.planning.reconcile.group import Step

_SIZE_OF_THE_BASE: Final = Size(cpu_milli=0, memory_bytes=0)
# These stay whatever the answer says, so nothing waits for their nodes.
_NOT_GOING: Final = frozenset({ReasonCode.NOT_REGISTERED, ReasonCode.REMOVALS_SUPPRESSED})


def decide(seen: ComponentSeen, answer: tuple[ScalingPlan, ...], *, policy: PassPolicy, now: datetime) -> Decided:
    """What follows from an accepted answer. Every key of it ends in an act, is held, or is as it should be."""
    wants, hold = wants_of(seen, answer), component_hold(seen.base)
    turn = ReconcileContext(seen=seen, policy=policy, now=now, may_remove=hold is None and not wants.suppresses)
    steps = _steps(wants.groups, turn, hold=hold)
    own = wanted_of_base(seen, answer)
    own_step: Step = raise_of(own, turn, awaited=_to_shrink_first(steps, turn))
    if hold is not None and own_step is not None:
        own_step = Held(key=own.key, reason=hold)
    status = _statuses(steps, turn)
    if (entry := entry_of_base(own, own_step, turn)) is not None:
        status[own.key] = entry
    held = (*_of_config(seen), *wants.refused, *_left_to_others(seen, steps))
    return _decided([own_step, *(step for _, step in steps)], hold=hold, held=held, status=status)


def decide_external(seen: ComponentSeen, recommended: int, *, policy: PassPolicy, now: datetime) -> Decided:
    """The cluster beside the base that an external service sizes; `recommended` is not yet cut to `maxReplicas`.

    A `CreateGroup` of the key `EXTERNAL` has no size of its own: it is made by `cluster_bodies.external_body`.
    """
    hold = component_hold(seen.base)
    turn = ReconcileContext(seen=seen, policy=policy, now=now, may_remove=hold is None, spares_young=False)
    groups, duplicates = first_of_each(group for group in seen.groups if group.key == EXTERNAL)
    want = _external_want(seen, recommended)
    steps = _steps([*(replace(want, group=group) for group in groups)] or [want], turn, hold=hold)
    held = (*_of_config(seen), *duplicates, *_left_to_others(seen, steps))
    return _decided([step for _, step in steps], hold=hold, held=held, status=_statuses(steps, turn))


def decide_removal(seen: ComponentSeen, *, ignores_cooldown: bool, policy: PassPolicy, now: datetime) -> Decided:
    """The next step towards a component without groups; the base cluster keeps its size. Needs no confirmation."""
    hold = component_hold(seen.base)
    turn = ReconcileContext(
        seen=seen, policy=policy, now=now, spares_young=False, is_final=True, ignores_cooldown=ignores_cooldown
    )
    groups, duplicates = first_of_each(seen.groups)
    steps = _steps([DesiredCount(key=group.key, count=0, group=group) for group in groups], turn, hold=hold)
    return _decided([step for _, step in steps], hold=hold, held=duplicates, status=_statuses(steps, turn))


def concluded(decided: Decided, done: Collection[str], *, now: datetime) -> dict[str, GroupScalingStatus]:
    """The status to write, after the acts of these keys succeeded: their replicas, and the clock of their cool-down.

    A `TakeOut` is done when replicas were lowered, a `Remove` when the TidbCluster is deleted.
    """
    return after_acts(decided, done, now=now)


def _external_want(seen: ComponentSeen, recommended: int) -> DesiredCount:
    assert seen.scaled is not None, "asked only about what is scaled"
    assert seen.scaled.external is not None, "asked only by who has an external service"
    most, component = seen.scaled.external.max_replicas, seen.component
    count = max(0, recommended if most is None else min(recommended, most))
    labels = {SPECIAL_USE_LABEL: HOT_REGION} if component is Component.TIKV else {}
    plan = ScalingPlan(component=component, count=count, resource_type=EXTERNAL, labels=labels)
    notes: tuple[Reason, ...] = ()
    if count < recommended:
        notes = (told(ReasonCode.COUNT_REACHED, f"maxReplicas is {most}", wanted=recommended, count=count),)
    return DesiredCount(key=EXTERNAL, count=count, plan=plan, size=_SIZE_OF_THE_BASE, notes=notes)


# ---- groups


def _steps(
    wants: Iterable[DesiredCount], turn: ReconcileContext, *, hold: Reason | None
) -> list[tuple[DesiredCount, Step]]:
    """What is done about each group, all taken together."""
    steps = [(want, step_of(want, turn)) for want in wants]
    if hold is not None:
        return [(want, step and Held(key=want.key, reason=hold)) for want, step in steps]
    return _one_store_at_a_time(steps, turn)


def _one_store_at_a_time(
    steps: list[tuple[DesiredCount, Step]], turn: ReconcileContext
) -> list[tuple[DesiredCount, Step]]:
    """What is begun goes on, and nothing is begun beside it."""
    leaving = {group.name for group in turn.seen.groups if turn.is_tikv and is_shrinking(group)}
    takers = [step.group for _, step in steps if isinstance(step, TakeOut)]
    first = next((name for name in takers if name in leaving), takers[0] if takers else "")
    is_other_leaving = bool(leaving - {first, *takers})
    message = "another store is leaving, or goes first"
    return [
        (want, Held(key=want.key, reason=told(ReasonCode.ONE_STORE_AT_A_TIME, message, wanted=want.count)))
        if isinstance(step, TakeOut) and (is_other_leaving or step.group != first)
        else (want, step)
        for want, step in steps
    ]


def _to_shrink_first(steps: list[tuple[DesiredCount, Step]], turn: ReconcileContext) -> tuple[str, ...]:
    """Groups whose stores must be gone before the cluster itself grows: the answer takes their nodes for it."""
    if not turn.is_tikv:
        return ()
    return tuple(want.key for want, step in steps if _is_giving_up(want, step))


def _is_giving_up(want: DesiredCount, step: Step) -> bool:
    if want.group is None or want.count > want.standing:
        return False
    if isinstance(step, Held) and step.reason.code in _NOT_GOING:
        return False
    return want.count < want.standing or is_lowered(want.group)


# ---- what comes out


def _statuses(steps: list[tuple[DesiredCount, Step]], turn: ReconcileContext) -> dict[str, GroupScalingStatus]:
    """Of every group there is or should be, and what is known of groups that others decide about."""
    decided = {want.key: entry_of_group(want, step, turn) for want, step in steps}
    kept = {group.key for group in turn.seen.groups} | {turn.seen.component.homogeneous_type}
    others = {key: entry for key, entry in turn.seen.status.items() if key in kept and key not in decided}
    return others | {key: entry for key, entry in decided.items() if entry is not None}


def _of_config(seen: ComponentSeen) -> tuple[Held, ...]:
    """No group is made of a configuration that cannot be read, and none follows it; the rest goes on."""
    problem = seen.base.config_problem
    return (Held(key="", reason=told(ReasonCode.BASE_CONFIG, f"the cluster's {problem}")),) if problem else ()


def _left_to_others(seen: ComponentSeen, steps: list[tuple[DesiredCount, Step]]) -> tuple[Held, ...]:
    """Groups of a way of scaling that the autoscaler had before: nobody says any more how large they should be."""
    keys = {group.key for group in seen.groups} - {want.key for want, _ in steps}
    message = "the autoscaler no longer sizes it: it is left as it is"
    return tuple(Held(key=key, reason=told(ReasonCode.NOT_MANAGED, message)) for key in sorted(keys))


def _decided(
    steps: Iterable[Step], *, hold: Reason | None, held: Iterable[Held], status: dict[str, GroupScalingStatus]
) -> Decided:
    found = list(steps)
    acts = [step for step in found if step is not None and not isinstance(step, Held)]
    whole = [Held(key="", reason=hold)] if hold else []
    return Decided(
        acts=tuple(sorted(acts, key=lambda act: (_order(act), act.key))),
        held=(*whole, *(step for step in found if isinstance(step, Held)), *held),
        status=dict(sorted(status.items())),
    )


def _order(act: Act) -> int:
    """The cluster itself, what shrinks or goes, what grows, what is made."""
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
