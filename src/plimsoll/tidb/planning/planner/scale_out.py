"""More instances of the cluster itself: how many of the wanted ones there is room for, and which groups make room.

Both rules end here. The number of the cluster's own instances is only ever raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.values import Value
from plimsoll.tidb.model.components import LARGEST_COUNT
from plimsoll.tidb.model.reasons import instances
from plimsoll.tidb.model.scaling_plan import ScalingPlan
from plimsoll.tidb.planning.planner.result import ReasonCode, because

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason
    from plimsoll.tidb.model.strategy import Strategy
    from plimsoll.tidb.planning.planner.groups import GroupCounts
    from plimsoll.tidb.planning.planner.instances import Instance


class Standing(Value):
    """How many instances there are, those included that are made and not registered yet."""

    homogeneous: int
    homogeneous_pending: int
    every: int

    @classmethod
    def of(cls, strategy: Strategy, instances: tuple[Instance, ...]) -> Standing:
        pending = strategy.pending.get(strategy.component.homogeneous_type, 0)
        return cls(
            homogeneous=sum(instance.is_homogeneous for instance in instances) + pending,
            homogeneous_pending=pending,
            every=len(instances) + sum(strategy.pending.values()),
        )


class Growth(Value):
    """`plan` is None if nothing is added; the reasons tell either way."""

    plan: ScalingPlan | None
    reasons: tuple[Reason, ...]

    @property
    def is_limited(self) -> bool:
        """More were needed, and none could be had."""
        return any(reason.code == ReasonCode.HOMOGENEOUS_LIMIT for reason in self.reasons)


def grown(
    wanted: int, *, strategy: Strategy, standing: Standing, roster: GroupCounts, may_evict: bool, facts: dict[str, Any]
) -> Growth:
    """So many more, as far as limit and nodes allow. Groups give up instances for them, but not for nothing."""
    facts = {**facts, "wanted": wanted, "standing": standing.homogeneous}
    wanted -= standing.homogeneous_pending
    if wanted <= 0:
        message = f"{standing.homogeneous_pending} instances are on their way already"
        return Growth(plan=None, reasons=(because(ReasonCode.HOMOGENEOUS_PENDING, message, **facts),))
    added = _room(wanted, strategy=strategy, standing=standing, evictable=roster.total if may_evict else 0)
    if not added:
        limit = strategy.homogeneous.count if strategy.homogeneous else None
        facts |= {"limit": limit, "nodes": strategy.node_count}
        message = f"{wanted} more instances are needed, and limit or nodes allow none"
        return Growth(plan=None, reasons=(because(ReasonCode.HOMOGENEOUS_LIMIT, message, **facts),))
    count = min(standing.homogeneous + added, LARGEST_COUNT)
    message = f"{instances(count)} of the cluster instead of {standing.homogeneous}"
    reasons = [because(ReasonCode.HOMOGENEOUS_OUT, message, **facts, added=added)]
    nodes = strategy.node_count
    evicted = roster.take(max(0, standing.every + added - nodes)) if nodes is not None else {}
    if evicted:
        reasons.append(
            because(ReasonCode.EVICTED_FOR_NODES, "groups make room on the nodes", groups=evicted, nodes=nodes)
        )
    component = strategy.component
    plan = ScalingPlan(component=component, count=count, resource_type=component.homogeneous_type)
    return Growth(plan=plan, reasons=tuple(reasons))


def _room(wanted: int, *, strategy: Strategy, standing: Standing, evictable: int) -> int:
    """How many of them can be had: at most one instance stands on a node."""
    limit = strategy.homogeneous.count if strategy.homogeneous else None
    if limit is not None:
        wanted = min(wanted, limit - standing.homogeneous)
    nodes = strategy.node_count
    if nodes is not None:
        wanted = min(wanted, nodes - standing.homogeneous)
        wanted -= max(0, standing.every + wanted - nodes - evictable)
    return max(0, wanted)
