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
from plimsoll.nodes.model.prices import group_prices
from plimsoll.nodes.planning.requests.replan import repack, without_requests
from plimsoll.nodes.requests.booking.idle_nodes import count_idle_nodes
from plimsoll.nodes.requests.intents import (
    RollbackPlan,
    add_counts,
    build_attempts,
    count_added_before,
    find_surplus,
    fraction_added,
    map_to_provider_groups,
    may_have_scaled_up,
)
from plimsoll.nodes.requests.model import Phase, RequestsPart
from plimsoll.nodes.requests.rollback.recovery import FailureContext, begin_rollbacks, view_after
from plimsoll.nodes.requests.status_updates import find_blocking, format_cost

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.plan_runner import PlanRunner
    from plimsoll.nodes.model.results import ScaleUpPart, ScaleUpResult
    from plimsoll.nodes.model.scale_up_plan import GroupScaleUp, ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.requests.intents import Attempt
    from plimsoll.nodes.requests.model import RequestView, StatusUpdate
    from plimsoll.nodes.requests.rollback.actuators import RequestActuators
    from plimsoll.nodes.requests.status import Intent
    from plimsoll.nodes.requests.status_updates import Blocking

INTENT_NOT_WRITTEN: Final = "IntentNotWritten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placements:
    """Where a turn wants pods to run."""

    existing: Mapping[str, Mapping[str, int]]
    """By node, pods by key."""
    added: tuple[tuple[str, int, GroupScaleUp], ...]
    """Group, nodes it got, and the growth that they are of."""


