"""Whether requests that only ask find room on the nodes that are there: check-capacity (specs/nodes.md 3.2). Pure.

In line, each whole or not at all; who found room keeps it from those behind, unless it asked not to. A no is not just a
bad packing: where little is left, an integer program looks at every assignment (7.6). Nothing is added for a check.

`check_queued_requests` answers a line in which others stand too that may add nodes; it is what `requests.booking` asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.planning.equivalence.scheduling_keys import request_keys
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
"""So often a placement that the plain rules refuse is made another way; then there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResults:
    """All answers, in line, and the room that is kept for those that found some: node to pods by key."""

    answers: tuple[CheckResult, ...] = ()
    booked: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRequest:
    """A request that waits for an answer: one that may add nodes, or one that only asks."""

    name: str
    pods: tuple[PendingPods, ...]
    can_scale_up: bool
    reserves: bool = True


def check_queued_requests(
    snapshot: Snapshot, policy: Policy, line: Sequence[QueuedRequest]
) -> tuple[Snapshot, dict[str, CheckResult]]:
    """The answers to all checks in line by name, and the snapshot with the room they keep.

    Those that may add nodes are not answered here; but what they would take of nodes that are there is theirs, where
    they stand further in front. One that gets nothing, even with all that could be added, takes nothing.
    """
    last = max((number for number, in_line in enumerate(line) if not in_line.can_scale_up), default=-1)
    front = line[: last + 1]
    growing = [in_line for in_line in front if in_line.can_scale_up]
    taken = place_nominated(snapshot)
    served = _served(taken, policy, growing) if growing else frozenset()
    checks = [
        Check(name=in_line.name, pods=in_line.pods, reserves=in_line.reserves, is_scale_up=in_line.can_scale_up)
        for in_line in front
        if not in_line.can_scale_up or in_line.name in served
    ]
    found = check_capacity(taken, policy, checks)
    pods = [pod for in_line in front for pod in in_line.pods]
    kept = replace(snapshot, view=PlaceholderPods().add_to(snapshot.view, found.booked, pods))
    return kept, {checked.name: checked for checked in found.answers}


def _served(snapshot: Snapshot, policy: Policy, growing: Sequence[QueuedRequest]) -> frozenset[str]:
    """Names of those that would get all they ask for if nobody else asked."""
    pods = tuple(pod for in_line in growing for pod in in_line.pods)
    plan = plan_scale_up(replace(snapshot, pending=pods, nominations={}), policy)
    left = {key for unschedulable in plan.unschedulable for key in unschedulable.keys}
    return frozenset(in_line.name for in_line in growing if not any(pod.key in left for pod in in_line.pods))


def check_capacity(snapshot: Snapshot, policy: Policy, checks: Sequence[Check]) -> CheckResults:
    """On the nodes of the snapshot; what is pending in it is not looked at."""
    if not any(not check.is_scale_up for check in checks):
        return CheckResults()
    pending = tuple(pending_pods for check in checks for pending_pods in check.pods)
    alone = replace(snapshot, pending=pending, groups=(), machine_types=(), nominations={})
    forms = None if snapshot.cache is None else request_keys(snapshot.cache)
    board = ScaleUpProblem.of(alone, replace(policy, nap=replace(policy.nap, enabled=False)), scheduling_keys=forms)
    doubts = FailedClasses()
    for _ in range(_ROUNDS):
        line = CheckQueue(board, checks, doubts)
        keys = {refuted.key for plan in line.plans() for refuted in verify(alone, _representative(board, plan))}
        if not keys:
            break
        classes = frozenset(line.class_of[key] for key in keys)
        doubts = FailedClasses(
            pod_by_pod=doubts.pod_by_pod | classes, given_up=doubts.given_up | (classes & doubts.pod_by_pod)
        )
    else:
        line = CheckQueue(board, checks, replace(doubts, given_up=doubts.pod_by_pod))
    return _kept(line, checks)


def _representative(board: ScaleUpProblem, plan: ScaleUpPlan) -> ScaleUpPlan:
    """Of nodes of a group that are filled alike one, where nobody looks at other pods (specs/nodes.md 7.4)."""
    interacts = board.rules.interacts
    class_of = {pending.key: int(board.table.class_of[index]) for index, pending in enumerate(board.table.pending)}
    found: dict[tuple[str, tuple[tuple[int, int], ...]], str] = {}
    for node, pods in plan.existing.items():
        if any(interacts[class_of[key]] for key in pods):
            return plan
        filling = tuple(sorted((class_of[key], count) for key, count in pods.items()))
        found.setdefault((board.snapshot.group_of.get(node, ""), filling), node)
    return replace(plan, existing={node: plan.existing[node] for node in found.values()})


def _kept(line: CheckQueue, checks: Sequence[Check]) -> CheckResults:
    """Without the room of those that were not asked: they get theirs elsewhere."""
    asked = {pending.key: check.name for check in checks if not check.is_scale_up for pending in check.pods}
    booked: dict[str, dict[str, int]] = {}
    by_name: dict[str, dict[str, dict[str, int]]] = {}
    for node, pods in line.plans()[0].existing.items():
        for key, count in pods.items():
            if key in asked:
                booked.setdefault(node, {})[key] = count
                by_name.setdefault(asked[key], {}).setdefault(node, {})[key] = count
    answers = tuple(replace(checked, places=by_name.get(checked.name, {})) for checked in line.answers)
    return CheckResults(answers=answers, booked=booked)
