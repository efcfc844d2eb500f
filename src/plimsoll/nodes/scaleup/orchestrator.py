"""Scale-up in the loop: plans what pending pods need, and executes the plan (docs/design/nodes.md 6.1, steps 9 to 12).

A plan is made whenever pods are pending, because scale-down needs to know where they would fit. Whether it is executed
depends on pause and dry run, and on the age of the pods.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.gpus import is_gpu
from plimsoll.nodes.model.reasons import MAX_NODES_REACHED, PODS_TOO_NEW
from plimsoll.nodes.model.results import ScaleUpPart, ScaleUpResult
from plimsoll.nodes.planning.scaleup.nominations import PodNominations
from plimsoll.nodes.planning.scaleup.planner import propose, verify_proposal
from plimsoll.scheduling.pod_requests import compute_pod_demand

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from datetime import datetime

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.loop_timings import LoopTimings
    from plimsoll.nodes.model.scale_up_plan import GroupScaleUp, ScaleUpPlan
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
    from plimsoll.nodes.plan_runner import PlanRunner
    from plimsoll.nodes.planning.scaleup.planner import Proposal
    from plimsoll.nodes.scaleup.executor import ScaleUpExecutor
    from plimsoll.operator.pause import ActionGuard


SETTLING_S: Final = 2.0
_SETTLING_WITH_GPU_S: Final = 30.0
"""Pods that request accelerators often come in large numbers, so planning waits until all of them exist."""


class ExternalExpander(Protocol):
    """An expander outside this program, asked while planning."""

    async def plan(self, policy: Policy, plan: Callable[[Policy], Awaitable[ScaleUpPlan]]) -> ScaleUpPlan: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpContext:
    """The input of the scale-up of one loop iteration."""

    snapshot: Snapshot
    policy: Policy
    now: datetime
    ready_nodes: int
    stopwatch: LoopTimings
    delay_new_pods: bool = True
    """Whether planning waits while all pending pods are new; False in a scenario that takes single steps."""
    before_execute: Callable[[ScaleUpPlan], Awaitable[ScaleUpPlan]] | None = None
    """Called with the plan right before its execution; returns what may be executed. Requests write intents here."""


class ScaleUpOrchestrator:
    """Plans scale-ups and executes them."""

    def __init__(
        self, executor: ScaleUpExecutor, run_planner: PlanRunner, expander: ExternalExpander | None = None
    ) -> None:
        self._executor = executor
        self._run_planner = run_planner
        self._expander = expander
        self._nominations = PodNominations()

    def with_nominations(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with upcoming nodes reserved for the pods that they were requested for."""
        places = self._nominations.find_places(snapshot)
        return replace(snapshot, nominations=places) if places else snapshot

    async def run(self, context: ScaleUpContext, guard: ActionGuard) -> ScaleUpPart:
        if not context.snapshot.pending:
            return ScaleUpPart()
        if context.delay_new_pods and _are_all_new(context.snapshot.pending, context.policy, context.now):
            why = Reason(code=PODS_TOO_NEW, message="all pending pods are new; more may follow")
            return ScaleUpPart(skipped=why)
        plan = await self._plan(context)
        seconds = context.stopwatch.seconds["scaleUp:estimate"]
        part = ScaleUpPart(plan=plan, skipped=_check_max_nodes(context, plan), plan_seconds=seconds)
        if not plan.scale_ups:
            return part
        if guard.reason is not None:
            return replace(part, results=tuple(_hold_back(plan, guard.reason)))
        if context.before_execute is not None:
            plan = await context.before_execute(plan)
            part = replace(part, plan=plan)
        results = await self._executor.execute(plan.scale_ups, now=context.now)
        done = [(result.group, result.after - result.before, result.scale_up) for result in results if result.is_done]
        self.nominate(context.snapshot, plan.existing, done)
        return replace(part, results=results)

    def nominate(
        self,
        snapshot: Snapshot,
        placed: Mapping[str, Mapping[str, int]],
        scaled_up: Iterable[tuple[str, int, GroupScaleUp]],
    ) -> None:
        """Reserve requested nodes for pods, instead of what was reserved for the same pods before."""
        self._nominations.make(snapshot, placed, scaled_up)

    async def _plan(self, context: ScaleUpContext) -> ScaleUpPlan:
        async def plan(policy: Policy) -> ScaleUpPlan:
            with context.stopwatch.measure("scaleUp:estimate"):
                proposal: Proposal = await self._run_planner(lambda: propose(context.snapshot, policy))
            proven: ScaleUpPlan = await self._run_planner(lambda: verify_proposal(proposal))
            return proven

        return await (plan(context.policy) if self._expander is None else self._expander.plan(context.policy, plan))


def _hold_back(plan: ScaleUpPlan, reason: Reason) -> list[ScaleUpResult]:
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


def _check_max_nodes(context: ScaleUpContext, plan: ScaleUpPlan) -> Reason | None:
    most = context.policy.limits.max_nodes_total
    if not most or context.ready_nodes < most or not plan.unschedulable:
        return None
    return Reason(
        code=MAX_NODES_REACHED,
        message=f"the cluster has {context.ready_nodes} ready nodes, max-nodes-total is {most}",
        facts={"nodes": context.ready_nodes, "maxNodesTotal": most},
    )


def _are_all_new(pending: tuple[PendingPods, ...], policy: Policy, now: datetime) -> bool:
    """Whether all pending pods are so new that more of them may follow soon.

    Planning does not wait for pods of bypassed schedulers, for requests, which are complete, nor for pods created in
    the future: those show that clocks differ, and the wait could be long.
    """
    if policy.pods.bypassed_schedulers or any(pods.bundle for pods in pending):
        return False
    wants_gpu = any(any(is_gpu(name) for name in compute_pod_demand(pods.pod)) for pods in pending)
    settling_s = _SETTLING_WITH_GPU_S if wants_gpu else SETTLING_S
    return all(pods.created is not None and 0 <= (now - pods.created).total_seconds() < settling_s for pods in pending)
