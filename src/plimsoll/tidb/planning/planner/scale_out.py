"""Scale-out of the base cluster: how many instances limits and nodes allow, and which groups free nodes for them.

Both rules use it. The base cluster is never scaled in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.values import Value
from plimsoll.tidb.model.components import LARGEST_COUNT
from plimsoll.tidb.model.reasons import format_instances
from plimsoll.tidb.model.scaling_plan import ScalingPlan
from plimsoll.tidb.planning.planner.result import PlannerReason, make_planner_reason

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason
    from plimsoll.tidb.model.strategy import Strategy
    from plimsoll.tidb.planning.planner.groups import GroupCounts
    from plimsoll.tidb.planning.planner.instances import Instance


class InstanceCounts(Value):
    """Numbers of instances, including pending ones that have not registered yet."""

    homogeneous: int
    homogeneous_pending: int
    total: int

    @classmethod
    def count(cls, strategy: Strategy, instances: tuple[Instance, ...]) -> InstanceCounts:
        pending = strategy.pending.get(strategy.component.homogeneous_type, 0)
        return cls(
            homogeneous=sum(instance.is_homogeneous for instance in instances) + pending,
            homogeneous_pending=pending,
            total=len(instances) + sum(strategy.pending.values()),
        )


class ScaleOut(Value):
    """The scale-out of the base cluster. `plan` is None if nothing is added; the reasons explain both cases."""

    plan: ScalingPlan | None
    reasons: tuple[Reason, ...]

    @property
    def is_limited(self) -> bool:
        """Whether more instances were needed and none could be added."""
        return any(reason.code == PlannerReason.HOMOGENEOUS_LIMIT for reason in self.reasons)


def plan_scale_out(
    wanted: int,
    *,
    strategy: Strategy,
    counts: InstanceCounts,
    groups: GroupCounts,
    may_evict: bool,
    facts: dict[str, Any],
) -> ScaleOut:
    """Add up to `wanted` instances within limit and nodes. Groups lose instances only if that frees nodes."""
    facts = {**facts, "wanted": wanted, "standing": counts.homogeneous}
    wanted -= counts.homogeneous_pending
    if wanted <= 0:
        message = f"{counts.homogeneous_pending} instances are pending already"
        return ScaleOut(plan=None, reasons=(make_planner_reason(PlannerReason.HOMOGENEOUS_PENDING, message, **facts),))
    added = _count_possible(wanted, strategy=strategy, counts=counts, evictable=groups.total if may_evict else 0)
    if not added:
        limit = strategy.homogeneous.count if strategy.homogeneous else None
        facts |= {"limit": limit, "nodes": strategy.node_count}
        message = f"{wanted} more instances are needed, but the limit or the number of nodes allows none"
        return ScaleOut(plan=None, reasons=(make_planner_reason(PlannerReason.HOMOGENEOUS_LIMIT, message, **facts),))
    count = min(counts.homogeneous + added, LARGEST_COUNT)
    message = f"{format_instances(count)} of the cluster instead of {counts.homogeneous}"
    reasons = [make_planner_reason(PlannerReason.HOMOGENEOUS_OUT, message, **facts, added=added)]
    nodes = strategy.node_count
    evicted = groups.remove(max(0, counts.total + added - nodes)) if nodes is not None else {}
    if evicted:
        reasons.append(
            make_planner_reason(
                PlannerReason.EVICTED_FOR_NODES, "groups lose instances to free nodes", groups=evicted, nodes=nodes
            )
        )
    component = strategy.component
    plan = ScalingPlan(component=component, count=count, resource_type=component.homogeneous_type)
    return ScaleOut(plan=plan, reasons=tuple(reasons))


def _count_possible(wanted: int, *, strategy: Strategy, counts: InstanceCounts, evictable: int) -> int:
    """How many of the wanted instances can be added: a node holds at most one instance of a component."""
    limit = strategy.homogeneous.count if strategy.homogeneous else None
    if limit is not None:
        wanted = min(wanted, limit - counts.homogeneous)
    nodes = strategy.node_count
    if nodes is not None:
        wanted = min(wanted, nodes - counts.homogeneous)
        wanted -= max(0, counts.total + wanted - nodes - evictable)
    return max(0, wanted)
