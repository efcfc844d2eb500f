"""How far the last change of a group or of the base cluster has come, by what is seen of it. Pure.

Used by everything that decides or asks. What status does not tell is taken so that nothing is begun on top of a change
that may be under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll.tidb.model.reconcile_types import BaseSeen, GroupSeen


def is_lowered(group: GroupSeen) -> bool:
    """Whether it has fewer replicas already than instances: the last of them are on their way out."""
    known = (group.registered or 0) + group.leaving
    return (group.running or 0) > group.replicas or known > group.replicas


def is_shrinking(group: GroupSeen) -> bool:
    """Whether an instance of it is on its way out, its replicas lowered or not yet."""
    return group.mark is not None or group.leaving > 0 or is_lowered(group)


def store_may_stay(group: GroupSeen, *, wanted: int) -> bool:
    """Whether a store is on its way out that is wanted again, and is not buried yet."""
    if is_lowered(group):
        return wanted > group.replicas and (group.registered or 0) + group.leaving > group.replicas
    return wanted >= group.replicas and (group.mark is not None or group.leaving > 0)


def missing_instances(group: GroupSeen) -> int:
    """How many are to be there and have not registered; one that leaves is not missed. Unknown: none."""
    if group.registered is None:
        return 0
    return max(0, group.replicas - group.registered - max(group.leaving, int(group.mark is not None)))


def unfinished(group: GroupSeen, *, is_tikv: bool) -> str:
    """Why the last change is not finished; empty: it is."""
    if group.running is None:
        is_there = group.registered is not None and group.registered >= group.replicas
        return "" if is_there else "nothing tells whether its instances are there"
    if group.running != group.replicas:
        return f"{group.running} instances are there, and {group.replicas} should be"
    if is_tikv and group.registered is not None and group.registered < group.replicas:
        return f"of {group.replicas} stores {group.registered} are Up"
    return ""


def unfinished_for_fewer(group: GroupSeen, *, is_tikv: bool) -> str:
    """As `unfinished`, but fewer may be had: if not all are there yet, that leads back to what is there.

    Not if one is there and silent: its data may be on it alone.
    """
    if is_lowered(group):
        return f"more than {group.replicas} instances are still there"
    if is_tikv and group.registered is not None and (group.present or 0) > group.registered:
        return f"of {group.present} stores {group.registered} are Up"
    if group.running is None:
        is_told = group.registered is not None and not missing_instances(group)
        return "" if is_told else unfinished(group, is_tikv=is_tikv)
    return ""


def unfinished_base(base: BaseSeen, *, is_tikv: bool) -> str:
    """Of the base cluster, whose replicas are only ever raised. What its status does not tell does not hold it."""
    if base.running is not None and base.running != base.replicas:
        return f"{base.running} instances are there, and {base.replicas} should be"
    if is_tikv and base.registered is not None and base.registered < base.replicas:
        return f"of {base.replicas} stores {base.registered} are Up"
    return ""
