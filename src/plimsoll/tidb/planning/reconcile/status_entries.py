"""The status entry of each group after a pass: first as decided, then with what the acts that succeeded add. Pure.

A second pass that sees and decides the same gives the same entries, so that nothing is written.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.objects.api.tidb import GroupScalingStatus
from plimsoll.tidb.model.reconcile_types import BringBack, CreateGroup, Held, RaiseBase, Remove
from plimsoll.tidb.planning.reconcile.cooldown import IN, OUT, cooling, interval_s, last_change

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from plimsoll.tidb.model.reconcile_types import Act, Decided
    from plimsoll.tidb.planning.reconcile.base import BaseWant
    from plimsoll.tidb.planning.reconcile.context import ReconcileContext
    from plimsoll.tidb.planning.reconcile.desired import DesiredCount
    from plimsoll.tidb.planning.reconcile.group import Step


def entry_of_group(want: DesiredCount, step: Step, turn: ReconcileContext) -> GroupScalingStatus | None:
    """None: nothing of it is to be remembered, because no TidbCluster stands and none is about to."""
    before = turn.seen.status.get(want.key)
    entry = counted(turn, want.key, standing=want.standing, wanted=want.count, step=step)
    if want.group is None and not want.count:
        return None
    if want.group is None and isinstance(step, Held) and before is None and not entry.wanted_count:
        return None
    return replace(entry, omitted_count=turn.omitted(want))


def entry_of_base(want: BaseWant, step: Step, turn: ReconcileContext) -> GroupScalingStatus | None:
    """None: nothing was ever done about the cluster itself, and nothing is.

    A raise that the status does not tell of, and that still holds back the next one, is told now: from here on the
    number of replicas is known, and who wrote it is not asked any more.
    """
    base, before = turn.seen.base, turn.seen.status.get(want.key)
    last = last_change([base.last_change], now=turn.now)
    lost = last.moment if cooling(last, interval_s=interval_s(turn.seen.scaled, OUT), now=turn.now) else None
    if step is None and before is None and lost is None:
        return None
    entry = counted(turn, want.key, standing=base.replicas, wanted=want.count, step=step)
    told = entry.last_auto_scaling_timestamp
    if lost is None or (told is not None and told >= lost):
        return entry
    return replace(entry, last_auto_scaling_timestamp=lost, last_direction=OUT)


def counted(turn: ReconcileContext, key: str, *, standing: int, wanted: int, step: Step) -> GroupScalingStatus:
    """The entry with what is there, what is wanted, why, and for how long a change has been wanted."""
    before = turn.entry(key)
    direction = OUT if wanted > standing else IN if wanted < standing else ""
    run = turn.run(key, direction) if direction else 0
    return replace(
        before,
        replicas=standing,
        desired_replicas=wanted,
        reason=str(step.reason) if step is not None else _settled_reason(before),
        wanted_direction=direction if run else "",
        wanted_count=run,
    )


def after_acts(decided: Decided, done: Collection[str], *, now: datetime) -> dict[str, GroupScalingStatus]:
    """The acts of these keys succeeded. Only what changed the number of replicas starts the clock again."""
    status = dict(decided.status)
    moment = now.astimezone(UTC).replace(microsecond=0)
    for act in decided.acts:
        if act.key not in done:
            continue
        if isinstance(act, Remove):
            status.pop(act.key, None)
            continue
        status[act.key] = _after(act, status.get(act.key) or GroupScalingStatus(), moment)
    return status


def _after(act: Act, entry: GroupScalingStatus, moment: datetime) -> GroupScalingStatus:
    assert not isinstance(act, Remove), "leaves no entry"
    is_new = isinstance(act, CreateGroup)
    was = 0 if isinstance(act, CreateGroup) else act.was
    replicas = act.plan.count if isinstance(act, CreateGroup) else act.replicas
    if isinstance(act, BringBack):
        entry = replace(entry, last_reversal_timestamp=moment)
    if replicas == was and not is_new:
        return replace(entry, replicas=replicas)
    return replace(
        entry,
        replicas=replicas,
        desired_replicas=replicas if isinstance(act, CreateGroup | RaiseBase) else entry.desired_replicas,
        last_auto_scaling_timestamp=moment,
        last_direction=IN if replicas < was else OUT,
        wanted_direction="",
        wanted_count=0,
    )


def _settled_reason(before: GroupScalingStatus) -> str:
    """What was done last; what kept a change from being made is over."""
    return before.reason if before.desired_replicas == before.replicas else ""
