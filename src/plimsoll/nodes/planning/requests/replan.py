"""The pods of a growth on fewer of its nodes, once some of those it was made for want it no more. Pure.

A plan packs the pods of all requests and of everybody else together, so that nodes which are left by one request are
often still a quarter full. Who stays is packed anew onto the same groups, none of which gets more nodes than before;
the answer is verified as any plan. Where that gives nothing better, everybody stays where the plan had them.

`requests.sessions` asks when requests fail; `withdrawals` says what is left without packing anew.

A plan without some of the ProvisioningRequests it was made for: what is left of it. Pure.

Whoever is withdrawn gets nothing, and nodes that were for nobody else are not added. The places of everybody else stay
as they are: nothing is planned anew (that is `repacking`). Used where a request turns out not to be servable after its
plan was made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plimsoll.nodes.model.scale_up_plan import GroupScaleUp, Pattern, Result, ScaleUpPlan, UnschedulablePods
from plimsoll.nodes.model.snapshot import NodeGroup
from plimsoll.nodes.planning.scaleup.nominations import merged, settled
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.nodes.planning.scaleup.verifier import verify

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot


def repacked(
    plan: ScaleUpPlan, snapshot: Snapshot, policy: Policy, *, left: Collection[str], grown: Collection[str]
) -> ScaleUpPlan:
    """`plan` is what withdrawals left of one, in the groups `left`; `grown` are all that did grow, as it names them."""
    loose = {
        one.offer.group: one
        for one in plan.growths
        if one.offer.group in grown and one.offer.group in left and not one.offer.zero_or_max
    }
    if not loose:
        return plan
    there = settled(replace(snapshot, promises={}), plan.existing)
    anew = plan_scale_up(
        replace(
            there,
            pending=_on_growths(loose.values(), there.pending),
            groups=tuple(_with_nodes_of(loose, snapshot)),
            machine_types=(),
        ),
        policy,
    )
    added = {one.offer.group: one.added for one in anew.growths}
    if anew.remaining or any(nodes > loose[group].added for group, nodes in added.items()):
        return plan
    if sum(added.values()) >= sum(one.added for one in loose.values()):
        return plan
    found = _put_together(plan, loose, anew)
    held = replace(found, growths=tuple(one for one in found.growths if one.offer.group in grown))
    return plan if verify(replace(snapshot, promises={}), held) else found


def _on_growths(growths: Collection[GroupScaleUp], pending: Sequence[PendingPods]) -> tuple[PendingPods, ...]:
    """Those that have their places there, and so many of them."""
    counts: dict[str, int] = {}
    for growth in growths:
        for pattern in growth.patterns:
            for key, pods in pattern.pods.items():
                counts[key] = counts.get(key, 0) + pods * pattern.nodes
    return tuple(
        replace(one, count=counts[one.key], names=one.names[: counts[one.key]]) for one in pending if one.key in counts
    )


def _with_nodes_of(growths: Mapping[str, GroupScaleUp], snapshot: Snapshot) -> list[NodeGroup]:
    """The groups as they were before they grew, with room for what they grew by."""
    known = {one.id: one for one in snapshot.groups}
    found: list[NodeGroup] = []
    for name, growth in growths.items():
        group = known.get(name) or _made(growth)
        found.append(replace(group, max_size=min(group.max_size, growth.after)))
    return found


def _made(growth: GroupScaleUp) -> NodeGroup:
    """One that the plan makes, as if it had been there."""
    offer = growth.offer
    return NodeGroup(
        id=offer.group,
        min_size=0,
        max_size=growth.after,
        target_size=growth.before,
        template=offer.node,
        daemons=offer.daemons,
        daemons_are_known=True,
        price_per_hour=offer.price_per_hour,
        machine_type=offer.machine_type,
        zone=offer.zone,
        capacity_type=offer.capacity_type,
    )


def _put_together(plan: ScaleUpPlan, loose: Mapping[str, GroupScaleUp], anew: ScaleUpPlan) -> ScaleUpPlan:
    patterns = {one.offer.group: one.patterns for one in anew.growths}
    growths: list[GroupScaleUp] = []
    for one in plan.growths:
        group = one.offer.group
        if group not in loose:
            growths.append(one)
        elif group in patterns:
            after = one.before + sum(pattern.nodes for pattern in patterns[group])
            growths.append(replace(one, patterns=patterns[group], after=after))
    others = sum(one.added * one.offer.price_per_hour for one in growths if one.offer.group not in loose)
    part = plan.lower_bound_per_hour / plan.cost_per_hour if plan.cost_per_hour else 0.0
    return replace(
        plan,
        growths=tuple(growths),
        existing=merged(plan.existing, anew.existing),
        cost_per_hour=round(others + anew.cost_per_hour, 9),
        lower_bound_per_hour=round(others * part + anew.lower_bound_per_hour, 9),
    )


def without_requests(
    plan: ScaleUpPlan, withdrawn: Collection[str], *, pending: Sequence[PendingPods], why: Reason
) -> ScaleUpPlan:
    """`withdrawn` are bundles of `pending`."""
    gone = {one.key: one.count for one in pending if one.bundle and one.bundle in withdrawn}
    had = {key: count for key, count in gone.items() if not any(key in one.keys for one in plan.remaining)}
    if not had:
        return plan
    growths = tuple(kept for one in plan.growths if (kept := growth_without(one, had.keys())) is not None)
    existing = {node: _but(pods, had.keys()) for node, pods in plan.existing.items()}
    cost = round(sum(one.added * one.offer.price_per_hour for one in growths), 9)
    part = cost / plan.cost_per_hour if plan.cost_per_hour else 0.0
    return replace(
        plan,
        result=Result.NEEDED if growths else Result.NO_OPTIONS,
        growths=growths,
        existing={node: pods for node, pods in existing.items() if pods},
        helped=plan.helped - sum(had.values()),
        remaining=(*plan.remaining, UnschedulablePods(pods=sum(had.values()), keys=had, reasons=(why,))),
        cost_per_hour=cost,
        lower_bound_per_hour=round(plan.lower_bound_per_hour * part, 9),
    )


def growth_without(growth: GroupScaleUp, keys: Collection[str]) -> GroupScaleUp | None:
    """None: nobody else wants anything of it. A group that grows to its maximum or not at all stays whole."""
    patterns: list[Pattern] = []
    for one in growth.patterns:
        pods = _but(one.pods, keys)
        if pods or not one.pods or growth.offer.zero_or_max:
            patterns.append(Pattern(nodes=one.nodes, pods=pods))
    if not any(one.pods for one in patterns):
        return None
    after = growth.before + sum(one.nodes for one in patterns)
    return replace(growth, patterns=tuple(patterns), after=after)


def _but(pods: Mapping[str, int], keys: Collection[str]) -> dict[str, int]:
    return {key: count for key, count in pods.items() if key not in keys}
