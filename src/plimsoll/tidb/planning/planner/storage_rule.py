"""The storage rule of TiKV: full disks scale out the base cluster. It never removes stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.tidb.model.decimals import is_above, round_above, round_fact
from plimsoll.tidb.planning.planner.result import CannotPlan, PlannerReason, Refusal, make_planner_reason
from plimsoll.tidb.planning.planner.scale_out import InstanceCounts, ScaleOut, plan_scale_out

if TYPE_CHECKING:
    from plimsoll.tidb.model.strategy import Rule, Strategy
    from plimsoll.tidb.planning.planner.groups import GroupCounts
    from plimsoll.tidb.planning.planner.instances import Instance


def apply_storage_rule(
    rule: Rule, strategy: Strategy, instances: tuple[Instance, ...], *, groups: GroupCounts
) -> ScaleOut | CannotPlan:
    """Compare all data with the disks of the base cluster: group disks are temporary, so their data must fit back."""
    known = [instance for instance in instances if instance.disk is not None]
    if 2 * len(known) < len(instances) or not known:
        detail = f"disk usage of {len(instances) - len(known)} of {len(instances)} stores is unknown"
        return CannotPlan(code=Refusal.INSUFFICIENT_METRICS, detail=detail)
    used = sum(instance.disk.used_bytes for instance in known if instance.disk)
    capacity = sum(instance.disk.capacity_bytes for instance in known if instance.disk and instance.is_homogeneous)
    size = strategy.homogeneous.storage_bytes if strategy.homogeneous else 0
    if not capacity:
        detail = "no store of the base cluster reports a capacity"
        return CannotPlan(code=Refusal.NO_CAPACITY, detail=detail)
    if not size:
        detail = f"resources do not give the storage of {strategy.component.homogeneous_type}"
        return CannotPlan(code=Refusal.NO_HOMOGENEOUS_SIZE, detail=detail)
    usage = used / capacity
    facts = {
        "rule": "storage",
        "usage": round_fact(usage),
        "max": round_fact(rule.high),
        "target": round_fact(rule.target),
    }
    if not is_above(usage, rule.high):
        return ScaleOut(
            plan=None,
            reasons=(make_planner_reason(PlannerReason.STEADY, "disk usage is below the upper threshold", **facts),),
        )
    need = used / rule.target - capacity
    return plan_scale_out(
        round_above(need / size),
        strategy=strategy,
        counts=InstanceCounts.count(strategy, instances),
        groups=groups,
        may_evict=len(known) == InstanceCounts.count(strategy, instances).total,
        facts=facts,
    )
