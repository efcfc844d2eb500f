"""Status entries of groups: first as decided, then with what the successful acts add. Pure.

A second reconcile that observes and decides the same builds the same entries, so that nothing is written.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.objects.api.tidb import GroupScalingStatus
from plimsoll.tidb.model.components import RESERVED_TYPES
from plimsoll.tidb.model.reconcile_types import BringBack, CreateGroup, Held, RaiseBase, Remove
from plimsoll.tidb.planning.reconcile.cooldown import IN, OUT, check_cooldown, find_last_change, get_interval_s

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from plimsoll.tidb.model.reconcile_types import Act, Decision
    from plimsoll.tidb.planning.reconcile.base import DesiredBaseCount
    from plimsoll.tidb.planning.reconcile.context import ReconcileContext
    from plimsoll.tidb.planning.reconcile.desired import DesiredCount
    from plimsoll.tidb.planning.reconcile.group import Step


def build_group_entry(desired: DesiredCount, step: Step, context: ReconcileContext) -> GroupScalingStatus | None:
    """The entry of a group; None: no TidbCluster exists and none is about to be created."""
    before = context.observed.status.get(desired.key)
    entry = build_entry(context, desired.key, current=desired.current, wanted=desired.count, step=step)
    if desired.group is None and not desired.count:
        return None
    if desired.group is None and isinstance(step, Held) and before is None and not entry.wanted_count:
        return None
    return replace(entry, omitted_count=context.count_omissions(desired))


def build_base_entry(desired: DesiredBaseCount, step: Step, context: ReconcileContext) -> GroupScalingStatus | None:
    """The entry of the base cluster; None: it was never changed, and is not changed now.

    A raise that is missing in the status and still holds back the next one is recorded now. From then on the number of
    replicas is known, and managed fields are not read any more.
    """
    base, before = context.observed.base, context.observed.status.get(desired.key)
    last = find_last_change([base.last_change], now=context.now)
    lost = (
        last.moment
        if check_cooldown(last, interval_s=get_interval_s(context.observed.scaled, OUT), now=context.now)
        else None
    )
    if step is None and before is None and lost is None:
        return None
    entry = build_entry(context, desired.key, current=base.replicas, wanted=desired.count, step=step)
    recorded = entry.last_auto_scaling_timestamp
    if lost is None or (recorded is not None and recorded >= lost):
        return entry
    return replace(entry, last_auto_scaling_timestamp=lost, last_direction=OUT)


def build_entry(context: ReconcileContext, key: str, *, current: int, wanted: int, step: Step) -> GroupScalingStatus:
    """The entry with present and desired count, the reason, and for how long a change has been wanted."""
    before = context.get_status_entry(key)
    direction = OUT if wanted > current else IN if wanted < current else ""
    run = context.count_wanted(key, direction) if direction else 0
    return replace(
        before,
        replicas=current,
        desired_replicas=wanted,
        reason=str(step.reason) if step is not None else _find_settled_reason(before),
        wanted_direction=direction if run else "",
        wanted_count=run,
    )


def apply_acts(decided: Decision, done: Collection[str], *, now: datetime) -> dict[str, GroupScalingStatus]:
    """The status after the acts of these keys succeeded. Only a change of replicas restarts the cooldown."""
    status = dict(decided.status)
    moment = now.astimezone(UTC).replace(microsecond=0)
    for act in decided.acts:
        if act.key not in done:
            continue
        if isinstance(act, Remove):
            status.pop(act.key, None)
            continue
        status[act.key] = _update_entry(act, status.get(act.key) or GroupScalingStatus(), moment)
    return status


def name_clusters(status: dict[str, GroupScalingStatus], clusters: Mapping[str, str]) -> dict[str, GroupScalingStatus]:
    """The status, with the TidbCluster of each group. The base cluster's entry names none."""
    names = {key: clusters.get(key, "") for key in status if key not in RESERVED_TYPES}
    return {key: replace(entry, cluster=names[key]) if names.get(key) else entry for key, entry in status.items()}


def _update_entry(act: Act, entry: GroupScalingStatus, moment: datetime) -> GroupScalingStatus:
    assert not isinstance(act, Remove), "a removed group has no entry"
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


def _find_settled_reason(before: GroupScalingStatus) -> str:
    """The last action; a reason that held a change back no longer applies."""
    return before.reason if before.desired_replicas == before.replicas else ""