@dataclass(slots=True, kw_only=True)
class RequestTransaction:
    """Of one turn."""

    actuators: RequestActuators
    snapshot: Snapshot
    """With bookings on its nodes, and with the pods of `queue` among those that are pending."""
    queue: tuple[RequestView, ...] = ()
    """Requests that nodes may be added for, as they are served."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """The groups', when the turn began."""
    unfinished_rollbacks: tuple[Intent, ...] = ()
    """Of attempts that are on their way back and not there yet."""
    booked_nodes: frozenset[str] = frozenset()
    policy: Policy
    run_planner: PlanRunner
    remaining_plan: ScaleUpPlan | None = None
    """The plan as far as it holds, once it was carried out; None: it holds as it is."""
    unanswered: tuple[RequestView, ...] = ()
    """All that waited for an answer when the turn began."""
    part: RequestsPart = field(default_factory=RequestsPart)
    ended_early: Reason | None = None
    """Sizes of groups were changed before anything was planned: the next turn looks anew."""
    _written: dict[str, RequestView] = field(default_factory=dict)
    """Requests as the server has them once they were written to."""
    _withdrawn: frozenset[str] = frozenset()
    """Those that this turn does nothing for: what it would do could not be written down."""
    _before: dict[str, dict[str, int]] = field(init=False)

    def __post_init__(self) -> None:
        self._before = {request.name: count_added_before(request, self.sizes) for request in self.queue}

    # ---- before the growth

    async def write_intents(self, plan: ScaleUpPlan) -> ScaleUpPlan:
        """Write down what is about to be done; the plan without those for whom that could not be written."""
        begun = {name: attempt for name, attempt in self._attempts(plan).items() if attempt.intent is not None}
        if not begun:
            return plan
        written = await self.actuators.write([self._begun(attempt) for attempt in begun.values()])
        self._written |= {update.view.name: view_after(update) for update in written if update.is_written}
        self.part = replace(
            self.part,
            updates=(*self.part.updates, *(update for update in written if update.is_written and update.accepts)),
        )
        self._withdrawn = frozenset(update.view.name for update in written if not update.is_written)
        why = Reason(code=INTENT_NOT_WRITTEN, message="what is about to be done for it could not be written down")
        left = without_requests(plan, self._withdrawn, pending=self.snapshot.pending, why=why)
        bundle_of = {pending.key: pending.bundle for pending in self.snapshot.pending}
        return replace(left, scale_ups=tuple(_with_requests(scale_up, bundle_of) for scale_up in left.scale_ups))

    def _begun(self, attempt: Attempt) -> StatusUpdate:
        cost, bound = self._costs_before(attempt.view)
        return self.actuators.status_updates.begun(attempt, cost_before=cost, bound_before=bound)

    # ---- after it

    async def finish(self, scale_up: ScaleUpPart) -> RequestsPart:
        """Answer, and take back what failed."""
        if not self.queue or not (scale_up.plan.scheduled or scale_up.plan.unschedulable):
            return self.part
        failed = self._failed(scale_up)
        self.remaining_plan = await self._without(failed, scale_up)
        answers = self._answers(scale_up, failed)
        returned = await begin_rollbacks(
            self.actuators, self._returns(scale_up, failed), self._occasion(scale_up, failed)
        )
        written = await self.actuators.write(answers)
        self._written |= {
            update.view.name: view_after(update) for update in (*written, *returned.updates) if update.is_written
        }
        self.part = replace(self.part, updates=(*self.part.updates, *written, *returned.updates))
        return self.part

    def current_views(self) -> tuple[RequestView, ...]:
        """The line, each request as it was written last."""
        return tuple(self._written.get(request.name, request) for request in self.queue)

    def find_placements(self, scale_up: ScaleUpPart) -> Placements:
        """Where those are to run whom this turn found a place for, and did not fail."""
        plan = self.remaining_plan or scale_up.plan
        left = {planned.option.group: planned for planned in plan.scale_ups}
        done = [(result, left.get(result.scale_up.option.group)) for result in scale_up.results if result.is_done]
        return Placements(
            existing=plan.existing,
            added=tuple(
                (result.group, result.after - result.before, growth) for result, growth in done if growth is not None
            ),
        )

    async def _without(self, failed: Collection[str], scale_up: ScaleUpPart) -> ScaleUpPlan:
        """The plan for those that have not failed, on as few of the nodes that were asked for as they need."""
        if not failed:
            return scale_up.plan
        why = Reason(code=INTENT_NOT_WRITTEN, message="its attempt failed")
        plan = without_requests(scale_up.plan, failed, pending=self.snapshot.pending, why=why)
        attempts_of = self._attempts(scale_up.plan)
        left = {group for name in failed if name in attempts_of for group in attempts_of[name].groups}
        results = {result.scale_up.option.group for result in scale_up.results if may_have_scaled_up(result)}
        packed: ScaleUpPlan = await self.run_planner(
            lambda: repack(plan, self.snapshot, self.policy, left=left, grown=results)
        )
        return packed

    def _answers(self, scale_up: ScaleUpPart, failed: Collection[str]) -> list[StatusUpdate]:
        """To everybody whose attempt has come to an end and did not fail."""
        status_updates = self.actuators.status_updates
        attempts_of = self._attempts(self.remaining_plan or scale_up.plan)
        new_group_reasons = {
            result.group: _new_group_reason(result) for result in scale_up.results if not result.scale_up.option.exists
        }
        found: list[StatusUpdate] = []
        for view in self.current_views():
            if view.name in failed or view.name in self._withdrawn:
                continue
            attempt = attempts_of.get(view.name)
            if attempt is None:
                found.append(status_updates.not_placed(view, scale_up.plan))
            elif not _is_open(attempt, scale_up.results):
                nodes = add_counts(
                    self._grown_before(view), map_to_provider_groups(attempt.share.nodes, scale_up.results)
                )
                view_with_costs = self._with_costs(view, attempt)
                found.append(
                    status_updates.requested(view_with_costs, nodes, new_group_reasons=new_group_reasons)
                    if nodes
                    else status_updates.found(view)
                )
        return found

    # ---- what failed

    def _failed(self, scale_up: ScaleUpPart) -> dict[str, Blocking]:
        """By name, why. Who was begun with and has no place in the plan any more has failed too."""
        refused = {
            result.scale_up.option.group: f"{result.group}: {result.failure.message}"
            for result in scale_up.results
            if result.failure is not None and result.is_refused
        }
        attempts_of = self._attempts(scale_up.plan)
        failed: dict[str, Blocking] = {}
        for view in self.queue:
            if view.name in attempts_of:
                failed[view.name] = _refused_to(view, scale_up.plan, refused)
            elif view.phase is Phase.INTENDED and view.name not in self._withdrawn:
                failed[view.name] = find_blocking(view, scale_up.plan)
        return {name: blocking for name, blocking in failed.items() if blocking}

    def _returns(self, scale_up: ScaleUpPart, failed: Collection[str]) -> list[RollbackPlan]:
        """What only they wanted of the growth of this turn, and what earlier turns added for them, if it is idle."""
        if not failed:
            return []
        keys = {pending.key for pending in self.snapshot.pending if pending.bundle in failed}
        failing = [attempt for name, attempt in self._attempts(scale_up.plan).items() if name in failed]
        parts = find_surplus(scale_up.plan, self.remaining_plan or scale_up.plan, failing)
        idle = count_idle_nodes(self.snapshot, {*self.booked_nodes, *_used(scale_up.plan, keys)})
        found: list[RollbackPlan] = []
        for view in self.current_views():
            if view.name in failed:
                before = {group: min(nodes, idle.get(group, 0)) for group, nodes in self._grown_before(view).items()}
                idle = {group: nodes - before.get(group, 0) for group, nodes in idle.items()}
                nodes = add_counts(before, map_to_provider_groups(parts.get(view.name, {}), scale_up.results))
                found.append(RollbackPlan(view=view, nodes=nodes, created=self._created(view, scale_up.results)))
        return found

    def _created(self, view: RequestView, results: tuple[ScaleUpResult, ...]) -> tuple[str, ...]:
        """Groups made for it that are there, or may be, by the id the cloud gave them."""
        intent = view.details.intent
        if intent is None:
            return ()
        made = [
            result.group
            for result in results
            if result.scale_up.option.group in intent.created and _may_be_made(result)
        ]
        return tuple(dict.fromkeys((*(one for one in intent.created if one in self.sizes), *made)))

    def _occasion(self, scale_up: ScaleUpPart, failed: Mapping[str, Blocking]) -> FailureContext:
        unknown = {result.scale_up.option.group for result in scale_up.results if result.is_unknown}
        attempts_of = self._attempts(scale_up.plan)
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

    def _attempts(self, plan: ScaleUpPlan) -> dict[str, Attempt]:
        return build_attempts(plan, self.queue, self.snapshot.pending)

    def _grown_before(self, view: RequestView) -> Mapping[str, int]:
        """What earlier turns added for it."""
        return self._before.get(view.name, {})

    def _costs_before(self, view: RequestView) -> tuple[float, float]:
        """What that costs, and its bound: of what was written for all that was begun, the part that came of it."""
        details = view.details
        if details.intent is None:
            return 0.0, 0.0
        prices = group_prices(self.snapshot.groups, self.policy.overlay)
        part = fraction_added(details.intent, self._grown_before(view), prices)
        return _number(details.plan_cost_per_hour) * part, _number(details.cost_lower_bound_per_hour) * part

    def _with_costs(self, view: RequestView, attempt: Attempt) -> RequestView:
        """Of what came of it: since its intent was written, others may have failed, and it may do with less."""
        cost, bound = self._costs_before(attempt.view)
        details = view.details.replace(
            plan_cost_per_hour=format_cost(cost + attempt.share.cost_per_hour),
            cost_lower_bound_per_hour=format_cost(bound + attempt.share.lower_bound_per_hour),
        )
        return replace(view, details=details)


def _with_requests(growth: GroupScaleUp, bundle_of: Mapping[str, str]) -> GroupScaleUp:
    """It says whom it is for."""
    bundles = {bundle_of[key] for pattern in growth.patterns for key in pattern.pods}
    return replace(growth, requests=frozenset(bundles - {""}), for_others="" in bundles)


def _refused_to(view: RequestView, plan: ScaleUpPlan, refused: Mapping[str, str]) -> Blocking:
    """Of its pod sets those that wanted nodes of a group that could not grow."""
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
    """Whether nobody knows yet what became of its growth."""
    mine = [result for result in results if result.scale_up.option.group in attempt.groups]
    return any(not result.is_done and result.held_back is None for result in mine)


def _used(plan: ScaleUpPlan, but: Collection[str]) -> set[str]:
    """Nodes on which the plan found room for somebody else."""
    return {node for node, pods in plan.existing.items() if any(key not in but for key in pods)}


def _may_be_made(one: ScaleUpResult) -> bool:
    return one.created or (not one.scale_up.option.exists and one.is_unknown)


def _new_group_reason(one: ScaleUpResult) -> str:
    return "; ".join(map(str, one.scale_up.reason.because))


def _number(text: str) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
