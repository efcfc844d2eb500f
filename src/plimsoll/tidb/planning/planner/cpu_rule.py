"""Busy instances. Busy on average: more of the cluster itself. Some busy: a group beside it. All idle: one fewer.

Sums are over instances whose load is known. One that tells nothing holds back removals, not additions; if too many
tell nothing, nothing is decided at all.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.tidb.model.decimals import TOLERANCE, is_above, is_below, least_above, shown
from plimsoll.tidb.planning.planner.instances import CpuLoad  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.tidb.planning.planner.result import CannotPlan, ReasonCode, Refusal, because
from plimsoll.tidb.planning.planner.scale_out import Growth, Standing, grown

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from plimsoll.core.plans import Reason
    from plimsoll.tidb.model.strategy import ResourceType, Rule, Strategy
    from plimsoll.tidb.planning.planner.groups import GroupCounts
    from plimsoll.tidb.planning.planner.instances import Instance


class Loads(Value):
    """What is known of the load: sums in cores, and each instance that tells."""

    known: tuple[CpuLoad, ...]
    used: Fraction
    quota: Fraction
    are_all_known: bool

    @property
    def average(self) -> Fraction:
        return self.used / self.quota

    def above(self, threshold: Fraction) -> list[CpuLoad]:
        return [cpu_load for cpu_load in self.known if is_above(cpu_load.usage, threshold)]

    def facts(self, rule: Rule) -> dict[str, Any]:
        numbers = {"usedCores": self.used, "quotaCores": self.quota, "average": self.average}
        numbers |= {"max": rule.high, "min": rule.low, "target": rule.target}
        return {"rule": "cpu", **{name: shown(number) for name, number in numbers.items()}}


def by_cpu(
    rule: Rule, strategy: Strategy, instances: tuple[Instance, ...], *, roster: GroupCounts
) -> Growth | CannotPlan:
    """Changes the roster, or grows the cluster itself."""
    standing = Standing.of(strategy, instances)
    loads = _loads(instances, everything=standing.every)
    if isinstance(loads, CannotPlan):
        return loads
    if is_above(loads.average, rule.high):
        growth = _homogeneous_out(rule, strategy, loads, standing=standing, roster=roster)
        if isinstance(growth, CannotPlan) or not (strategy.falls_back and growth.is_limited):
            return growth
        instead = _heterogeneous_out(rule, strategy, loads.above(rule.high), standing=standing, roster=roster)
        return Growth(plan=None, reasons=(*growth.reasons, *instead))
    hot = loads.above(rule.high)
    if hot:
        reasons = _heterogeneous_out(rule, strategy, hot, standing=standing, roster=roster)
    elif roster.total and all(is_below(cpu_load.usage, rule.low) for cpu_load in loads.known):
        reasons = [_heterogeneous_in(rule, strategy, loads, instances=instances, roster=roster)]
    else:
        reasons = [because(ReasonCode.STEADY, "neither is an instance too busy, nor are all idle", **loads.facts(rule))]
    return Growth(plan=None, reasons=tuple(reasons))


def _loads(instances: tuple[Instance, ...], *, everything: int) -> Loads | CannotPlan:
    """At least half of the instances tell, and half of the quota that is known is theirs."""
    known = tuple(instance.load for instance in instances if instance.load is not None)
    quota = sum((cpu_load.quota_cores for cpu_load in known), Fraction(0))
    quota_told = sum((instance.quota_cores for instance in instances if instance.quota_cores is not None), Fraction(0))
    if not known or 2 * len(known) < len(instances) or 2 * quota < quota_told:
        detail = f"of {len(instances)} instances {len(known)} tell their load, {shown(quota)} cores in all"
        return CannotPlan(code=Refusal.INSUFFICIENT_METRICS, detail=detail)
    used = sum((cpu_load.used_cores for cpu_load in known), Fraction(0))
    return Loads(known=known, used=used, quota=quota, are_all_known=len(known) == everything)


def _homogeneous_out(
    rule: Rule, strategy: Strategy, loads: Loads, *, standing: Standing, roster: GroupCounts
) -> Growth | CannotPlan:
    if not strategy.homogeneous or not strategy.homogeneous.cpu_milli:
        detail = f"resources have no cpu of {strategy.component.homogeneous_type}"
        return CannotPlan(code=Refusal.NO_HOMOGENEOUS_SIZE, detail=detail)
    need = loads.used / rule.target - loads.quota
    return grown(
        least_above(need / strategy.homogeneous.cores),
        strategy=strategy,
        standing=standing,
        roster=roster,
        may_evict=loads.are_all_known,
        facts={**loads.facts(rule), "needCores": shown(need)},
    )


def _heterogeneous_out(
    rule: Rule, strategy: Strategy, hot: list[CpuLoad], *, standing: Standing, roster: GroupCounts
) -> list[Reason]:
    """Room for what busy instances have above the target, on instances that are themselves at the target then."""
    need = sum(((cpu_load.usage - rule.target) * cpu_load.quota_cores for cpu_load in hot), Fraction(0))
    facts = {"rule": "cpu", "hot": len(hot), "target": shown(rule.target), "needCores": shown(need)}
    need -= sum(
        number * strategy.types[kind].cores * rule.target
        for kind, number in strategy.pending.items()
        if kind in strategy.types
    )
    if need <= TOLERANCE:
        return [because(ReasonCode.HETEROGENEOUS_PENDING, "instances that will do are on their way already", **facts)]
    free = strategy.node_count - standing.every if strategy.node_count is not None else None
    if free is not None and free <= 0:
        nodes = {"nodes": strategy.node_count, "instances": standing.every}
        return [
            because(ReasonCode.NO_FREE_NODE, f"{len(hot)} instances are busy, and no node is free", **facts, **nodes)
        ]
    added = _added(need, rule, _largest_first(rule, strategy), free=free, roster=roster)
    if not added:
        return [because(ReasonCode.NO_ROOM, f"{len(hot)} instances are busy, and no type has room", **facts)]
    return [because(ReasonCode.HETEROGENEOUS_OUT, f"instances for {len(hot)} busy ones", **facts, added=added)]


def _largest_first(rule: Rule, strategy: Strategy) -> list[ResourceType]:
    return sorted(
        (strategy.types[name] for name in rule.types),
        key=lambda resource_type: (-resource_type.cpu_milli, resource_type.name),
    )


def _added(
    need: Fraction, rule: Rule, types: Iterable[ResourceType], *, free: int | None, roster: GroupCounts
) -> dict[str, int]:
    """From type to type until the need is met, or nodes or types are used up."""
    added: dict[str, int] = {}
    for resource_type in types:
        takes = resource_type.cores * rule.target
        wanted = least_above(need / takes)
        rooms = [
            free,
            resource_type.count - roster.of_type(resource_type.name) if resource_type.count is not None else None,
        ]
        number = min([wanted, *(max(0, room) for room in rooms if room is not None)])
        if number:
            roster.add(resource_type.name, number)
            added[resource_type.name] = number
        need -= number * takes
        free = free - number if free is not None else None
        if number == wanted or need <= TOLERANCE or free == 0:
            break
    return added


def _heterogeneous_in(
    rule: Rule, strategy: Strategy, loads: Loads, *, instances: tuple[Instance, ...], roster: GroupCounts
) -> Reason:
    """One instance, of the group with the smallest ones; never if the others could not carry it."""
    facts = loads.facts(rule)
    smallest = roster.first_to_shrink
    assert smallest is not None, "asked only if there is a group"
    if not loads.are_all_known:
        message = "all that tell are idle, but some tell nothing"
        return because(ReasonCode.METRICS_MISSING, message, **facts, known=len(loads.known))
    quotas = (
        instance.quota_cores
        for instance in instances
        if instance.group == smallest.name and instance.quota_cores is not None
    )
    size = strategy.types.get(smallest.resource_type)
    left = loads.quota - (size.cores if size else max(quotas, default=Fraction(0)))
    if left <= 0 or not is_below(loads.used / left, rule.high):
        return because(
            ReasonCode.SCALE_IN_VETO, f"without one of {smallest.name} the others would be too busy", **facts
        )
    roster.take(1)
    return because(ReasonCode.HETEROGENEOUS_IN, f"all are idle: one instance less of {smallest.name}", **facts)
