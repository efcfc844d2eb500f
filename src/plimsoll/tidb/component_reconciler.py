"""A pass over one component of a cluster: see, ask, decide, act. What goes wrong ends here, as a result.

`autoscaler` makes one for TiDB and one for TiKV. An error of the API server, or of anything else that is asked, stops
this component and not the other; what was done until then is concluded all the same, so that no clock is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog
from msgspec.structs import replace

from plimsoll.core.errors import PlimsollError
from plimsoll.core.plans import Reason, Result
from plimsoll.kube.errors import ApiError, NotAllowed
from plimsoll.tidb.actuation.actuator import ActContext, Actuator
from plimsoll.tidb.actuation.endpoint_slices import Serving, serve_through_base
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.decimals import exact
from plimsoll.tidb.model.planner_answer import NoAnswer
from plimsoll.tidb.model.reconcile_result import ActDone, ComponentResult, cluster_of
from plimsoll.tidb.model.reconcile_types import Decided, Remove, Resize
from plimsoll.tidb.observing.component_state import clusters_of, component_seen
from plimsoll.tidb.planning.api.defaults import scaled_component
from plimsoll.tidb.planning.drain.types import LOW_SPACE
from plimsoll.tidb.planning.reconcile.decide import concluded, decide, decide_external, decide_removal
from plimsoll.tidb.planning.reconcile.planner_request import question_for

if TYPE_CHECKING:
    from datetime import datetime
    from fractions import Fraction

    from plimsoll.objects.api.tidb import TidbClusterAutoScaler
    from plimsoll.tidb.model.reconcile_types import Act, ComponentSeen
    from plimsoll.tidb.observing.observer import Observed
    from plimsoll.tidb.reconciler import ReconcilerDependencies

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What is common to both components. `is_leaving`: the autoscaler is being deleted, and all groups with it."""

    observed: Observed
    effective: TidbClusterAutoScaler
    brake: Reason | None
    now: datetime
    is_leaving: bool = False


