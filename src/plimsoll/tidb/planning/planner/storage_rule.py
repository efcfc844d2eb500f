"""Full disks of TiKV: more stores of the cluster itself, so that data takes less of each. It never removes any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.tidb.model.decimals import is_above, least_above, shown
from plimsoll.tidb.planning.planner.result import CannotPlan, ReasonCode, Refusal, because
from plimsoll.tidb.planning.planner.scale_out import Growth, Standing, grown

if TYPE_CHECKING:
    from plimsoll.tidb.model.strategy import Rule, Strategy
    from plimsoll.tidb.planning.planner.groups import GroupCounts
    from plimsoll.tidb.planning.planner.instances import Instance


def by_storage(
    rule: Rule, strategy: Strategy, instances: tuple[Instance, ...], *, roster: GroupCounts
) -> Growth | CannotPlan:
    """All data, against the disks that stay: those of groups are borrowed, their data must fit back."""
    known = [instance for instance in instances if instance.disk is not None]
    if 2 * len(known) < len(instances) or not known:
        detail = f"disks of {len(instances) - len(known)} of {len(instances)} stores are unknown"
        return CannotPlan(code=Refusal.INSUFFICIENT_METRICS, detail=detail)
    used = sum(instance.disk.used_bytes for instance in known if instance.disk)
    capacity = sum(instance.disk.capacity_bytes for instance in known if instance.disk and instance.is_homogeneous)
    size = strategy.homogeneous.storage_bytes if strategy.homogeneous else 0
    if not capacity:
        detail = "stores of the cluster have no capacity, as far as they tell"
        return CannotPlan(code=Refusal.NO_CAPACITY, detail=detail)
    if not size:
        detail = f"resources have no storage of {strategy.component.homogeneous_type}"
        return CannotPlan(code=Refusal.NO_HOMOGENEOUS_SIZE, detail=detail)
    usage = used / capacity
    facts = {"rule": "storage", "usage": shown(usage), "max": shown(rule.high), "target": shown(rule.target)}
    if not is_above(usage, rule.high):
        return Growth(plan=None, reasons=(because(ReasonCode.STEADY, "disks are not too full", **facts),))
    need = used / rule.target - capacity
    return grown(
        least_above(need / size),
        strategy=strategy,
        standing=Standing.of(strategy, instances),
        roster=roster,
        may_evict=len(known) == len(instances),
        facts=facts,
    )
