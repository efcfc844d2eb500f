"""Checks that every scale-up plan passes, whatever the cluster: counts, limits, cost, bundles and the plain rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.resources import CPU, MEMORY
from plimsoll.nodes.planning.problem.verifier import verify
from plimsoll.nodes.planning.state.resource_limits import measure_usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot


def problems(snapshot: Snapshot, policy: Policy, plan: ScaleUpPlan, *, may_be_mended: bool = False) -> list[str]:
    """Everything that is wrong with a plan; empty for a good one.

    `may_be_mended`: it is no fault that a first plan was refuted, if the one that was mended holds.
    """
    refuted = plan.verification_failures if not may_be_mended else 0
    return [
        *_miscounted(snapshot, plan),
        *_too_large(snapshot, policy, plan),
        *_torn_bundles(snapshot, plan),
        *_money(plan),
        *_refuted(snapshot, plan),
        *([f"verification failures: {refuted}"] if refuted else []),
    ]


def placed(plan: ScaleUpPlan) -> dict[str, int]:
    """Pods that have a place, by key."""
    found: dict[str, int] = {}
    for filling in plan.existing.values():
        for key, pods in filling.items():
            found[key] = found.get(key, 0) + pods
    for growth in plan.scale_ups:
        for pattern in growth.patterns:
            for key, pods in pattern.pods.items():
                found[key] = found.get(key, 0) + pods * pattern.nodes
    return found


def _miscounted(snapshot: Snapshot, plan: ScaleUpPlan) -> Iterator[str]:
    there = placed(plan)
    remaining: dict[str, int] = {}
    for unschedulable in plan.unschedulable:
        if unschedulable.pods != sum(unschedulable.keys.values()) or not unschedulable.reasons:
            yield f"remaining: {unschedulable}"
        for key, pods in unschedulable.keys.items():
            remaining[key] = remaining.get(key, 0) + pods
    for unschedulable_pods in snapshot.pending:
        if there.get(unschedulable_pods.key, 0) + remaining.get(unschedulable_pods.key, 0) != unschedulable_pods.count:
            found = f"{there.get(unschedulable_pods.key, 0)} placed, {remaining.get(unschedulable_pods.key, 0)} left"
            yield f"pods lost or doubled: {unschedulable_pods.key} {found} of {unschedulable_pods.count}"
    if plan.scheduled != sum(there.values()):
        yield f"helped is not what is placed: {plan.scheduled} != {sum(there.values())}"
    for growth in plan.scale_ups:
        if growth.added != sum(pattern.nodes for pattern in growth.patterns) or growth.added <= 0:
            yield f"patterns do not sum up: {growth}"


def _too_large(snapshot: Snapshot, policy: Policy, plan: ScaleUpPlan) -> Iterator[str]:
    sizes = {group.id: group.max_size for group in snapshot.groups}
    for growth in plan.scale_ups:
        if growth.option.exists and growth.after > sizes[growth.option.group]:
            yield f"above max size: {growth.option.group}"
        if growth.option.zero_or_max and growth.after != sizes[growth.option.group]:
            yield f"zero or max in part: {growth.option.group}"
    usage = measure_usage(snapshot.view)
    bounds = policy.limits.list_bounds()
    for resource in (CPU, MEMORY):
        most = bounds[resource].most if resource in bounds else None
        more = sum(scale_up.added * scale_up.option.capacity[resource] for scale_up in plan.scale_ups)
        if most is not None and more and usage.get_total(resource) + more > most:
            yield f"above max {resource}: {usage.get_total(resource)} + {more} > {most}"
    nodes = sum(scale_up.added for scale_up in plan.scale_ups)
    most_nodes = policy.limits.max_nodes_total
    if most_nodes and nodes and len(usage.nodes) + nodes > most_nodes:
        yield f"above max nodes: {len(usage.nodes)} + {nodes} > {most_nodes}"
    made = sum(not scale_up.option.exists for scale_up in plan.scale_ups)
    if made and made > policy.nap.max_own_groups:
        yield f"too many new groups: {made}"


def _torn_bundles(snapshot: Snapshot, plan: ScaleUpPlan) -> Iterator[str]:
    there = placed(plan)
    for bundle in sorted({pending.bundle for pending in snapshot.pending if pending.bundle}):
        members = [pending for pending in snapshot.pending if pending.bundle == bundle]
        got = sum(there.get(pending.key, 0) for pending in members)
        if got not in {0, sum(pending.count for pending in members)}:
            yield f"bundle in part: {bundle} {got}"


def _money(plan: ScaleUpPlan) -> Iterator[str]:
    cost = sum(scale_up.added * scale_up.option.price_per_hour for scale_up in plan.scale_ups)
    if abs(cost - plan.cost_per_hour) > 1e-6:
        yield f"cost is not the sum of prices: {plan.cost_per_hour} {cost}"
    if plan.lower_bound_per_hour > plan.cost_per_hour + 1e-9:
        yield f"cost below bound: {plan.cost_per_hour} < {plan.lower_bound_per_hour}"


def _refuted(snapshot: Snapshot, plan: ScaleUpPlan) -> Iterator[str]:
    for refuted in verify(snapshot, plan):
        yield f"final plan refuted: {refuted}"
