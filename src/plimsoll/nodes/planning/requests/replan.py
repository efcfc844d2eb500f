"""A plan without some of the requests it was made for, and its remaining pods packed onto fewer nodes. Pure.

`remove_requests` removes failed ProvisioningRequests from a plan: nodes that only they needed are not added, and all
other placements stay. `repack` packs the remaining pods again onto the same groups, none of which gets more nodes than
before. The result is verified like any plan; if it is not better, the placements stay.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plimsoll.nodes.model.scale_up_plan import GroupScaleUp, NodePattern, Result, ScaleUpPlan, UnschedulablePods
from plimsoll.nodes.model.snapshot import NodeGroup
from plimsoll.nodes.planning.problem.verifier import verify
from plimsoll.nodes.planning.scaleup.nominations import merge_places, place_pending
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot


def repack(
    plan: ScaleUpPlan, snapshot: Snapshot, policy: Policy, *, left: Collection[str], grown: Collection[str]
) -> ScaleUpPlan:
    """`plan` is a plan after withdrawals. Groups in `grown` were scaled up; those also in `left` are packed again."""
    loose = {
        scale_up.option.group: scale_up
        for scale_up in plan.scale_ups
        if scale_up.option.group in grown and scale_up.option.group in left and not scale_up.option.zero_or_max
    }
    if not loose:
        return plan
    there = place_pending(replace(snapshot, nominations={}), plan.existing)
    replanned = plan_scale_up(
        replace(
            there,
            pending=_select_pending(loose.values(), there.pending),
            groups=tuple(_limit_to_planned_sizes(loose, snapshot)),
            machine_types=(),
        ),
        policy,
    )
    added = {scale_up.option.group: scale_up.added for scale_up in replanned.scale_ups}
    if replanned.unschedulable or any(nodes > loose[group].added for group, nodes in added.items()):
        return plan
    if sum(added.values()) >= sum(scale_up.added for scale_up in loose.values()):
        return plan
    found = _merge(plan, loose, replanned)
    held = replace(found, scale_ups=tuple(scale_up for scale_up in found.scale_ups if scale_up.option.group in grown))
    return plan if verify(replace(snapshot, nominations={}), held) else found


def _select_pending(scale_ups: Collection[GroupScaleUp], pending: Sequence[PendingPods]) -> tuple[PendingPods, ...]:
    """The pending pods that the scale-ups place on new nodes, with their counts there."""
    counts: dict[str, int] = {}
    for scale_up in scale_ups:
        for pattern in scale_up.patterns:
            for key, pods in pattern.pods.items():
                counts[key] = counts.get(key, 0) + pods * pattern.nodes
    return tuple(
        replace(pending_pods, count=counts[pending_pods.key], names=pending_pods.names[: counts[pending_pods.key]])
        for pending_pods in pending
        if pending_pods.key in counts
    )


def _limit_to_planned_sizes(scale_ups: Mapping[str, GroupScaleUp], snapshot: Snapshot) -> list[NodeGroup]:
    """The groups before their scale-up, with the size after it as their maximum."""
    known = {node_group.id: node_group for node_group in snapshot.groups}
    found: list[NodeGroup] = []
    for name, scale_up in scale_ups.items():
        group = known.get(name) or _build_created_group(scale_up)
        found.append(replace(group, max_size=min(group.max_size, scale_up.after)))
    return found


def _build_created_group(scale_up: GroupScaleUp) -> NodeGroup:
    """A group that the plan creates, as if it existed already."""
    option = scale_up.option
    return NodeGroup(
        id=option.group,
        min_size=0,
        max_size=scale_up.after,
        target_size=scale_up.before,
        template=option.node,
        daemons=option.daemons,
        daemons_are_known=True,
        price_per_hour=option.price_per_hour,
        machine_type=option.machine_type,
        zone=option.zone,
        capacity_type=option.capacity_type,
    )


def _merge(plan: ScaleUpPlan, loose: Mapping[str, GroupScaleUp], replanned: ScaleUpPlan) -> ScaleUpPlan:
    patterns = {up.option.group: up.patterns for up in replanned.scale_ups}
    scale_ups: list[GroupScaleUp] = []
    for scale_up in plan.scale_ups:
        group = scale_up.option.group
        if group not in loose:
            scale_ups.append(scale_up)
        elif group in patterns:
            after = scale_up.before + sum(pattern.nodes for pattern in patterns[group])
            scale_ups.append(replace(scale_up, patterns=patterns[group], after=after))
    others = sum(up.added * up.option.price_per_hour for up in scale_ups if up.option.group not in loose)
    part = plan.lower_bound_per_hour / plan.cost_per_hour if plan.cost_per_hour else 0.0
    return replace(
        plan,
        scale_ups=tuple(scale_ups),
        existing=merge_places(plan.existing, replanned.existing),
        cost_per_hour=round(others + replanned.cost_per_hour, 9),
        lower_bound_per_hour=round(others * part + replanned.lower_bound_per_hour, 9),
    )


def remove_requests(
    plan: ScaleUpPlan, withdrawn: Collection[str], *, pending: Sequence[PendingPods], why: Reason
) -> ScaleUpPlan:
    """The plan without the pods of the bundles `withdrawn`."""
    gone = {
        pending_pods.key: pending_pods.count
        for pending_pods in pending
        if pending_pods.bundle and pending_pods.bundle in withdrawn
    }
    had = {
        key: count
        for key, count in gone.items()
        if not any(key in unschedulable.keys for unschedulable in plan.unschedulable)
    }
    if not had:
        return plan
    scale_ups = tuple(kept for scale_up in plan.scale_ups if (kept := remove_pods(scale_up, had.keys())) is not None)
    existing = {node: _remove_keys(pods, had.keys()) for node, pods in plan.existing.items()}
    cost = round(sum(scale_up.added * scale_up.option.price_per_hour for scale_up in scale_ups), 9)
    part = cost / plan.cost_per_hour if plan.cost_per_hour else 0.0
    return replace(
        plan,
        result=Result.NEEDED if scale_ups else Result.NO_OPTIONS,
        scale_ups=scale_ups,
        existing={node: pods for node, pods in existing.items() if pods},
        scheduled=plan.scheduled - sum(had.values()),
        unschedulable=(*plan.unschedulable, UnschedulablePods(pods=sum(had.values()), keys=had, reasons=(why,))),
        cost_per_hour=cost,
        lower_bound_per_hour=round(plan.lower_bound_per_hour * part, 9),
    )


def remove_pods(scale_up: GroupScaleUp, keys: Collection[str]) -> GroupScaleUp | None:
    """The scale-up without these pods; None if no others need it. A scale-up from zero to maximum stays whole."""
    patterns: list[NodePattern] = []
    for pattern in scale_up.patterns:
        pods = _remove_keys(pattern.pods, keys)
        if pods or not pattern.pods or scale_up.option.zero_or_max:
            patterns.append(NodePattern(nodes=pattern.nodes, pods=pods))
    if not any(pattern.pods for pattern in patterns):
        return None
    after = scale_up.before + sum(pattern.nodes for pattern in patterns)
    return replace(scale_up, patterns=tuple(patterns), after=after)


def _remove_keys(pods: Mapping[str, int], keys: Collection[str]) -> dict[str, int]:
    return {key: count for key, count in pods.items() if key not in keys}
