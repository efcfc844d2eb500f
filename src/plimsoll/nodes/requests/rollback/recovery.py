"""Rolls back scale-ups of ProvisioningRequests: write the intent, call the provider, write the outcome.

The protocol is that of docs/design/nodes.md 3.5. `recover` runs before planning and finds what earlier loops or
processes left: unfinished rollbacks; attempts for requests that are over or cannot be served any more; capacity that
did not come or is gone (docs/design/nodes.md 3.4). `begin_rollbacks` handles attempts that failed in this loop. A
rollback that cannot finish stays written in the request, and every later loop continues it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from plimsoll.nodes.requests.booking.idle_nodes import count_idle_nodes, count_idle_upcoming_nodes
from plimsoll.nodes.requests.intents import RollbackPlan, build_rollback_intents, count_added_before
from plimsoll.nodes.requests.model import Phase
from plimsoll.nodes.requests.status import ConditionReason
from plimsoll.nodes.requests.status_updates import block_all_pod_sets, is_over
from plimsoll.operator.intents import recover_all

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plimsoll.nodes.requests.booking.booking import BookingResult
    from plimsoll.nodes.requests.booking.node_arrivals import MissingCapacity
    from plimsoll.nodes.requests.model import RequestView, StatusUpdate
    from plimsoll.nodes.requests.rollback.actuators import RequestActuators
    from plimsoll.nodes.requests.status import Intent
    from plimsoll.nodes.requests.status_updates import Blocking, StatusUpdates


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryContext:
    """What is known when earlier scale-ups are rolled back."""

    booked: BookingResult
    """The bookings without requests whose capacity is missing."""
    sizes: Mapping[str, int]
    queue: Sequence[RequestView] = ()
    missing: Sequence[MissingCapacity] = ()


def is_rolling_back(view: RequestView) -> bool:
    return view.details.intent is not None and view.details.intent.is_rolled_back


def is_stranded(view: RequestView) -> bool:
    """Whether a scale-up was begun for the request that will not be finished."""
    return view.phase is Phase.INTENDED and (is_over(view) or view.problem is not None)


async def recover(actuators: RequestActuators, context: RecoveryContext) -> RecoveryResult:
    """Roll back what can be rolled back now; the rest is tried again later."""
    going = [request for request in context.queue if is_rolling_back(request)]
    begun = [request.details.intent for request in going if request.details.intent is not None]
    revoked = await _revoke(actuators, context, begun)
    going += [apply_update(update) for update in revoked if update.is_written and update.details.intent is not None]
    begun = [request.details.intent for request in going if request.details.intent is not None]
    returns = _build_rollback_plans(context)
    message = {
        request.name: block_all_pod_sets(request, _explain_stranded(request))
        for request in context.queue
        if is_stranded(request)
    }
    message |= {missed.view.name: block_all_pod_sets(missed.view, missed.message) for missed in context.missing}
    first = await begin_rollbacks(
        actuators, returns, FailureContext(sizes=context.sizes, begun=tuple(begun), blocking=message)
    )
    return RecoveryResult(updates=revoked) + first + await continue_rollbacks(actuators, going)


async def _revoke(
    actuators: RequestActuators, context: RecoveryContext, begun: Sequence[Intent]
) -> tuple[StatusUpdate, ...]:
    """Revoke the capacity of requests that lost it; nodes that have not joined are not waited for."""
    held = [missed for missed in context.missing if missed.view.phase is Phase.HELD]
    idle = count_idle_upcoming_nodes(context.booked.snapshot, context.booked.nodes)
    returns = [
        RollbackPlan(view=missed.view, nodes=_take_idle(missed.view.details.node_groups, idle)) for missed in held
    ]
    intents = build_rollback_intents(
        [rollback for rollback in returns if not rollback.is_empty], context.sizes, begun=begun
    )
    updates = [
        actuators.status_updates.mark_revoked(
            missed.view,
            ConditionReason.NODES_LOST if missed.failure is None else ConditionReason.NODES_FAILED,
            missed.message,
            intent=intents.get(missed.view.name),
        )
        for missed in held
    ]
    return await actuators.write(updates)


def _build_rollback_plans(context: RecoveryContext) -> list[RollbackPlan]:
    """Everything added for them, as far as it is idle."""
    idle = count_idle_nodes(context.booked.snapshot, context.booked.nodes)
    waiting = [missed.view for missed in context.missing if missed.view.phase is Phase.ARRIVING]
    stranded = [
        request_view
        for request_view in context.queue
        if is_stranded(request_view) and not is_rolling_back(request_view)
    ]
    found = [
        RollbackPlan(view=request_view, nodes=_take_idle(request_view.details.node_groups, idle))
        for request_view in waiting
    ]
    for request in stranded:
        created = () if request.details.intent is None else request.details.intent.created
        made = tuple(group for group in created if group in context.sizes)
        found.append(
            RollbackPlan(view=request, nodes=_take_idle(count_added_before(request, context.sizes), idle), created=made)
        )
    return found


def _take_idle(nodes: Mapping[str, int], idle: dict[str, int]) -> dict[str, int]:
    """As many of the nodes as are idle, taken from `idle`."""
    found = {group: min(count, idle.get(group, 0)) for group, count in nodes.items()}
    for group, count in found.items():
        idle[group] = idle.get(group, 0) - count
    return found


def _explain_stranded(view: RequestView) -> str:
    return "it is over" if view.problem is None else view.problem[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryResult:
    """The updates written, the unfinished rollbacks, and whether anything changed."""

    updates: tuple[StatusUpdate, ...] = ()
    unfinished: tuple[Intent, ...] = ()
    did_something: bool = False

    @property
    def groups(self) -> frozenset[str]:
        """Groups that a rollback still has to lower; they must not be scaled up meanwhile."""
        return frozenset(group for intent in self.unfinished for group in intent.groups)

    def __add__(self, other: RecoveryResult) -> RecoveryResult:
        return RecoveryResult(
            updates=self.updates + other.updates,
            unfinished=self.unfinished + other.unfinished,
            did_something=self.did_something or other.did_something,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureContext:
    """What is known when failed attempts are rolled back."""

    sizes: Mapping[str, int]
    """Group sizes, including the scale-ups of this loop."""
    begun: tuple[Intent, ...] = ()
    """Unfinished rollbacks of other requests."""
    blocking: Mapping[str, Blocking] = field(default_factory=dict)
    """By request: what blocked its attempt."""
    uncertain: Collection[str] = ()
    """Names of requests for which nodes may still come: their rollback ends in a later loop."""


async def begin_rollbacks(
    actuators: RequestActuators, returns: Sequence[RollbackPlan], context: FailureContext
) -> RecoveryResult:
    """Begin the rollback of attempts that just failed; `returns` is in queue order."""
    status_updates = actuators.status_updates
    at_once = [rollback for rollback in returns if rollback.is_empty and rollback.view.name not in context.uncertain]
    ended = await actuators.write(
        [_end_attempt(status_updates, rollback.view, context.blocking[rollback.view.name]) for rollback in at_once]
    )
    left = [rollback for rollback in returns if rollback not in at_once]
    intents = build_rollback_intents(left, context.sizes, begun=context.begun)
    names = [rollback.view for rollback in left]
    written = await actuators.write(
        [
            status_updates.mark_rolling_back(request, intents[request.name], context.blocking[request.name])
            for request in names
        ]
    )
    going = [apply_update(update) for update in written if update.is_written]
    if going:
        await actuators.rollback_executor.refresh_provider()
    done = await continue_rollbacks(actuators, going, uncertain=context.uncertain)
    answered = {update.view.name for update in done.updates}
    unfinished = [update for update in written if update.view.name not in answered and not is_over(update.view)]
    return replace(done, updates=(*ended, *unfinished, *done.updates))


async def continue_rollbacks(
    actuators: RequestActuators, requests: Sequence[RequestView], *, uncertain: Collection[str] = ()
) -> RecoveryResult:
    """Continue rollbacks whose intent is written, the last request in the queue first."""
    finished: list[StatusUpdate] = []
    did_something = False

    async def roll_back(view: RequestView) -> bool:
        nonlocal did_something
        if not actuators.may_act:
            return False
        taken = await actuators.rollback_executor.roll_back(_build_intent(view), actuators.rollback_context)
        did_something |= taken.did_something
        is_done = taken.is_done and view.name not in uncertain
        if is_done:
            finished.append(actuators.status_updates.mark_rolled_back(view, taken.nodes))
        return is_done

    recovered = await recover_all(reversed(requests), roll_back)
    updates = await actuators.write(finished)
    unfinished = tuple(_build_intent(view) for view in recovered.unfinished)
    return RecoveryResult(updates=updates, unfinished=unfinished, did_something=did_something)


def _build_intent(view: RequestView) -> Intent:
    intent = view.details.intent
    assert intent is not None, "it says how far back to go"
    return intent


def _end_attempt(status_updates: StatusUpdates, view: RequestView, message: Blocking) -> StatusUpdate:
    return status_updates.mark_rolled_back(view, {}) if is_over(view) else status_updates.mark_not_found(view, message)


def apply_update(update: StatusUpdate) -> RequestView:
    """The request after the update is written."""
    return replace(update.view, conditions=update.conditions, details=update.details)
