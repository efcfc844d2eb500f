"""Everything that stands in one pod's way: on nodes that are there, and on every kind of node that could be added.

Pure. `explained` is what `plimsoll plan --explain` prints; the plan itself says what came of it (`fate`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.nodes.model.node_templates import planned_node
from plimsoll.nodes.planning.explain.daemon_overhead import beside_daemons
from plimsoll.nodes.planning.explain.rejected_types import refused_types
from plimsoll.scheduling import DEFAULT_PROFILE
from plimsoll.scheduling.cluster_view import ClusterView, NodeState, PlacedPod
from plimsoll.scheduling.feasibility import prepared
from plimsoll.scheduling.pod_requests import pod_demand

if TYPE_CHECKING:
    from plimsoll.nodes.model.scale_up_options import ScaleUpOption
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.objects.api.pods import Pod

Json = dict[str, Any]


def explained(board: ScaleUpProblem, plan: ScaleUpPlan, key: str) -> Json:
    """Of the pending entry with this key, as plain data."""
    index = next(index for index, pending in enumerate(board.snapshot.pending) if pending.key == key)
    number = int(board.table.class_of[index])
    one = board.table.classes[number]
    found: Json = {"pod": key, "pods": board.snapshot.pending[index].count, "outcome": fate(plan, key)}
    if one.problem is not None:
        return {**found, "problem": str(one.problem)}
    why = board.rules.fit_error(number)
    return {
        **found,
        "asks": one.demand.to_json(),
        "nodes": {"total": why.nodes, "fitting": int(board.rules.fits(number).sum()), "message": why.message},
        "offers": [
            _offer(offer, one.pod, board.snapshot.view, allowed=bool(board.allowed[place, number]))
            for place, offer in enumerate(board.offers)
            if offer.exists or board.allowed[place, number]
        ],
        "machineTypes": [
            {"machineType": kind.name, "reasons": [str(refusal) for refusal in refusals]}
            for kind, refusals in refused_types(board, number)
        ],
        "notOffered": [
            {
                "group": not_offered.group,
                "machineType": not_offered.machine_type,
                "code": not_offered.code,
                "reason": not_offered.reason,
            }
            for not_offered in board.offered.not_offered
        ],
    }


def fate(plan: ScaleUpPlan, key: str) -> Json:
    """What the plan does for the pods of one entry."""
    grown = {
        scale_up.option.group: sum(pattern.nodes * pattern.pods.get(key, 0) for pattern in scale_up.patterns)
        for scale_up in plan.scale_ups
    }
    left = [unschedulable for unschedulable in plan.unschedulable if key in unschedulable.keys]
    return {
        "existing": {node: pods[key] for node, pods in plan.existing.items() if key in pods},
        "new": {group: pods for group, pods in grown.items() if pods},
        "remaining": sum(unschedulable.keys[key] for unschedulable in left),
        "reasons": [str(reason) for unschedulable in left for reason in unschedulable.reasons],
    }


def _offer(offer: ScaleUpOption, pod: Pod, view: ClusterView, *, allowed: bool) -> Json:
    node = planned_node(offer, 0)
    place = NodeState(node).with_pods(PlacedPod(daemon) for daemon in offer.daemons)
    around = view.with_node(node)
    refusals = prepared(pod, around, profile=DEFAULT_PROFILE).refusals(place)
    reasons = [str(refusal) for refusal in beside_daemons(refusals, pod_demand(pod), offer.free, offer.daemons)]
    if not reasons and not allowed:
        reasons = ["kept for pods that ask for it"]
    return {
        "group": offer.group,
        "machineType": offer.machine_type,
        "zone": offer.zone,
        "exists": offer.exists,
        "pricePerHour": offer.price_per_hour,
        "fits": not reasons,
        "reasons": reasons,
    }
