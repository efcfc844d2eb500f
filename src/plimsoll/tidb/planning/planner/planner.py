"""The planner: `plan(strategy, snapshot)`, for the planning service, `plimsoll tidb plan` and simulations.

Storage goes before cpu: if disks are filling up, stores are added and nothing else is decided in this pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput
from plimsoll.tidb.planning.planner.cpu_rule import by_cpu
from plimsoll.tidb.planning.planner.groups import GroupCounts
from plimsoll.tidb.planning.planner.instances import instances_of
from plimsoll.tidb.planning.planner.result import CannotPlan, Planned, ReasonCode, because
from plimsoll.tidb.planning.planner.storage_rule import by_storage

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason
    from plimsoll.tidb.model.scaling_plan import ScalingPlan
    from plimsoll.tidb.model.snapshot import Snapshot
    from plimsoll.tidb.model.strategy import Strategy


def plan(strategy: Strategy, snapshot: Snapshot) -> Planned | CannotPlan:
    """How many instances there should be of each group, and of the cluster itself if more.

    Both must be about one component: asking otherwise raises `InvalidInput`.
    """
    if strategy.component is not snapshot.component:
        told = f"{snapshot.component}, and the strategy is about {strategy.component}"
        raise InvalidInput(told, path="component")
    instances = instances_of(snapshot)
    if isinstance(instances, CannotPlan):
        return instances
    roster = GroupCounts(strategy, instances)
    reasons: list[Reason] = []
    raised: ScalingPlan | None = None
    for rule, decide in ((strategy.storage, by_storage), (strategy.cpu, by_cpu)):
        if rule is None or raised is not None:
            continue
        growth = decide(rule, strategy, instances, roster=roster)
        if isinstance(growth, CannotPlan):
            return growth
        reasons += growth.reasons
        raised = growth.plan
    cut = roster.cut_to_counts()
    if cut:
        reasons.append(because(ReasonCode.CUT_TO_COUNT, "more than the count of their type", groups=cut))
    plans = roster.plans()
    return Planned(plans=plans if raised is None else (*plans, raised), reasons=tuple(reasons))
