"""The first half of a turn: what is added so that pending pods run (specs/nodes.md 6.1.9-12).

The plan is always made when pods are pending, because shrinking wants to know where they would fit; whether it is
carried out depends on brakes and on how new the pods are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.gpus import is_gpu
from plimsoll.nodes.model.reasons import MAX_NODES_REACHED, PODS_TOO_NEW
from plimsoll.nodes.model.results import ScaleUpPart, ScaleUpResult
from plimsoll.nodes.planning.scaleup.nominations import PodNominations
from plimsoll.nodes.planning.scaleup.planner import propose, verified
from plimsoll.scheduling.pod_requests import pod_demand

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from datetime import datetime

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.plan_runner import PlanRunner
    from plimsoll.nodes.model.scale_up_plan import GroupScaleUp, ScaleUpPlan
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
    from plimsoll.nodes.model.timings import LoopTimings
    from plimsoll.nodes.planning.scaleup.planner import Proposal
    from plimsoll.nodes.scaleup.executor import ScaleUpExecutor
    from plimsoll.operator.pause import ActionGuard


SETTLING_S: Final = 2.0
_SETTLING_WITH_GPU_S: Final = 30.0
"""Who asks for accelerators often comes in numbers: a turn waits until they are all there."""


class ExternalExpander(Protocol):
    """An expander outside this program: `asking_expander`."""

    async def plan(self, policy: Policy, plan: Callable[[Policy], Awaitable[ScaleUpPlan]]) -> ScaleUpPlan: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpContext:
    """What a turn knows when it comes to growing."""

    snapshot: Snapshot
    policy: Policy
    now: datetime
    ready_nodes: int
    stopwatch: LoopTimings
    delay_new_pods: bool = True
    """Pods that were made just now are waited with; not in a world that is told step by step."""
    before_execute: Callable[[ScaleUpPlan], Awaitable[ScaleUpPlan]] | None = None
    """Who has to say what may be carried out of a plan, right before it is: intents of requests are written there."""


class ScaleUpOrchestrator:
    """Plans growth and has it carried out."""

    def __init__(self, grower: ScaleUpExecutor, planning: PlanRunner, asking: ExternalExpander | None = None) -> None:
        self._grower = grower
        self._planning = planning
        self._asking = asking
        self._promises = PodNominations()

    def with_nominations(self, snapshot: Snapshot) -> Snapshot:
        """Nodes that were asked for lately are for the pods they were asked for."""
        places = self._promises.places(snapshot)
        return replace(snapshot, promises=places) if places else snapshot

    async def run(self, at: ScaleUpContext, brakes: ActionGuard) -> ScaleUpPart:
        if not at.snapshot.pending:
            return ScaleUpPart()
        if at.delay_new_pods and _are_all_new(at.snapshot.pending, at.policy, at.now):
            why = Reason(code=PODS_TOO_NEW, message="all pending pods were made just now; more may follow")
            return ScaleUpPart(skipped=why)
        plan = await self._planned(at)
        seconds = at.stopwatch.seconds["scaleUp:estimate"]
        part = ScaleUpPart(plan=plan, skipped=_why_full(at, plan), plan_seconds=seconds)
        if not plan.scale_ups:
            return part
        if brakes.reason is not None:
            return replace(part, results=tuple(_held_back(plan, brakes.reason)))
        if at.before_execute is not None:
            plan = await at.before_execute(plan)
            part = replace(part, plan=plan)
        grown = await self._grower.execute(plan.scale_ups, now=at.now)
        done = [(result.group, result.after - result.before, result.scale_up) for result in grown if result.is_done]
        self.nominate(at.snapshot, plan.existing, done)
        return replace(part, results=grown)

    def nominate(
        self,
        snapshot: Snapshot,
        housed: Mapping[str, Mapping[str, int]],
        grown: Iterable[tuple[str, int, GroupScaleUp]],
    ) -> None:
        """Nodes that were asked for are kept for pods; what the same pods were promised before holds no more."""
        self._promises.make(snapshot, housed, grown)

    async def _planned(self, at: ScaleUpContext) -> ScaleUpPlan:
        async def plan(policy: Policy) -> ScaleUpPlan:
            with at.stopwatch.timing("scaleUp:estimate"):
                proposal: Proposal = await self._planning(lambda: propose(at.snapshot, policy))
            proven: ScaleUpPlan = await self._planning(lambda: verified(proposal))
            return proven

        return await (plan(at.policy) if self._asking is None else self._asking.plan(at.policy, plan))


def _held_back(plan: ScaleUpPlan, reason: Reason) -> list[ScaleUpResult]:
    return [
        ScaleUpResult(
            scale_up=scale_up,
            group=scale_up.option.group,
            before=scale_up.before,
            after=scale_up.after,
            held_back=reason,
        )
        for scale_up in plan.scale_ups
    ]


def _why_full(at: ScaleUpContext, plan: ScaleUpPlan) -> Reason | None:
    most = at.policy.limits.max_nodes_total
    if not most or at.ready_nodes < most or not plan.unschedulable:
        return None
    return Reason(
        code=MAX_NODES_REACHED,
        message=f"the cluster has {at.ready_nodes} ready nodes, max-nodes-total is {most}",
        facts={"nodes": at.ready_nodes, "maxNodesTotal": most},
    )


def _are_all_new(pending: tuple[PendingPods, ...], policy: Policy, now: datetime) -> bool:
    """Whether more of them may be about to come. A bypassed scheduler tells nobody when it is done: no waiting then.

    Nor for a pod that was made in the future: the clocks differ, and it might be an hour. Requests come whole.
    """
    if policy.pods.bypassed_schedulers or any(pending_pods.bundle for pending_pods in pending):
        return False
    wants_gpu = any(any(is_gpu(name) for name in pod_demand(pending_pods.pod)) for pending_pods in pending)
    settling_s = _SETTLING_WITH_GPU_S if wants_gpu else SETTLING_S
    return all(
        pending_pods.created is not None and 0 <= (now - pending_pods.created).total_seconds() < settling_s
        for pending_pods in pending
    )
