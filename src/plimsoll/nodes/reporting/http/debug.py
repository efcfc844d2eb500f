"""What the debug pages show of the last loop: the cluster, the plan, and what blocks a pod or a ProvisioningRequest.

Computed on request, from the last result alone. Explanations run the planner, so they use the plan runner.
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
from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
    from plimsoll.nodes.plan_runner import PlanRunner
    from plimsoll.nodes.requests.model import RequestView
    from plimsoll.scheduling.cluster_view import NodeState, PodKey


Json = dict[str, Any]

_WITHOUT_CAPACITY: Final = (Phase.DUE, Phase.WAITING, Phase.INTENDED)
_NOT_OURS: Final = "its class is not handled here, or it is for another instance"


class DebugViews:
    """`last` returns the result of the last loop; None before the first."""

    def __init__(self, last: Callable[[], LoopResult | None], run_planner: PlanRunner) -> None:
        self._last = last
        self._planning = run_planner

    def show_snapshot(self) -> Json | None:
        """Nodes with their pods, group templates, pending pods; None: not enabled, or the cluster was not read."""
        loop = self._last()
        if loop is None or loop.snapshot is None or not loop.policy.operation.debugging_snapshot:
            return None
        return {
            "Timestamp": format_time(loop.at),
            "NodeList": [_encode_node(state) for state in loop.snapshot.view.nodes.values()],
            "TemplateNodes": {group.id: msgspec.to_builtins(group.template) for group in loop.snapshot.groups},
            "UnschedulablePods": [pending.key for pending in loop.snapshot.pending],
        }

    def show_plan(self) -> Json | None:
        """The decisions of the last loop as in a scenario, and the reasons as lines."""
        loop = self._last()
        if loop is None:
            return None
        return {
            "time": format_time(loop.at),
            **build_loop_entry(loop, is_timed=True),
            "lines": build_plan(loop).format_lines(),
        }

    async def show_pod(self, key: PodKey) -> Json | None:
        """The node of a pod, why it is not planned for, or what blocks it; None: the last loop did not list it."""
        loop = self._last()
        if loop is None or loop.snapshot is None:
            return None
        waiting = _find_pending(loop.snapshot, key)
        if waiting is not None:
            plan, snapshot, policy = loop.scale_up.plan, loop.snapshot, loop.policy
            found: Json = await self._planning(
                lambda: explain_pod(ScaleUpProblem.from_snapshot(snapshot, policy), plan, waiting.key)
            )
            return found
        for filtered in loop.filtered_pods:
            if (filtered.pod.metadata.namespace, filtered.pod.metadata.name) == key:
                return {"pod": str(key), "setAside": str(filtered.reason)}
        for state in loop.snapshot.view.nodes.values():
            if key in state.pods:
                return {"pod": str(key), "node": state.name}
        return None

    async def show_request(self, key: PodKey) -> Json | None:
        """The state of a request, its updates, and what blocks its pods; None: the last loop did not list it."""
        loop = self._last()
        if loop is None or str(key) not in (loop.requests.known or ()):
            return None
        view = next((request for request in loop.requests.views if request.name == str(key)), None)
        if view is None:
            return {"request": str(key), "setAside": _NOT_OURS}
        found = _encode_request(loop, view)
        if view.phase in _WITHOUT_CAPACITY and view.pods and loop.snapshot is not None:
            snapshot = loop.snapshot
            found["podSets"] = await self._planning(lambda: _explain_pod_sets(loop, snapshot, view))
        return found


def _encode_request(loop: LoopResult, view: RequestView) -> Json:
    part = loop.requests
    updates = [status_update for status_update in part.updates if status_update.view.name == view.name]
    conditions, details = view.conditions, view.details
    for update in updates:
        if update.is_written:
            conditions, details = update.conditions, update.details
    return {
        "request": view.name,
        "class": view.request.spec.provisioning_class_name,
        "phase": view.phase.value,
        "conditions": conditions.to_json(),
        "details": details.to_map(),
        "said": [
            {
                "saying": status_update.kind.value,
                "message": str(status_update.reason),
                "written": status_update.is_written,
            }
            for status_update in updates
        ],
        "booked": dict(part.booked.get(view.name, {})),
        "unbookable": part.unbookable.get(view.name, 0),
    }


def _explain_pod_sets(loop: LoopResult, snapshot: Snapshot, view: RequestView) -> list[Json]:
    """An explanation per pod set; requests that were not due are explained as if they were planned for."""
    there = {pending.key for pending in snapshot.pending}
    missing = (pending for pending in view.pods if pending.key not in there)
    problem = ScaleUpProblem.from_snapshot(replace(snapshot, pending=(*snapshot.pending, *missing)), loop.policy)
    return [explain_pod(problem, loop.scale_up.plan, pending.key) for pending in view.pods]


def _find_pending(snapshot: Snapshot, key: PodKey) -> PendingPods | None:
    for pending in snapshot.pending:
        if pending.pod.metadata.namespace == key.namespace and key.name in pending.names:
            return pending
    return None


def _encode_node(state: NodeState) -> Json:
    """The node with the names of its pods only: pod specs may hold secrets."""
    pods = [{"namespace": key.namespace, "name": key.name} for key in state.pods]
    return {"Node": msgspec.to_builtins(state.node), "Pods": pods}
