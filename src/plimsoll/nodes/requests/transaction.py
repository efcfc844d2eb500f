"""The part of a loop that may add nodes for ProvisioningRequests: intents before the scale-up, status updates after it.

`RequestController.begin` builds a transaction. The loop plans with `snapshot`, calls `write_intents` before it executes
a plan and `finish` afterwards. Each request gets all its nodes or none (docs/design/nodes.md 3.3, 3.5): after a
definite failure the nodes already added for it are rolled back; after a call without an answer the intent stays
written, and the next loop checks the cloud provider.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.core.value_parsing import read_number
from plimsoll.nodes.model.prices import compute_group_prices
from plimsoll.nodes.planning.requests.replan import remove_requests, repack
from plimsoll.nodes.requests.booking.freed_capacity import is_repeated_refusal
from plimsoll.nodes.requests.booking.idle_nodes import count_idle_nodes, is_upcoming_node
from plimsoll.nodes.requests.intents import (
    RollbackPlan,
    add_counts,
    build_attempts,
    compute_fraction_added,
    count_added_before,
    find_surplus,
    map_to_provider_groups,
    may_have_scaled_up,
)
from plimsoll.nodes.requests.model import Phase, RequestsPart
from plimsoll.nodes.requests.rollback.recovery import FailureContext, apply_update, begin_rollbacks
from plimsoll.nodes.requests.status_updates import find_blocking, format_cost

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.results import ScaleUpPart, ScaleUpResult
    from plimsoll.nodes.model.scale_up_plan import GroupScaleUp, ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.plan_runner import PlanRunner
    from plimsoll.nodes.requests.intents import Attempt
    from plimsoll.nodes.requests.model import RequestView, StatusUpdate
    from plimsoll.nodes.requests.rollback.actuators import RequestActuators
    from plimsoll.nodes.requests.status import Intent
    from plimsoll.nodes.requests.status_updates import Blocking

INTENT_NOT_WRITTEN: Final = "IntentNotWritten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placements:
    """Where this loop placed pods."""

    existing: Mapping[str, Mapping[str, int]]
    """By node: pods by key."""
    added: tuple[tuple[str, int, GroupScaleUp], ...]
    """Provider group, nodes added, and the planned scale-up they belong to."""


@dataclass(slots=True, kw_only=True)
class RequestTransaction:
    """The requests of one loop that may add nodes, from plan to status update."""

    actuators: RequestActuators
    snapshot: Snapshot
    """With bookings on its nodes, and with the pods of `queue` among the pending pods."""
    queue: tuple[RequestView, ...] = ()
    """Requests that nodes may be added for, in serving order."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Target sizes of the groups when the loop began."""
    unfinished_rollbacks: tuple[Intent, ...] = ()
    """Intents of rollbacks that have begun and not finished."""
    booked_nodes: frozenset[str] = frozenset()
    policy: Policy
    run_planner: PlanRunner
    remaining_plan: ScaleUpPlan | None = None
    """The plan without failed requests, once the scale-up was executed; None: the whole plan holds."""
    unanswered: tuple[RequestView, ...] = ()
    """All requests that waited for an answer when the loop began."""
    part: RequestsPart = field(default_factory=RequestsPart)
    ended_early: Reason | None = None
    """Set if group sizes changed before planning: the loop ends, and the next one observes the cluster again."""
    _written: dict[str, RequestView] = field(default_factory=dict)
    """Requests after their last successful write in this loop."""
    _withdrawn: frozenset[str] = frozenset()
    """Names of requests whose intent could not be written; this loop does nothing for them."""
    _before: dict[str, dict[str, int]] = field(init=False)

    def __post_init__(self) -> None:
        self._before = {request.name: count_added_before(request, self.sizes) for request in self.queue}

    # ---- before the scale-up

    async def write_intents(self, plan: ScaleUpPlan) -> ScaleUpPlan:
        """Write the intents of a plan. Returns the plan without the requests whose intent could not be written."""
        begun = {name: attempt for name, attempt in self._build_attempts(plan).items() if attempt.intent is not None}
        if not begun:
            return plan
        written = await self.actuators.write([self._build_intent_update(attempt) for attempt in begun.values()])
        self._written |= {update.view.name: apply_update(update) for update in written if update.is_written}
        self.part = replace(
            self.part,
            updates=(*self.part.updates, *(update for update in written if update.is_written and update.accepts)),
        )
        self._withdrawn = frozenset(update.view.name for update in written if not update.is_written)
        why = Reason(code=INTENT_NOT_WRITTEN, message="what is about to be done for it could not be written down")
        left = remove_requests(plan, self._withdrawn, pending=self.snapshot.pending, why=why)
        bundle_of = {pending.key: pending.bundle for pending in self.snapshot.pending}
        return replace(left, scale_ups=tuple(_with_requests(scale_up, bundle_of) for scale_up in left.scale_ups))

    def _build_intent_update(self, attempt: Attempt) -> StatusUpdate:
        cost, bound = self._compute_costs_before(attempt.view)
        return self.actuators.status_updates.record_attempt(attempt, cost_before=cost, bound_before=bound)

    # ---- after it

    async def finish(self, scale_up: ScaleUpPart) -> RequestsPart:
        """Write the outcome of each request and roll back failed ones."""
        if not self.queue or not (scale_up.plan.scheduled or scale_up.plan.unschedulable):
            return self.part
        failed = self._find_failed(scale_up)
        self.remaining_plan = await self._without(failed, scale_up)
        answers = [update for update in self._build_answers(scale_up, failed) if not is_repeated_refusal(update)]
        returned = await begin_rollbacks(
            self.actuators, self._build_rollback_plans(scale_up, failed), self._build_failure_context(scale_up, failed)
        )
        written = await self.actuators.write(answers)
        self._written |= {
            update.view.name: apply_update(update) for update in (*written, *returned.updates) if update.is_written
        }
        self.part = replace(self.part, updates=(*self.part.updates, *written, *returned.updates))
        return self.part

    def list_current_views(self) -> tuple[RequestView, ...]:
        """The queue, each request after its last write."""
        return tuple(self._written.get(request.name, request) for request in self.queue)

    def find_placements(self, scale_up: ScaleUpPart) -> Placements:
        """The placements of all requests that did not fail."""
        plan = self.remaining_plan or scale_up.plan
        left = {planned.option.group: planned for planned in plan.scale_ups}
        done = [(result, left.get(result.scale_up.option.group)) for result in scale_up.results if result.is_done]
        return Placements(
            existing=plan.existing,
            added=tuple(
                (result.group, result.after - result.before, scale_up)
                for result, scale_up in done
                if scale_up is not None
            ),
        )

    async def _without(self, failed: Collection[str], scale_up: ScaleUpPart) -> ScaleUpPlan:
        """The plan for the requests that did not fail, on as few of the requested nodes as they need."""
        if not failed:
            return scale_up.plan
        why = Reason(code=INTENT_NOT_WRITTEN, message="its attempt failed")
        plan = remove_requests(scale_up.plan, failed, pending=self.snapshot.pending, why=why)
        attempts_of = self._build_attempts(scale_up.plan)
        left = {group for name in failed if name in attempts_of for group in attempts_of[name].groups}
        results = {result.scale_up.option.group for result in scale_up.results if may_have_scaled_up(result)}
        packed: ScaleUpPlan = await self.run_planner(
            lambda: repack(plan, self.snapshot, self.policy, left=left, grown=results)
        )
        return packed

    def _build_answers(self, scale_up: ScaleUpPart, failed: Collection[str]) -> list[StatusUpdate]:
        """Updates for all requests whose attempt ended without failure."""
        status_updates = self.actuators.status_updates
        attempts_of = self._build_attempts(self.remaining_plan or scale_up.plan)
        new_group_reasons = {
            result.group: _format_new_group_reason(result)
            for result in scale_up.results
            if not result.scale_up.option.exists
        }
        found: list[StatusUpdate] = []
        for view in self.list_current_views():
            if view.name in failed or view.name in self._withdrawn:
                continue
            attempt = attempts_of.get(view.name)
            if attempt is None:
                found.append(status_updates.mark_not_placed(view, scale_up.plan))
            elif not _is_open(attempt, scale_up.results):
                nodes = add_counts(
                    self._count_added_before(view), map_to_provider_groups(attempt.share.nodes, scale_up.results)
                )
                nodes = nodes or self._find_awaited_groups(view, scale_up)
                view_with_costs = self._with_costs(view, attempt)
                found.append(
                    status_updates.mark_requested(view_with_costs, nodes, new_group_reasons=new_group_reasons)
                    if nodes
                    else status_updates.mark_found(view)
                )
        return found

    def _find_awaited_groups(self, view: RequestView, scale_up: ScaleUpPart) -> dict[str, int]:
        """Groups with upcoming nodes that hold pods of the request, each with 0 nodes: others asked for them.

        Empty with `--provreq-provisioned-when=requested`: then upcoming nodes count as capacity.
        """
        if self.policy.requests.provisioned_when == "requested":
            return {}
        keys = {pending.key for pending in view.pods}
        plan = self.remaining_plan or scale_up.plan
        nodes = [node for node, pods in plan.existing.items() if not keys.isdisjoint(pods)]
        return {self.snapshot.group_of[node]: 0 for node in nodes if is_upcoming_node(node, self.snapshot)}

    # ---- what failed

    def _find_failed(self, scale_up: ScaleUpPart) -> dict[str, Blocking]:
        """What blocked each failed request, by name.

        A request with an intent that the plan no longer serves has failed too.
        """
        refused = {
            result.scale_up.option.group: f"{result.group}: {result.failure.message}"
            for result in scale_up.results
            if result.failure is not None and result.is_refused
        }
        attempts_of = self._build_attempts(scale_up.plan)
        failed: dict[str, Blocking] = {}
        for view in self.queue:
            if view.name in attempts_of:
                failed[view.name] = _find_refusals(view, scale_up.plan, refused)
            elif view.phase is Phase.INTENDED and view.name not in self._withdrawn:
                failed[view.name] = find_blocking(view, scale_up.plan)
        return {name: blocking for name, blocking in failed.items() if blocking}

    def _build_rollback_plans(self, scale_up: ScaleUpPart, failed: Collection[str]) -> list[RollbackPlan]:
        """The nodes to give back for failed requests: those only they needed, and idle ones of earlier loops."""
        if not failed:
            return []
        keys = {pending.key for pending in self.snapshot.pending if pending.bundle in failed}
        failing = [attempt for name, attempt in self._build_attempts(scale_up.plan).items() if name in failed]
        parts = find_surplus(scale_up.plan, self.remaining_plan or scale_up.plan, failing)
        idle = count_idle_nodes(self.snapshot, {*self.booked_nodes, *_find_used_nodes(scale_up.plan, keys)})
        found: list[RollbackPlan] = []
        for view in self.list_current_views():
            if view.name in failed:
                before = {
                    group: min(nodes, idle.get(group, 0)) for group, nodes in self._count_added_before(view).items()
                }
                idle = {group: nodes - before.get(group, 0) for group, nodes in idle.items()}
                nodes = add_counts(before, map_to_provider_groups(parts.get(view.name, {}), scale_up.results))
                found.append(
                    RollbackPlan(view=view, nodes=nodes, created=self._list_created_groups(view, scale_up.results))
                )
        return found

    def _list_created_groups(self, view: RequestView, results: tuple[ScaleUpResult, ...]) -> tuple[str, ...]:
        """Provider ids of groups created for the request that exist or may exist."""
        intent = view.details.intent
        if intent is None:
            return ()
        made = [
            result.group
            for result in results
            if result.scale_up.option.group in intent.created and _may_be_made(result)
        ]
        return tuple(dict.fromkeys((*(result for result in intent.created if result in self.sizes), *made)))

    def _build_failure_context(self, scale_up: ScaleUpPart, failed: Mapping[str, Blocking]) -> FailureContext:
        unknown = {result.scale_up.option.group for result in scale_up.results if result.is_unknown}
        attempts_of = self._build_attempts(scale_up.plan)
        return FailureContext(
            sizes={
                **self.sizes,
                **{result.group: result.after for result in scale_up.results if may_have_scaled_up(result)},
            },
            begun=self.unfinished_rollbacks,
            blocking=failed,
            uncertain={name for name in failed if name in attempts_of and unknown & attempts_of[name].groups},
        )

    # ---- inside

    def _build_attempts(self, plan: ScaleUpPlan) -> dict[str, Attempt]:
        return build_attempts(plan, self.queue, self.snapshot.pending)

    def _count_added_before(self, view: RequestView) -> Mapping[str, int]:
        """Nodes by group that earlier loops added for the request."""
        return self._before.get(view.name, {})

    def _compute_costs_before(self, view: RequestView) -> tuple[float, float]:
        """Cost and lower bound of those nodes: their part of the amounts written with the intent."""
        details = view.details
        if details.intent is None:
            return 0.0, 0.0
        prices = compute_group_prices(self.snapshot.groups, self.policy.overlay)
        part = compute_fraction_added(details.intent, self._count_added_before(view), prices)
        return _parse_number(details.plan_cost_per_hour) * part, _parse_number(details.cost_lower_bound_per_hour) * part

    def _with_costs(self, view: RequestView, attempt: Attempt) -> RequestView:
        """The request with the cost of its final plan: after other requests failed, it may need fewer nodes."""
        cost, bound = self._compute_costs_before(attempt.view)
        details = view.details.replace(
            plan_cost_per_hour=format_cost(cost + attempt.share.cost_per_hour),
            cost_lower_bound_per_hour=format_cost(bound + attempt.share.lower_bound_per_hour),
        )
        return replace(view, details=details)