class ComponentReconciler:
    """Made for one pass."""

    def __init__(self, tools: ReconcilerDependencies, whole: Pass, component: Component) -> None:
        self._tools = tools
        self._pass = whole
        self._component = component
        self._policy = tools.settings.policy

    async def run(self) -> ComponentResult | None:
        """None: the autoscaler says nothing of the component, and never did."""
        observed = self._pass.observed
        status = observed.autoscaler.status
        known = status.tidb if self._component is Component.TIDB else status.tikv
        is_scaled = scaled_component(observed.autoscaler, self._component) is not None
        if not is_scaled and not clusters_of(observed, self._component):
            return ComponentResult(component=self._component) if known else None
        before = ComponentResult(component=self._component, status=known)
        rival = observed.rivals.get(self._component, "")
        if rival and not self._pass.is_leaving:
            return replace(before, rival=rival)
        try:
            return await self._seen_through(before)
        except NotAllowed:
            raise
        except PlimsollError as error:
            log.warning("component.failed", component=self._component, problem=str(error))
            return replace(before, problem=str(error))

    async def _seen_through(self, before: ComponentResult) -> ComponentResult:
        observed, advisers = self._pass.observed, self._tools.advisers
        registered = await advisers.registered(observed) if self._component is Component.TIKV else {}
        seen = component_seen(observed, self._component, effective=self._pass.effective, registered=registered)
        before = replace(
            before,
            clusters={group_seen.key: group_seen.name for group_seen in seen.groups},
            waiting=self._waiting(seen),
        )
        decided = await self._decided(seen)
        is_external = seen.scaled is not None and seen.scaled.external is not None
        is_asked = seen.scaled is not None and not self._pass.is_leaving
        before = replace(before, asked=is_asked, is_external=is_external)
        if isinstance(decided, NoAnswer):
            return replace(before, no_answer=decided)
        return await self._acted(replace(before, decided=decided), decided)

    # ---- deciding

    async def _decided(self, seen: ComponentSeen) -> Decided | NoAnswer:
        whole, advisers, policy = self._pass, self._tools.advisers, self._policy
        if seen.scaled is None or whole.is_leaving:
            return decide_removal(seen, ignores_cooldown=whole.is_leaving, policy=policy, now=whole.now)
        if seen.scaled.external is not None:
            wanted = await advisers.external(whole.observed, self._component)
            if isinstance(wanted, NoAnswer):
                return wanted
            return decide_external(seen, wanted, policy=policy, now=whole.now)
        assert whole.observed.base is not None
        question = question_for(
            seen,
            whole.observed.base.view,
            whole.effective,
            node_count=await advisers.node_count(),
            policy=policy,
            now=whole.now,
        )
        answer = await advisers.plans(whole.observed, question)
        if isinstance(answer, NoAnswer):
            return answer
        return decide(seen, answer, policy=policy, now=whole.now)

    def _waiting(self, seen: ComponentSeen) -> tuple[str, ...]:
        grace = timedelta(seconds=self._policy.registration_grace_s)
        return tuple(
            group_seen.name
            for group_seen in seen.groups
            if group_seen.waiting_since is not None and self._pass.now - group_seen.waiting_since > grace
        )

    # ---- acting

    async def _acted(self, result: ComponentResult, decided: Decided) -> ComponentResult:
        brake = self._pass.brake
        if brake is not None:
            done = tuple(self._held_back(act, brake) for act in decided.acts)
            return replace(result, done=done, status=concluded(decided, (), now=self._pass.now))
        site = ActContext(
            observed=self._pass.observed,
            component=self._component,
            highest_usage=self._highest_usage(),
            now=self._pass.now,
        )
        actor = Actuator(self._tools.client, self._tools.drainers.build(self._pass.observed), site)
        await self._serve(decided)
        acts: list[ActDone] = []
        problem = ""
        try:
            for act in decided.acts:
                acts += [await actor.do(act)]
            if not self._pass.is_leaving:
                await actor.follow()
        except NotAllowed:
            raise
        except PlimsollError as error:
            # What was done stays done, and its clock runs.
            log.warning("act.failed", component=self._component, problem=str(error))
            problem = str(error)
        keys = {act_done.act.key for act_done in acts if act_done.result in {Result.DONE, Result.ALREADY_SO}}
        return replace(result, done=tuple(acts), problem=problem, status=concluded(decided, keys, now=self._pass.now))

    def _held_back(self, act: Act, brake: Reason) -> ActDone:
        assert self._pass.observed.base is not None
        cluster = cluster_of(act, base=self._pass.observed.base.metadata.name)
        return ActDone(act=act, cluster=cluster, result=Result.HELD_BACK, reason=brake)

    async def _serve(self, decided: Decided) -> None:
        """Let clients of the cluster's Service reach the TiDB servers of groups, and those that go no longer."""
        groups = {raw.metadata.name: raw.view.spec.tidb for raw in clusters_of(self._pass.observed, self._component)}
        is_wanted = self._component is Component.TIDB and self._tools.settings.makes_endpoint_slices
        if not is_wanted or not groups:
            return
        replicas = {name: own.replicas if own is not None else 0 for name, own in groups.items()}
        for act in decided.acts:
            if isinstance(act, Resize):
                replicas[act.group] = min(replicas[act.group], act.replicas)
            elif isinstance(act, Remove):
                replicas[act.group] = 0
        assert self._pass.observed.base is not None
        metadata = self._pass.observed.base.metadata
        serving = Serving(namespace=metadata.namespace, base=metadata.name, replicas=replicas)
        try:
            await serve_through_base(self._tools.client, serving)
        except ApiError as error:
            log.warning("endpoint_slice.not_written", namespace=metadata.namespace, problem=str(error))

    def _highest_usage(self) -> Fraction:
        """Of disks that are left when a store has gone."""
        scaled = scaled_component(self._pass.effective, Component.TIKV)
        rule = scaled.rules.get("storage") if scaled is not None else None
        return LOW_SPACE if rule is None or rule.max_threshold is None else exact(rule.max_threshold)
