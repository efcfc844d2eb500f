"""Whether check-capacity requests fit on existing nodes (docs/design/nodes.md 3.2). Pure.

Requests are checked in queue order, each as a whole. A request that fits reserves its room, unless it opted out. A
rejection is not just a bad packing: where little is missing, an integer program searches every assignment
(docs/design/nodes.md 7.6). Nothing is added for a check. `check_queued_requests` handles a queue that also holds
requests which may add nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.planning.equivalence.scheduling_keys import build_request_keys
from plimsoll.nodes.planning.packing.binpacking import FailedClasses
from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
from plimsoll.nodes.planning.problem.verifier import verify
from plimsoll.nodes.planning.requests.check_queue import Check, CheckQueue, CheckResult
from plimsoll.nodes.planning.scaleup.nominations import place_nominated
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.nodes.planning.state.placeholder_pods import PlaceholderPods

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot

__all__ = ["Check", "CheckResult", "CheckResults", "QueuedRequest", "check_capacity", "check_queued_requests"]

_ROUNDS: Final = 4
"""The number of attempts after the verifier refused a placement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResults:
    """All results in queue order, and the room reserved for successful checks: node to pods by key."""

    answers: tuple[CheckResult, ...] = ()
    booked: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRequest:
    """A queued request: a scale-up that may add nodes, or a capacity check."""

    name: str
    pods: tuple[PendingPods, ...]
    can_scale_up: bool
    reserves: bool = True


def check_queued_requests(
    snapshot: Snapshot, policy: Policy, queue: Sequence[QueuedRequest]
) -> tuple[Snapshot, dict[str, CheckResult]]:
    """The results of all queued checks by name, and the snapshot with their reserved room.

    Requests that may add nodes get no result here, but the room that they would use on existing nodes is kept from
    later checks. A request that could not be scheduled even with new nodes takes no room.
    """
    last = max((number for number, queued in enumerate(queue) if not queued.can_scale_up), default=-1)
    front = queue[: last + 1]
    scale_ups = [queued for queued in front if queued.can_scale_up]
    taken = place_nominated(snapshot)
    served = _find_served_requests(taken, policy, scale_ups) if scale_ups else frozenset()
    checks = [
        Check(name=queued.name, pods=queued.pods, reserves=queued.reserves, is_scale_up=queued.can_scale_up)
        for queued in front
        if not queued.can_scale_up or queued.name in served
    ]
    found = check_capacity(taken, policy, checks)
    pods = [pod for queued in front for pod in queued.pods]
    kept = replace(snapshot, view=PlaceholderPods().add_to(snapshot.view, found.booked, pods))
    return kept, {checked.name: checked for checked in found.answers}


def _find_served_requests(snapshot: Snapshot, policy: Policy, scale_ups: Sequence[QueuedRequest]) -> frozenset[str]:
    """Names of the requests that a scale-up would serve completely if there were no other pods."""
    pods = tuple(pod for queued in scale_ups for pod in queued.pods)
    plan = plan_scale_up(replace(snapshot, pending=pods, nominations={}), policy)
    left = {key for unschedulable in plan.unschedulable for key in unschedulable.keys}
    return frozenset(queued.name for queued in scale_ups if not any(pod.key in left for pod in queued.pods))


def check_capacity(snapshot: Snapshot, policy: Policy, checks: Sequence[Check]) -> CheckResults:
    """Check requests on the nodes of the snapshot; its own pending pods are ignored."""
    if not any(not check.is_scale_up for check in checks):
        return CheckResults()
    pending = tuple(pending_pods for check in checks for pending_pods in check.pods)
    alone = replace(snapshot, pending=pending, groups=(), machine_types=(), nominations={})
    forms = None if snapshot.cache is None else build_request_keys(snapshot.cache)
    problem = ScaleUpProblem.from_snapshot(
        alone, replace(policy, nap=replace(policy.nap, enabled=False)), scheduling_keys=forms
    )
    doubts = FailedClasses()
    for _ in range(_ROUNDS):
        queue = CheckQueue(problem, checks, doubts)
        keys = {
            refuted.key
            for plan in queue.build_plans()
            for refuted in verify(alone, _choose_representatives(problem, plan))
        }
        if not keys:
            break
        classes = frozenset(queue.class_of[key] for key in keys)
        doubts = FailedClasses(
            pod_by_pod=doubts.pod_by_pod | classes, given_up=doubts.given_up | (classes & doubts.pod_by_pod)
        )
    else:
        queue = CheckQueue(problem, checks, replace(doubts, given_up=doubts.pod_by_pod))
    return _remove_scale_up_room(queue, checks)


def _choose_representatives(problem: ScaleUpProblem, plan: ScaleUpPlan) -> ScaleUpPlan:
    """One of each set of equally filled nodes per group, if no pods depend on others (docs/design/nodes.md 7.4)."""
    interacts = problem.rules.interacts
    class_of = {pending.key: int(problem.table.class_of[index]) for index, pending in enumerate(problem.table.pending)}
    found: dict[tuple[str, tuple[tuple[int, int], ...]], str] = {}
    for node, pods in plan.existing.items():
        if any(interacts[class_of[key]] for key in pods):
            return plan
        filling = tuple(sorted((class_of[key], count) for key, count in pods.items()))
        found.setdefault((problem.snapshot.group_of.get(node, ""), filling), node)
    return replace(plan, existing={node: plan.existing[node] for node in found.values()})


def _remove_scale_up_room(queue: CheckQueue, checks: Sequence[Check]) -> CheckResults:
    """The results without the room of scale-up checks, which get their room elsewhere."""
    check_names = {pending.key: check.name for check in checks if not check.is_scale_up for pending in check.pods}
    booked: dict[str, dict[str, int]] = {}
    by_name: dict[str, dict[str, dict[str, int]]] = {}
    for node, pods in queue.build_plans()[0].existing.items():
        for key, count in pods.items():
            if key in check_names:
                booked.setdefault(node, {})[key] = count
                by_name.setdefault(check_names[key], {}).setdefault(node, {})[key] = count
    answers = tuple(replace(checked, places=by_name.get(checked.name, {})) for checked in queue.answers)
    return CheckResults(answers=answers, booked=booked)
