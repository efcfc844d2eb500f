"""The planner: `plan(strategy, snapshot)`.

Storage comes before cpu: while disks fill up, stores are added and nothing else is decided.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.tidb.planning.planner.cpu_rule import apply_cpu_rule
from plimsoll.tidb.planning.planner.groups import GroupCounts
from plimsoll.tidb.planning.planner.instances import count_unlisted, read_instances
from plimsoll.tidb.planning.planner.result import CannotPlan, PlannerReason, PlannerResult, Refusal, make_planner_reason
from plimsoll.tidb.planning.planner.storage_rule import apply_storage_rule

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason
    from plimsoll.tidb.model.scaling_plan import ScalingPlan
    from plimsoll.tidb.model.snapshot import Snapshot
    from plimsoll.tidb.model.strategy import Strategy


def _with_unlisted(strategy: Strategy, unlisted: dict[str, int]) -> Strategy:
    """Unlisted instances count like pending ones: they exist, and nothing else is known about them."""
    pending = Counter(strategy.pending) + Counter(unlisted)
    return msgspec.structs.replace(strategy, pending=dict(sorted(pending.items())))


def plan(strategy: Strategy, snapshot: Snapshot) -> PlannerResult | CannotPlan:
    """The desired number of instances of each group, and of the base cluster if it should grow.

    Raises `InvalidInput` if strategy and snapshot are about different components.
    """
    if strategy.component is not snapshot.component:
        message = f"is {snapshot.component}, but the strategy is for {strategy.component}"
        raise InvalidInput(message, path="component")
    instances = read_instances(snapshot)
    if isinstance(instances, CannotPlan):
        return instances
    reasons: list[Reason] = []
    if unlisted := count_unlisted(snapshot, strategy.registered):
        reasons.append(
            make_planner_reason(PlannerReason.INSTANCES_UNLISTED, "registered instances are not listed", types=unlisted)
        )
        strategy = _with_unlisted(strategy, unlisted)
        if 2 * sum(unlisted.values()) > len(instances):
            detail = f"{sum(unlisted.values())} registered instances are not listed, and {len(instances)} are"
            return CannotPlan(code=Refusal.INSUFFICIENT_METRICS, detail=detail)
    groups = GroupCounts(strategy, instances)
    scale_out_plan: ScalingPlan | None = None
    for rule, decide in ((strategy.storage, apply_storage_rule), (strategy.cpu, apply_cpu_rule)):
        if rule is None or scale_out_plan is not None:
            continue
        scale_out = decide(rule, strategy, instances, groups=groups)
        if isinstance(scale_out, CannotPlan):
            return scale_out
        reasons += scale_out.reasons
        scale_out_plan = scale_out.plan
    cut = groups.cut_to_counts()
    if cut:
        reasons.append(
            make_planner_reason(PlannerReason.CUT_TO_COUNT, "groups exceed the count of their type", groups=cut)
        )
    plans = groups.build_plans()
    return PlannerResult(plans=plans if scale_out_plan is None else (*plans, scale_out_plan), reasons=tuple(reasons))
