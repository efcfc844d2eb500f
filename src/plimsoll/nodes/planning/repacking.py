"""The pods of a growth on fewer of its nodes, once some of those it was made for want it no more. Pure.

A plan packs the pods of all requests and of everybody else together, so that nodes which are left by one request are
often still a quarter full. Who stays is packed anew onto the same groups, none of which gets more nodes than before;
the answer is verified as any plan. Where that gives nothing better, everybody stays where the plan had them.

`requests.sessions` asks when requests fail; `withdrawals` says what is left without packing anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plimsoll.nodes.planning.promises import merged, settled
from plimsoll.nodes.planning.scale_up import plan_scale_up
from plimsoll.nodes.planning.verifying import verify
from plimsoll.nodes.planning.world import Group

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plimsoll.nodes.planning.results import Growth, ScaleUp
    from plimsoll.nodes.planning.world import Pending, Snapshot
    from plimsoll.nodes.policy import Policy


def repacked(
    plan: ScaleUp, snapshot: Snapshot, policy: Policy, *, left: Collection[str], grown: Collection[str]
) -> ScaleUp:
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


def _on_growths(growths: Collection[Growth], pending: Sequence[Pending]) -> tuple[Pending, ...]:
    """Those that have their places there, and so many of them."""
    counts: dict[str, int] = {}
    for growth in growths:
        for pattern in growth.patterns:
            for key, pods in pattern.pods.items():
                counts[key] = counts.get(key, 0) + pods * pattern.nodes
    return tuple(
        replace(one, count=counts[one.key], names=one.names[: counts[one.key]]) for one in pending if one.key in counts
    )


def _with_nodes_of(growths: Mapping[str, Growth], snapshot: Snapshot) -> list[Group]:
    """The groups as they were before they grew, with room for what they grew by."""
    known = {one.id: one for one in snapshot.groups}
    found: list[Group] = []
    for name, growth in growths.items():
        group = known.get(name) or _made(growth)
        found.append(replace(group, max_size=min(group.max_size, growth.after)))
    return found


def _made(growth: Growth) -> Group:
    """One that the plan makes, as if it had been there."""
    offer = growth.offer
    return Group(
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


def _put_together(plan: ScaleUp, loose: Mapping[str, Growth], anew: ScaleUp) -> ScaleUp:
    patterns = {one.offer.group: one.patterns for one in anew.growths}
    growths: list[Growth] = []
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
