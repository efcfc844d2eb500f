"""Decisions about the base cluster, and conditions that hold a whole component. Pure.

The replicas of the base cluster are raised and never lowered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.core.values import Value
from plimsoll.tidb.model.reasons import ReasonCode, format_instances, make_reason
from plimsoll.tidb.model.reconcile_types import Held, RaiseBase
from plimsoll.tidb.planning.reconcile.cooldown import OUT
from plimsoll.tidb.planning.reconcile.progress import describe_unfinished_base

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.tidb.model.reconcile_types import ObservedBase, ObservedComponent
    from plimsoll.tidb.model.scaling_plan import ScalingPlan
    from plimsoll.tidb.planning.reconcile.context import ReconcileContext

_LEFT_ALONE: Final = frozenset({"Upgrade", "Suspend"})


class DesiredBaseCount(Value):
    """The desired replicas of the base cluster: never fewer than it has."""

    key: str
    count: int
    notes: tuple[Reason, ...] = ()


def find_component_hold(base: ObservedBase) -> Reason | None:
    """Why nothing is done about a component; None: it may be changed."""
    if base.is_being_deleted:
        return make_reason(ReasonCode.BASE_BEING_DELETED, "the cluster is being deleted")
    if base.is_paused:
        return make_reason(ReasonCode.BASE_PAUSED, "the cluster is paused")
    if base.phase in _LEFT_ALONE:
        return make_reason(ReasonCode.BASE_PHASE, f"the cluster is in phase {base.phase}", phase=base.phase)
    return None


def compute_base_count(observed: ObservedComponent, answer: Iterable[ScalingPlan]) -> DesiredBaseCount:
    """The count in an answer, limited by the count of the reserved type; without a plan the present one."""
    key, current = observed.component.homogeneous_type, observed.base.replicas
    wanted = max((plan.count for plan in answer if plan.is_homogeneous), default=current)
    reserved = observed.scaled.resources.get(key) if observed.scaled else None
    limit = reserved.count if reserved else None
    if limit is None or wanted <= max(limit, current):
        return DesiredBaseCount(key=key, count=max(current, wanted))
    note = make_reason(
        ReasonCode.COUNT_REACHED, f"the cluster may have {format_instances(limit)}", wanted=wanted, count=limit
    )
    return DesiredBaseCount(key=key, count=max(current, limit), notes=(note,))


def plan_base_raise(
    desired: DesiredBaseCount, context: ReconcileContext, *, awaited: tuple[str, ...]
) -> RaiseBase | Held | None:
    """Raise the base cluster. `awaited`: groups that must lose instances first, because that frees the nodes."""
    base = context.observed.base
    if desired.count == base.replicas:
        return Held(key=desired.key, reason=desired.notes[0]) if desired.notes else None
    if problem := describe_unfinished_base(base, is_tikv=context.is_tikv):
        return Held(
            key=desired.key, reason=make_reason(ReasonCode.UNFINISHED, problem, *desired.notes, wanted=desired.count)
        )
    if awaited:
        message = f"{', '.join(awaited)} must lose instances first"
        return Held(
            key=desired.key,
            reason=make_reason(ReasonCode.REMOVALS_FIRST, message, *desired.notes, wanted=desired.count),
        )
    wait, clock_notes = context.check_wait(desired.key, OUT, annotated=base.last_change)
    if wait:
        return Held(key=desired.key, reason=wait)
    message = f"{format_instances(desired.count)} of the cluster instead of {base.replicas}"
    reason = make_reason(ReasonCode.CLUSTER_GROWS, message, *desired.notes, *clock_notes)
    return RaiseBase(key=desired.key, replicas=desired.count, was=base.replicas, reason=reason)
