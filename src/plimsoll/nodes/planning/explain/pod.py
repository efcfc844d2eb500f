"""Everything that keeps one pod from running: on existing nodes, and on every kind of node that could be added. Pure.

`explain_pod` is the output of `plimsoll plan --explain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.nodes.model.node_templates import build_planned_node
from plimsoll.nodes.planning.explain.daemon_overhead import name_daemons
from plimsoll.nodes.planning.explain.rejected_types import find_rejected_types
from plimsoll.scheduling import DEFAULT_PROFILE
from plimsoll.scheduling.cluster_view import ClusterView, NodeState, PlacedPod
from plimsoll.scheduling.feasibility import prepare_pod
from plimsoll.scheduling.pod_requests import compute_pod_demand

if TYPE_CHECKING:
    from plimsoll.nodes.model.scale_up_plan import ScaleUpOption, ScaleUpPlan
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.objects.api.pods import Pod

Json = dict[str, Any]


def explain_pod(problem: ScaleUpProblem, plan: ScaleUpPlan, key: str) -> Json:
    """The explanation for the pending entry with this key, as plain data."""
    index = next(index for index, pending in enumerate(problem.snapshot.pending) if pending.key == key)
    number = int(problem.table.class_of[index])
    pod_class = problem.table.classes[number]
    found: Json = {"pod": key, "pods": problem.snapshot.pending[index].count, "outcome": describe_outcome(plan, key)}
    if pod_class.problem is not None:
        return {**found, "problem": str(pod_class.problem)}
    why = problem.rules.build_fit_error(number)
    return {
        **found,
        "asks": pod_class.demand.to_json(),
        "nodes": {"total": why.nodes, "fitting": int(problem.rules.find_fitting(number).sum()), "message": why.message},
        "offers": [
            _describe_option(option, pod_class.pod, problem.snapshot.view, allowed=bool(problem.allowed[place, number]))
            for place, option in enumerate(problem.options)
            if option.exists or problem.allowed[place, number]
        ],
        "machineTypes": [
            {"machineType": kind.name, "reasons": [str(refusal) for refusal in refusals]}
            for kind, refusals in find_rejected_types(problem, number)
        ],
        "notOffered": [
            {
                "group": skipped_groups.group,
                "machineType": skipped_groups.machine_type,
                "code": skipped_groups.code,
                "reason": skipped_groups.reason,
            }
            for skipped_groups in problem.option_set.skipped_groups
        ],
    }


def describe_outcome(plan: ScaleUpPlan, key: str) -> Json:
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


def _describe_option(option: ScaleUpOption, pod: Pod, view: ClusterView, *, allowed: bool) -> Json:
    node = build_planned_node(option, 0)
    place = NodeState(node).with_pods(PlacedPod(daemon) for daemon in option.daemons)
    context = view.with_node(node)
    refusals = prepare_pod(pod, context, profile=DEFAULT_PROFILE).find_refusals(place)
    reasons = [str(refusal) for refusal in name_daemons(refusals, compute_pod_demand(pod), option.free, option.daemons)]
    if not reasons and not allowed:
        reasons = ["kept for pods that ask for it"]
    return {
        "group": option.group,
        "machineType": option.machine_type,
        "zone": option.zone,
        "exists": option.exists,
        "pricePerHour": option.price_per_hour,
        "fits": not reasons,
        "reasons": reasons,
    }
