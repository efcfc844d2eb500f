"""The share of each ProvisioningRequest in a plan: its nodes, its part of the cost and of the lower bound. Pure.

A new node is attributed to the first request in the queue with a pod on it, so that the nodes of all requests add up to
what is added. Its price is shared by all pods on it, in proportion to the largest fraction of the node that each pod
requests of any resource, so that the costs of all requests and of ordinary pods add up to the cost of the plan. Nodes
that a group adds beyond the filled ones (atomic scaling) go with its first node. The bound is shared like the cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plimsoll.nodes.planning.problem.queue import order_bundles
from plimsoll.scheduling.pod_requests import compute_pod_demand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.core.resources import ResourceVector
    from plimsoll.nodes.model.scale_up_plan import GroupScaleUp, NodePattern, ScaleUpOption, ScaleUpPlan
    from plimsoll.nodes.model.snapshot import PendingPods


@dataclass(slots=True, kw_only=True)
class CostShare:
    """One request's part of a plan."""

    cost_per_hour: float = 0.0
    lower_bound_per_hour: float = 0.0
    nodes: dict[str, int] = field(default_factory=dict)
    """New nodes attributed to the request, by group; 0 if its pods are only on nodes of other requests."""


def share_costs(plan: ScaleUpPlan, pending: Sequence[PendingPods]) -> dict[str, CostShare]:
    """The share of each bundle; it is empty for a bundle that gets no new nodes."""
    queue = {bundle: number for number, bundle in enumerate(order_bundles(pending))}
    weights = _Weights(pending)
    found = {bundle: CostShare() for bundle in queue}
    for scale_up in plan.scale_ups:
        _divide(scale_up, weights, queue, found)
    part = plan.lower_bound_per_hour / plan.cost_per_hour if plan.cost_per_hour else 0.0
    for share in found.values():
        share.lower_bound_per_hour = share.cost_per_hour * part
    return found


class _Weights:
    """The request of each pod, and its weight on a node."""

    def __init__(self, pending: Sequence[PendingPods]) -> None:
        self.bundle_of = {pending_pods.key: pending_pods.bundle for pending_pods in pending}
        self._pods = {pending_pods.key: pending_pods.pod for pending_pods in pending}
        self._demands: dict[str, ResourceVector] = {}

    def compute_weight(self, key: str, option: ScaleUpOption) -> float:
        """The largest fraction of an empty node's resources that one pod requests; a pod slot is a resource too."""
        if key not in self._demands:
            self._demands[key] = compute_pod_demand(self._pods[key])
        demand, free = self._demands[key], option.free
        return max((amount / free[name] for name, amount in demand.items() if free[name] > 0), default=1.0)


def _divide(
    scale_up: GroupScaleUp, weights: _Weights, queue: Mapping[str, int], found: Mapping[str, CostShare]
) -> None:
    group, price = scale_up.option.group, scale_up.option.price_per_hour
    first = ""
    for pattern in scale_up.patterns:
        owner = first
        if pattern.pods:
            owner = min(_list_bundles(pattern, weights), key=queue.__getitem__, default="")
            first = first or owner
        for bundle, part in _compute_shares(pattern, scale_up.option, weights, owner).items():
            found[bundle].cost_per_hour += part * price * pattern.nodes
            found[bundle].nodes.setdefault(group, 0)
        if owner:
            found[owner].nodes[group] = found[owner].nodes.get(group, 0) + pattern.nodes


def _list_bundles(pattern: NodePattern, weights: _Weights) -> list[str]:
    return [bundle for key in pattern.pods if (bundle := weights.bundle_of[key])]


def _compute_shares(pattern: NodePattern, option: ScaleUpOption, weights: _Weights, owner: str) -> dict[str, float]:
    """The fraction of such a node per bundle; the sum is 1 if no ordinary pods are on it."""
    if not pattern.pods:
        return {owner: 1.0} if owner else {}
    by_key = {key: weights.compute_weight(key, option) * pods for key, pods in pattern.pods.items()}
    total = sum(by_key.values()) or 1.0
    parts: dict[str, float] = {}
    for key, weight in by_key.items():
        if bundle := weights.bundle_of[key]:
            parts[bundle] = parts.get(bundle, 0.0) + weight / total
    return parts
