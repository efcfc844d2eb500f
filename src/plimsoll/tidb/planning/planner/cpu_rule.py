"""The cpu rule: scale out the base cluster, scale out groups, or scale in one instance.

High average usage scales out the base cluster; single hot instances scale out groups; low usage everywhere scales in by
one. Sums are over instances whose load is known. An instance without metrics prevents removals, not additions. If too
many instances lack metrics, the rule decides nothing.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.tidb.model.decimals import TOLERANCE, is_above, is_below, round_above, round_fact
from plimsoll.tidb.planning.planner.instances import CpuLoad  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.tidb.planning.planner.result import CannotPlan, PlannerReason, Refusal, make_planner_reason
from plimsoll.tidb.planning.planner.scale_out import InstanceCounts, ScaleOut, plan_scale_out

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from plimsoll.core.plans import Reason
    from plimsoll.tidb.model.strategy import ResourceType, Rule, Strategy
    from plimsoll.tidb.planning.planner.groups import GroupCounts
    from plimsoll.tidb.planning.planner.instances import Instance


class Loads(Value):
    """Known loads: the sums in cores, and the load of each instance with metrics."""

    known: tuple[CpuLoad, ...]
    used: Fraction
    quota: Fraction
    are_all_known: bool

    @property
    def average(self) -> Fraction:
        return self.used / self.quota

    def select_above(self, threshold: Fraction) -> list[CpuLoad]:
        return [cpu_load for cpu_load in self.known if is_above(cpu_load.usage, threshold)]

    def build_facts(self, rule: Rule) -> dict[str, Any]:
        numbers = {"usedCores": self.used, "quotaCores": self.quota, "average": self.average}
        numbers |= {"max": rule.high, "min": rule.low, "target": rule.target}
        return {"rule": "cpu", **{name: round_fact(number) for name, number in numbers.items()}}


def apply_cpu_rule(
    rule: Rule, strategy: Strategy, instances: tuple[Instance, ...], *, groups: GroupCounts
) -> ScaleOut | CannotPlan:
    """Changes `groups`, or scales out the base cluster."""
    counts = InstanceCounts.count(strategy, instances)
    loads = _read_loads(instances, everything=counts.total)
    if isinstance(loads, CannotPlan):
        return loads
    if is_above(loads.average, rule.high):
        growth = _scale_out_homogeneous(rule, strategy, loads, counts=counts, groups=groups)
        if isinstance(growth, CannotPlan) or not (strategy.falls_back and growth.is_limited):
            return growth
        instead = _scale_out_heterogeneous(rule, strategy, loads.select_above(rule.high), counts=counts, groups=groups)
        return ScaleOut(plan=None, reasons=(*growth.reasons, *instead))
    hot = loads.select_above(rule.high)
    if hot:
        reasons = _scale_out_heterogeneous(rule, strategy, hot, counts=counts, groups=groups)
    elif groups.total and all(is_below(cpu_load.usage, rule.low) for cpu_load in loads.known):
        reasons = [_scale_in_heterogeneous(rule, strategy, loads, instances=instances, groups=groups)]
    else:
        reasons = [
            make_planner_reason(
                PlannerReason.STEADY,
                "no instance is above the upper threshold, and not all are below the lower one",
                **loads.build_facts(rule),
            )
        ]
    return ScaleOut(plan=None, reasons=tuple(reasons))


def _read_loads(instances: tuple[Instance, ...], *, everything: int) -> Loads | CannotPlan:
    """The loads, if at least half of the instances have metrics and these hold half of the known quota."""
    known = tuple(instance.load for instance in instances if instance.load is not None)
    quota = sum((cpu_load.quota_cores for cpu_load in known), Fraction(0))
    known_quota = sum((instance.quota_cores for instance in instances if instance.quota_cores is not None), Fraction(0))
    if not known or 2 * len(known) < len(instances) or 2 * quota < known_quota:
        detail = f"{len(known)} of {len(instances)} instances have metrics, {round_fact(quota)} cores in total"
        return CannotPlan(code=Refusal.INSUFFICIENT_METRICS, detail=detail)
    used = sum((cpu_load.used_cores for cpu_load in known), Fraction(0))
    return Loads(known=known, used=used, quota=quota, are_all_known=len(known) == everything)


def _scale_out_homogeneous(
    rule: Rule, strategy: Strategy, loads: Loads, *, counts: InstanceCounts, groups: GroupCounts
) -> ScaleOut | CannotPlan:
    if not strategy.homogeneous or not strategy.homogeneous.cpu_milli:
        detail = f"resources do not give the cpu of {strategy.component.homogeneous_type}"
        return CannotPlan(code=Refusal.NO_HOMOGENEOUS_SIZE, detail=detail)
    need = loads.used / rule.target - loads.quota
    return plan_scale_out(
        round_above(need / strategy.homogeneous.cores),
        strategy=strategy,
        counts=counts,
        groups=groups,
        may_evict=loads.are_all_known,
        facts={**loads.build_facts(rule), "needCores": round_fact(need)},
    )


def _scale_out_heterogeneous(
    rule: Rule, strategy: Strategy, hot: list[CpuLoad], *, counts: InstanceCounts, groups: GroupCounts
) -> list[Reason]:
    """Add capacity for the usage of hot instances above the target, on instances that reach the target themselves."""
    need = sum(((cpu_load.usage - rule.target) * cpu_load.quota_cores for cpu_load in hot), Fraction(0))
    facts = {"rule": "cpu", "hot": len(hot), "target": round_fact(rule.target), "needCores": round_fact(need)}
    need -= sum(
        number * strategy.types[kind].cores * rule.target
        for kind, number in strategy.pending.items()
        if kind in strategy.types
    )
    if need <= TOLERANCE:
        return [
            make_planner_reason(PlannerReason.HETEROGENEOUS_PENDING, "enough instances are pending already", **facts)
        ]
    free = strategy.node_count - counts.total if strategy.node_count is not None else None
    if free is not None and free <= 0:
        nodes = {"nodes": strategy.node_count, "instances": counts.total}
        return [
            make_planner_reason(
                PlannerReason.NO_FREE_NODE, f"{len(hot)} instances are hot and no node is free", **facts, **nodes
            )
        ]
    added = _add_by_need(need, rule, _sort_largest_first(rule, strategy), free=free, groups=groups)
    if not added:
        return [
            make_planner_reason(
                PlannerReason.NO_ROOM, f"{len(hot)} instances are hot and every type is at its count", **facts
            )
        ]
    return [
        make_planner_reason(
            PlannerReason.HETEROGENEOUS_OUT, f"instances added for {len(hot)} hot ones", **facts, added=added
        )
    ]


def _sort_largest_first(rule: Rule, strategy: Strategy) -> list[ResourceType]:
    return sorted(
        (strategy.types[name] for name in rule.types),
        key=lambda resource_type: (-resource_type.cpu_milli, resource_type.name),
    )


def _add_by_need(
    need: Fraction, rule: Rule, types: Iterable[ResourceType], *, free: int | None, groups: GroupCounts
) -> dict[str, int]:
    """Add instances type by type until the need is met, or nodes or types are used up."""
    added: dict[str, int] = {}
    for resource_type in types:
        takes = resource_type.cores * rule.target
        wanted = round_above(need / takes)
        limits = [
            free,
            resource_type.count - groups.count_of_type(resource_type.name) if resource_type.count is not None else None,
        ]
        number = min([wanted, *(max(0, limit) for limit in limits if limit is not None)])
        if number:
            groups.add(resource_type.name, number)
            added[resource_type.name] = number
        need -= number * takes
        free = free - number if free is not None else None
        if number == wanted or need <= TOLERANCE or free == 0:
            break
    return added


def _scale_in_heterogeneous(
    rule: Rule, strategy: Strategy, loads: Loads, *, instances: tuple[Instance, ...], groups: GroupCounts
) -> Reason:
    """Remove one instance from the group with the smallest instances, unless the others could not carry the load."""
    facts = loads.build_facts(rule)
    smallest = groups.first_to_shrink
    assert smallest is not None, "called only if there is a group"
    if not loads.are_all_known:
        message = "all instances with metrics are idle, but some have no metrics"
        return make_planner_reason(PlannerReason.METRICS_MISSING, message, **facts, known=len(loads.known))
    quotas = (
        instance.quota_cores
        for instance in instances
        if instance.group == smallest.name and instance.quota_cores is not None
    )
    size = strategy.types.get(smallest.resource_type)
    left = loads.quota - (size.cores if size else max(quotas, default=Fraction(0)))
    if left <= 0 or not is_below(loads.used / left, rule.high):
        return make_planner_reason(
            PlannerReason.SCALE_IN_VETO,
            f"without one instance of {smallest.name} the others would be above the upper threshold",
            **facts,
        )
    groups.remove(1)
    return make_planner_reason(
        PlannerReason.HETEROGENEOUS_IN, f"all instances are idle: one instance of {smallest.name} is removed", **facts
    )