def _with_requests(scale_up: GroupScaleUp, bundle_of: Mapping[str, str]) -> GroupScaleUp:
    """The scale-up, annotated with the requests it serves."""
    bundles = {bundle_of[key] for pattern in scale_up.patterns for key in pattern.pods}
    return replace(scale_up, requests=frozenset(bundles - {""}), for_others="" in bundles)


def _find_refusals(view: RequestView, plan: ScaleUpPlan, refused: Mapping[str, str]) -> Blocking:
    """By pod set that needed nodes of a rejected group: why the group was not scaled up."""
    found: dict[str, dict[str, None]] = {}
    for scale_up in plan.scale_ups:
        keys = (
            {key for pattern in scale_up.patterns for key in pattern.pods}
            if scale_up.option.group in refused
            else set()
        )
        for index, pods in enumerate(view.pods):
            if pods.key in keys:
                found.setdefault(str(index), {})[refused[scale_up.option.group]] = None
    return {index: list(found[index]) for index in sorted(found, key=int)}


def _is_open(attempt: Attempt, results: tuple[ScaleUpResult, ...]) -> bool:
    """Whether the outcome of its scale-up is still unknown."""
    mine = [result for result in results if result.scale_up.option.group in attempt.groups]
    return any(not result.is_done and result.held_back is None for result in mine)


def _find_used_nodes(plan: ScaleUpPlan, but: Collection[str]) -> set[str]:
    """Nodes on which the plan places pods other than `but`."""
    return {node for node, pods in plan.existing.items() if any(key not in but for key in pods)}


def _may_be_made(result: ScaleUpResult) -> bool:
    return result.created or (not result.scale_up.option.exists and result.is_unknown)


def _format_new_group_reason(result: ScaleUpResult) -> str:
    return "; ".join(map(str, result.scale_up.reason.because))


def _parse_number(text: str) -> float:
    return read_number(text) or 0.0
