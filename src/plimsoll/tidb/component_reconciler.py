"""Reconciles one component of a cluster: observe, request plans, decide, act.

An error of the API server or of another service stops this component and not the other. What was done before the error
is concluded, so that no cooldown is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from msgspec.structs import replace

from plimsoll.core.durations import add_seconds
from plimsoll.core.errors import PlimsollError
from plimsoll.core.plans import Reason, Result
from plimsoll.kube.errors import ApiError, NotAllowed
from plimsoll.tidb.actuation.actuator import ActContext, Actuator
from plimsoll.tidb.actuation.endpoint_slices import ServedGroups, sync_endpoint_slices
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.decimals import to_exact
from plimsoll.tidb.model.planner_answer import NoAnswer
from plimsoll.tidb.model.reconcile_result import ActResult, ComponentResult, get_target_cluster
from plimsoll.tidb.model.reconcile_types import Decision, Remove, Resize
from plimsoll.tidb.observing.component_state import find_clusters, observe_component
from plimsoll.tidb.planning.api.defaults import get_scaled_component
from plimsoll.tidb.planning.drain.types import LOW_SPACE
from plimsoll.tidb.planning.reconcile.decide import conclude, decide, decide_external, decide_removal, note_gaps
from plimsoll.tidb.planning.reconcile.planner_request import build_planner_request
from plimsoll.tidb.planning.reconcile.status_entries import name_clusters

if TYPE_CHECKING:
    from datetime import datetime
    from fractions import Fraction

    from plimsoll.objects.api.tidb import TidbClusterAutoScaler
    from plimsoll.tidb.model.reconcile_types import Act, ObservedComponent
    from plimsoll.tidb.observing.observer import Observed
    from plimsoll.tidb.reconciler import ReconcilerDependencies

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentContext:
    """The input that both components share. `is_being_deleted`: the autoscaler is deleted, with all its groups."""

    observed: Observed
    effective: TidbClusterAutoScaler
    pause: Reason | None
    now: datetime
    is_being_deleted: bool = False


class ComponentReconciler:
    """Reconciles one component once."""

    def __init__(self, dependencies: ReconcilerDependencies, context: ComponentContext, component: Component) -> None:
        self._dependencies = dependencies
        self._context = context
        self._component = component
        self._policy = dependencies.settings.policy

    async def run(self) -> ComponentResult | None:
        """The result; None: the autoscaler does not scale the component and never did."""
        observed = self._context.observed
        status = observed.autoscaler.status
        known = status.tidb if self._component is Component.TIDB else status.tikv
        is_scaled = get_scaled_component(observed.autoscaler, self._component) is not None
        if not is_scaled and not find_clusters(observed, self._component):
            return ComponentResult(component=self._component) if known else None
        before = ComponentResult(component=self._component, status=known)
        rival = observed.older_autoscalers.get(self._component, "")
        if rival and not self._context.is_being_deleted:
            return replace(before, older_autoscaler=rival)
        try:
            return await self._reconcile(before)
        except NotAllowed:
            raise
        except PlimsollError as error:
            log.warning("component.failed", component=self._component, problem=str(error))
            return replace(before, problem=str(error))
        except Exception as error:
            # A value that no check foresaw stops this component and nothing else.
            log.exception("component.crashed", component=self._component)
            return replace(before, problem=f"unexpected {type(error).__name__}: {error}")

    async def _reconcile(self, before: ComponentResult) -> ComponentResult:
        observed, sources = self._context.observed, self._dependencies.sources
        registered = await sources.count_registered_stores(observed) if self._component is Component.TIKV else {}
        observed_component = observe_component(
            observed, self._component, effective=self._context.effective, registered=registered
        )
        before = replace(
            before,
            clusters={group.key: group.name for group in observed_component.groups},
            unschedulable=self._find_unschedulable(observed_component),
        )
        decision = await self._decide(observed_component)
        is_external = observed_component.scaled is not None and observed_component.scaled.external is not None
        is_queried = observed_component.scaled is not None and not self._context.is_being_deleted
        before = replace(before, is_queried=is_queried, is_external=is_external)
        if isinstance(decision, NoAnswer):
            return replace(before, no_answer=decision)
        return await self._act(replace(before, decision=decision), decision)

    # ---- deciding

    async def _decide(self, observed_component: ObservedComponent) -> Decision | NoAnswer:
        context, sources, policy = self._context, self._dependencies.sources, self._policy
        if observed_component.scaled is None or context.is_being_deleted:
            return decide_removal(
                observed_component, ignores_cooldown=context.is_being_deleted, policy=policy, now=context.now
            )
        if observed_component.scaled.external is not None:
            wanted = await sources.request_recommendation(context.observed, self._component)
            if isinstance(wanted, NoAnswer):
                return wanted
            return decide_external(observed_component, wanted, policy=policy, now=context.now)
        assert context.observed.base is not None
        question = build_planner_request(
            observed_component,
            context.observed.base.view,
            context.effective,
            node_count=await sources.count_nodes(),
            policy=policy,
            now=context.now,
        )
        answer = await sources.request_plans(context.observed, question)
        if isinstance(answer, NoAnswer):
            return answer
        decision = decide(observed_component, answer.plans, policy=policy, now=context.now)
        return note_gaps(decision, observed_component, answer.gaps)

    def _find_unschedulable(self, observed_component: ObservedComponent) -> tuple[str, ...]:
        latest = add_seconds(self._context.now, -self._policy.registration_grace_s)
        return tuple(
            group.name
            for group in observed_component.groups
            if group.unschedulable_since is not None and group.unschedulable_since < latest
        )

    # ---- acting

    async def _act(self, result: ComponentResult, decision: Decision) -> ComponentResult:
        pause = self._context.pause
        if pause is not None:
            done = tuple(self._hold_back(act, pause) for act in decision.acts)
            status = name_clusters(conclude(decision, (), now=self._context.now), result.clusters)
            return replace(result, done=done, status=status)
        act_context = ActContext(
            observed=self._context.observed,
            component=self._component,
            highest_usage=self._find_highest_usage(),
            now=self._context.now,
        )
        actuator = Actuator(
            self._dependencies.client, self._dependencies.drainers.build(self._context.observed), act_context
        )
        # Also if there is no act: the status counts how often a group was omitted, and at last the group is removed.
        await self._dependencies.client.confirm_guard()
        await self._sync_endpoint_slices(decision)
        acts: list[ActResult] = []
        problem = ""
        try:
            for act in decision.acts:
                acts += [await actuator.do(act)]
            if not self._context.is_being_deleted:
                await actuator.follow()
        except NotAllowed:
            raise
        except PlimsollError as error:
            # What was done stays done, and its cooldown starts.
            log.warning("act.failed", component=self._component, problem=str(error))
            problem = str(error)
        keys = {act_done.act.key for act_done in acts if act_done.result in {Result.DONE, Result.ALREADY_SO}}
        clusters = result.clusters | {act_done.act.key: act_done.cluster for act_done in acts if act_done.cluster}
        status = name_clusters(conclude(decision, keys, now=self._context.now), clusters)
        return replace(result, done=tuple(acts), problem=problem, status=status)

    def _hold_back(self, act: Act, pause: Reason) -> ActResult:
        assert self._context.observed.base is not None
        cluster = get_target_cluster(act, base=self._context.observed.base.metadata.name)
        return ActResult(act=act, cluster=cluster, result=Result.HELD_BACK, reason=pause)

    async def _sync_endpoint_slices(self, decision: Decision) -> None:
        """Let the cluster's Service reach the TiDB servers of groups, except those that are to be removed."""
        groups = {
            raw.metadata.name: raw.view.spec.tidb for raw in find_clusters(self._context.observed, self._component)
        }
        is_wanted = self._component is Component.TIDB and self._dependencies.settings.makes_endpoint_slices
        if not is_wanted or not groups:
            return
        replicas = {name: own.replicas if own is not None else 0 for name, own in groups.items()}
        for act in decision.acts:
            if isinstance(act, Resize):
                replicas[act.group] = min(replicas[act.group], act.replicas)
            elif isinstance(act, Remove):
                replicas[act.group] = 0
        assert self._context.observed.base is not None
        metadata = self._context.observed.base.metadata
        serving = ServedGroups(namespace=metadata.namespace, base=metadata.name, replicas=replicas)
        try:
            await sync_endpoint_slices(self._dependencies.client, serving)
        except ApiError as error:
            log.warning("endpoint_slice.not_written", namespace=metadata.namespace, problem=str(error))

    def _find_highest_usage(self) -> Fraction:
        """The allowed disk usage after a store was removed."""
        scaled = get_scaled_component(self._context.effective, Component.TIKV)
        rule = scaled.rules.get("storage") if scaled is not None else None
        return LOW_SPACE if rule is None or rule.max_threshold is None else to_exact(rule.max_threshold)
