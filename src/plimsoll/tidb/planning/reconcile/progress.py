"""Progress of the last change of a group or of the base cluster, from what is observed. Pure.

A missing status is read so that nothing is started on top of a change that may be in progress.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll.tidb.model.reconcile_types import ObservedBase, ObservedGroup


def is_lowered(group: ObservedGroup) -> bool:
    """Whether it has fewer replicas than instances: the last instances are being removed."""
    known = (group.registered or 0) + group.offline
    return (group.running or 0) > group.replicas or known > group.replicas


def is_shrinking(group: ObservedGroup) -> bool:
    """Whether one of its instances is being removed, with replicas already lowered or not."""
    return group.drain_record is not None or group.offline > 0 or is_lowered(group)


def store_may_stay(group: ObservedGroup, *, wanted: int) -> bool:
    """Whether a store is being removed that is needed again and is not a Tombstone yet."""
    if is_lowered(group):
        return wanted > group.replicas and (group.registered or 0) + group.offline > group.replicas
    return wanted >= group.replicas and (group.drain_record is not None or group.offline > 0)


def count_missing_instances(group: ObservedGroup) -> int:
    """Desired instances that have not registered.

    A store that is being removed is not missing. Unknown counts as none.
    """
    if group.registered is None:
        return 0
    return max(0, group.replicas - group.registered - max(group.offline, int(group.drain_record is not None)))


def describe_unfinished(group: ObservedGroup, *, is_tikv: bool) -> str:
    """Why the last change is not finished; empty: it is."""
    if group.running is None:
        is_there = group.registered is not None and group.registered >= group.replicas
        return "" if is_there else "its status does not say whether its instances exist"
    if group.running != group.replicas:
        return f"{group.running} instances exist, {group.replicas} are desired"
    if is_tikv and group.registered is not None and group.registered < group.replicas:
        return f"{group.registered} of {group.replicas} stores are Up"
    return ""


def describe_unfinished_for_fewer(group: ObservedGroup, *, is_tikv: bool) -> str:
    """Like `describe_unfinished`, but for scale-in: if not all instances exist yet, scale-in returns to what exists.

    This does not apply if a store exists and is silent: it may hold the only copy of its data.
    """
    if is_lowered(group):
        return f"more than {group.replicas} instances still exist"
    if is_tikv and group.registered is not None and (group.present or 0) > group.registered:
        return f"{group.registered} of {group.present} stores are Up"
    if group.running is None:
        is_reported = group.registered is not None and not count_missing_instances(group)
        return "" if is_reported else describe_unfinished(group, is_tikv=is_tikv)
    return ""


def describe_unfinished_base(base: ObservedBase, *, is_tikv: bool) -> str:
    """Like `describe_unfinished`, for the base cluster, which is only raised. A missing status does not hold it."""
    if base.running is not None and base.running != base.replicas:
        return f"{base.running} instances exist, {base.replicas} are desired"
    if is_tikv and base.registered is not None and base.registered < base.replicas:
        return f"{base.registered} of {base.replicas} stores are Up"
    return ""
