"""What the debugging pages show of the last turn: the cluster it saw, its plan, all that is in the way of one thing.

That is a pod, or a ProvisioningRequest. Made when asked, from the turn alone. Explaining takes a planner's time: it
runs where plans are made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.nodes.planning.explain.pod import explain_pod
from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
from plimsoll.nodes.reporting.journal.plan_entries import build_plan
from plimsoll.nodes.reporting.plan_json import build_loop_entry
from plimsoll.nodes.requests.model import Phase
from plimsoll.objects.api.meta import written_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.model.plan_runner import PlanRunner
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
    from plimsoll.nodes.requests.model import RequestView
    from plimsoll.scheduling.cluster_view import NodeState, PodKey


Json = dict[str, Any]

_WITHOUT_CAPACITY: Final = (Phase.DUE, Phase.WAITING, Phase.INTENDED)
_NOT_OURS: Final = "its class is not handled here, or it is for another instance"


class DebugViews:
    """`last` gives the last turn, or None before the first."""

    def __init__(self, last: Callable[[], LoopResult | None], run_planner: PlanRunner) -> None:
        self._last = last
        self._planning = run_planner

    def snapshot(self) -> Json | None:
        """Nodes with the pods on them, templates of groups, pods that wait; None if nothing is enabled or known yet."""
        turn = self._last()
        if turn is None or turn.snapshot is None or not turn.policy.operation.debugging_snapshot:
            return None
        return {
            "Timestamp": written_time(turn.at),
            "NodeList": [_node(state) for state in turn.snapshot.view.nodes.values()],
            "TemplateNodes": {group.id: msgspec.to_builtins(group.template) for group in turn.snapshot.groups},
            "UnschedulablePods": [pending.key for pending in turn.snapshot.pending],
        }

    def plan(self) -> Json | None:
        """What the last turn decided, as a scenario tells it, and why, line by line."""
        turn = self._last()
        if turn is None:
            return None
        return {
            "time": written_time(turn.at),
            **build_loop_entry(turn, is_timed=True),
            "lines": build_plan(turn).lines(),
        }

    async def pod(self, key: PodKey) -> Json | None:
        """Where a pod is, why it is not planned for, or all that stands in its way; None: no turn saw it."""
        turn = self._last()
        if turn is None or turn.snapshot is None:
            return None
        waiting = _waiting(turn.snapshot, key)
        if waiting is not None:
            plan, snapshot, policy = turn.scale_up.plan, turn.snapshot, turn.policy
            found: Json = await self._planning(
                lambda: explain_pod(ScaleUpProblem.of(snapshot, policy), plan, waiting.key)
            )
            return found
        for set_aside in turn.set_aside:
            if (set_aside.pod.metadata.namespace, set_aside.pod.metadata.name) == key:
                return {"pod": str(key), "setAside": str(set_aside.reason)}
        for state in turn.snapshot.view.nodes.values():
            if key in state.pods:
                return {"pod": str(key), "node": state.name}
        return None

    async def request(self, key: PodKey) -> Json | None:
        """Where a request stands, what was said of it, and all that stands in the way of its pods; None: not seen."""
        turn = self._last()
        if turn is None or str(key) not in (turn.requests.known or ()):
            return None
        seen = next((request for request in turn.requests.views if request.name == str(key)), None)
        if seen is None:
            return {"request": str(key), "setAside": _NOT_OURS}
        found = _told_of(turn, seen)
        if seen.phase in _WITHOUT_CAPACITY and seen.pods and turn.snapshot is not None:
            snapshot = turn.snapshot
            found["podSets"] = await self._planning(lambda: _pod_sets(turn, snapshot, seen))
        return found


def _told_of(turn: LoopResult, seen: RequestView) -> Json:
    part = turn.requests
    said = [status_update for status_update in part.updates if status_update.view.name == seen.name]
    conditions, details = seen.conditions, seen.details
    for update in said:
        if update.is_written:
            conditions, details = update.conditions, update.details
    return {
        "request": seen.name,
        "class": seen.request.spec.provisioning_class_name,
        "phase": seen.phase.value,
        "conditions": conditions.to_json(),
        "details": details.to_map(),
        "said": [
            {
                "saying": status_update.kind.value,
                "message": str(status_update.reason),
                "written": status_update.is_written,
            }
            for status_update in said
        ],
        "booked": dict(part.booked.get(seen.name, {})),
        "unbookable": part.unbookable.get(seen.name, 0),
    }


def _pod_sets(turn: LoopResult, snapshot: Snapshot, seen: RequestView) -> list[Json]:
    """Each as a pod that waits. Who was not due was not planned for; what is in its way can be told all the same."""
    there = {pending.key for pending in snapshot.pending}
    missing = (pending for pending in seen.pods if pending.key not in there)
    board = ScaleUpProblem.of(replace(snapshot, pending=(*snapshot.pending, *missing)), turn.policy)
    return [explain_pod(board, turn.scale_up.plan, pending.key) for pending in seen.pods]


def _waiting(snapshot: Snapshot, key: PodKey) -> PendingPods | None:
    for pending in snapshot.pending:
        if pending.pod.metadata.namespace == key.namespace and key.name in pending.names:
            return pending
    return None


def _node(state: NodeState) -> Json:
    """Pods by name alone: what they were given to run with is nobody's business here."""
    pods = [{"namespace": key.namespace, "name": key.name} for key in state.pods]
    return {"Node": msgspec.to_builtins(state.node), "Pods": pods}
