"""What is done about the cluster itself: its replicas are raised, never lowered. And when nothing at all is done. Pure.

`applying` asks here for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.core.values import Value
from plimsoll.tidb.model.reasons import ReasonCode, instances, told
from plimsoll.tidb.model.reconcile_types import Held, RaiseBase
from plimsoll.tidb.planning.reconcile.cooldown import OUT
from plimsoll.tidb.planning.reconcile.progress import unfinished_base

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.tidb.model.reconcile_types import BaseSeen, ComponentSeen
    from plimsoll.tidb.model.scaling_plan import ScalingPlan
    from plimsoll.tidb.planning.reconcile.context import ReconcileContext

_LEFT_ALONE: Final = frozenset({"Upgrade", "Suspend"})


class BaseWant(Value):
    """How many instances the cluster itself should have: never fewer than it has."""

    key: str
    count: int
    notes: tuple[Reason, ...] = ()


def component_hold(base: BaseSeen) -> Reason | None:
    """Why nothing at all is done about a component."""
    if base.is_being_deleted:
        return told(ReasonCode.BASE_BEING_DELETED, "the cluster is being deleted")
    if base.is_paused:
        return told(ReasonCode.BASE_PAUSED, "the cluster is paused")
    if base.phase in _LEFT_ALONE:
        return told(ReasonCode.BASE_PHASE, f"the cluster is in phase {base.phase}", phase=base.phase)
    return None


def wanted_of_base(seen: ComponentSeen, answer: Iterable[ScalingPlan]) -> BaseWant:
    """What an answer says of it, up to the count of the reserved type; nothing said: as it is."""
    key, standing = seen.component.homogeneous_type, seen.base.replicas
    wanted = max((plan.count for plan in answer if plan.is_homogeneous), default=standing)
    reserved = seen.scaled.resources.get(key) if seen.scaled else None
    limit = reserved.count if reserved else None
    if limit is None or wanted <= max(limit, standing):
        return BaseWant(key=key, count=max(standing, wanted))
    note = told(ReasonCode.COUNT_REACHED, f"the cluster may have {instances(limit)}", wanted=wanted, count=limit)
    return BaseWant(key=key, count=max(standing, limit), notes=(note,))


def raise_of(want: BaseWant, turn: ReconcileContext, *, awaited: tuple[str, ...]) -> RaiseBase | Held | None:
    """More instances. `awaited`: groups that must have given up theirs before, because they free the nodes."""
    base = turn.seen.base
    if want.count == base.replicas:
        return Held(key=want.key, reason=want.notes[0]) if want.notes else None
    if problem := unfinished_base(base, is_tikv=turn.is_tikv):
        return Held(key=want.key, reason=told(ReasonCode.UNFINISHED, problem, *want.notes, wanted=want.count))
    if awaited:
        message = f"first {', '.join(awaited)} must have given up instances"
        return Held(key=want.key, reason=told(ReasonCode.REMOVALS_FIRST, message, *want.notes, wanted=want.count))
    wait, jumps = turn.waits(want.key, OUT, annotated=base.last_change)
    if wait:
        return Held(key=want.key, reason=wait)
    message = f"{instances(want.count)} of the cluster instead of {base.replicas}"
    reason = told(ReasonCode.CLUSTER_GROWS, message, *want.notes, *jumps)
    return RaiseBase(key=want.key, replicas=want.count, was=base.replicas, reason=reason)
