"""Serves ProvisioningRequests in each loop: reads, refreshes, books, rolls back, checks, plans and updates them.

The main flow of docs/design/nodes.md 4.1. `RequestController.begin` does everything before the scale-up is planned and
returns a `RequestTransaction` for the rest. All state that matters is stored in the requests; the controller only
remembers booking hints, the requests it last saw and its own recent writes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.pod_traits import find_consumed_request
from plimsoll.nodes.requests.booking.booking import BookingHints, answer_checks, book
from plimsoll.nodes.requests.booking.consumption import find_consumer_warnings, has_served_pods
from plimsoll.nodes.requests.booking.freed_capacity import FreedCapacity, is_repeated_refusal
from plimsoll.nodes.requests.booking.node_arrivals import NodeArrivals, find_arrived
from plimsoll.nodes.requests.classes import ClassAnswers
from plimsoll.nodes.requests.lifecycle import RequestDeletion, find_time_updates, select_due
from plimsoll.nodes.requests.model import ClassKind, Phase, RequestsPart, StatusUpdate, UpdateKind
from plimsoll.nodes.requests.reader import IgnoredParametersLog, read_requests, sort_queue
from plimsoll.nodes.requests.rollback.actuators import RequestActuators
from plimsoll.nodes.requests.rollback.cancellation import CancellationTracker
from plimsoll.nodes.requests.rollback.recovery import RecoveryContext, is_rolling_back, is_stranded, recover
from plimsoll.nodes.requests.rollback.rollback import RollbackContext
from plimsoll.nodes.requests.status_updates import StatusUpdates
from plimsoll.nodes.requests.transaction import RequestTransaction

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from plimsoll.nodes.cluster_state.changes import Changes
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.results import ScaleUpPart
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.observing.listers import Stale
    from plimsoll.nodes.plan_runner import PlanRunner
    from plimsoll.nodes.planning.requests.check_queue import CheckResult
    from plimsoll.nodes.requests.booking.booking import BookingResult
    from plimsoll.nodes.requests.booking.node_arrivals import MissingCapacity
    from plimsoll.nodes.requests.classes import RegisteredClass
    from plimsoll.nodes.requests.lister import RequestLister
    from plimsoll.nodes.requests.model import ObservedRequests, RequestView
    from plimsoll.nodes.requests.rollback.rollback import RollbackExecutor
    from plimsoll.nodes.requests.status_writer import RequestStatusWriter
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.codec.decode_problems import BadObject
    from plimsoll.operator.pause import ActionGuard

SCALE_UP_ROLLED_BACK: Final = "GrowthReturned"
_ROLLING_BACK: Final = "a scale-up for ProvisioningRequests is being rolled back"
_ANSWERS: Final = (UpdateKind.PROVISIONED, UpdateKind.FAILED)
_UNANSWERED: Final = (Phase.DUE, Phase.WAITING, Phase.INTENDED, Phase.ARRIVING)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """What one loop knows about the cluster when it serves requests."""

    snapshot: Snapshot
    nodes: Sequence[Node]
    """The Node objects of the API server."""
    unreadable_nodes: Sequence[BadObject] = ()
    """Node objects that cannot be decoded."""
    sizes: Mapping[str, int]
    """Target sizes by node group."""
    policy: Policy
    now: datetime
    guard: ActionGuard
    consuming: Sequence[Pod] = ()
    """Pods without a node that consume a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDependencies:
    """The parts of a request controller."""

    lister: RequestLister
    status_writer: RequestStatusWriter
    rollback_executor: RollbackExecutor
    run_planner: PlanRunner
    classes: Mapping[str, RegisteredClass] = field(default_factory=dict)
    """Registered classes of other packages, by name."""


class RequestController:
    """Serves the requests of one autoscaler; one transaction at a time."""

    def __init__(self, tools: RequestDependencies) -> None:
        self._tools = tools
        self._arrivals = NodeArrivals()
        self._cancelling = CancellationTracker(tools.rollback_executor)
        self._hints = BookingHints()
        self._ignored = IgnoredParametersLog()
        self._freed = FreedCapacity()

    async def wait_until_synced(self) -> None:
        """Return once all kinds that requests are read from have been listed."""
        await self._tools.lister.wait_until_synced()

    def find_stale(self) -> Stale | None:
        """The kind whose cache is too old to act on; None: all are current."""
        return self._tools.lister.find_stale()

    def record_changes(self, changes: Changes) -> None:
        """Record what became of earlier scale-ups; called in every loop that read the cloud provider."""
        self._arrivals.record(changes)

    def find_served_pods(self, policy: Policy) -> frozenset[str]:
        """NAMESPACE/NAME of requests whose pods are served like any pending pods, because no booking is left."""
        listed = self._tools.lister.list_requests()
        return frozenset(
            f"{request.metadata.namespace}/{request.metadata.name}"
            for request in self._tools.status_writer.replace_stale(listed)
            if has_served_pods(request, instance=policy.requests.instance, registered=self._tools.classes)
        )

    async def begin(self, context: RequestContext) -> RequestTransaction:
        """Do everything that precedes the planning of the scale-up."""
        actuators = self._build_actuators(context)
        observed = self._read(context)
        refreshed, left = await self._refresh(observed, context, actuators)
        if self._cancelling.has_cancelled(left.all):
            self._hints = self._hints.without_upcoming(context.snapshot)
        booked, booking_updates, missed = await self._book_held(left.held, context, actuators)
        self._cancelling.observe(left.all, booked, context.sizes)
        rollback_context = RollbackContext(
            nodes=context.nodes,
            unreadable=frozenset(
                word for bad in context.unreadable_nodes for word in (bad.name, bad.provider_id) if word
            ),
            booked_nodes=booked.nodes,
        )
        actuators = replace(actuators, rollback_context=rollback_context)
        going = RecoveryContext(booked=booked, sizes=context.sizes, queue=left.queue, missing=missed)
        returned = await recover(actuators, going)
        retried = self._freed.select(left.others, booked.snapshot)
        transaction = RequestTransaction(
            actuators=actuators,
            snapshot=_without_groups(booked.snapshot, returned.groups),
            sizes=context.sizes,
            policy=context.policy,
            run_planner=self._tools.run_planner,
            unfinished_rollbacks=returned.unfinished,
            booked_nodes=booked.nodes,
            unanswered=tuple(request for request in observed.all if request.phase in _UNANSWERED),
            part=replace(
                _build_part(observed, (*refreshed, *booking_updates, *returned.updates), booked),
                warnings=find_consumer_warnings(context.consuming, observed, unbookable=booked.unbookable),
            ),
        )
        if returned.did_something:
            message = (
                "a scale-up for ProvisioningRequests was rolled back; the next loop iteration starts from the new sizes"
            )
            self._freed.note_updates(transaction.part.updates)
            return replace(transaction, ended_early=Reason(code=SCALE_UP_ROLLED_BACK, message=message))
        waiting = [request for request in left.queue if not is_rolling_back(request) and not is_stranded(request)]
        # Requests whose back-off has ended come first, so that frequent changes do not keep them waiting.
        due = select_due([*waiting, *sort_queue(retried, left.priorities)], context.policy)
        self._freed.note_tried(due)
        return await self._queue_requests(transaction, sort_queue(due, left.priorities), context)

    async def finish(self, transaction: RequestTransaction, scale_up: ScaleUpPart) -> RequestsPart:
        """Do everything that follows the execution of the scale-up."""
        part = await transaction.finish(scale_up)
        places = transaction.find_placements(scale_up)
        self._hints = self._hints.with_plan(
            transaction.list_current_views(),
            existing=places.existing,
            scaled_up=places.added,
            group_of=transaction.snapshot.group_of,
        )
        self._freed.note_updates(part.updates)
        if transaction.actuators.may_act:
            taken = {*transaction.booked_nodes, *places.existing}
            await self._cancelling.release(transaction.snapshot, taken, transaction.actuators.rollback_context)
        return replace(part, waiting=_count_waiting(transaction.unanswered, part.updates))

    # ---- steps

    def _build_actuators(self, context: RequestContext) -> RequestActuators:
        return RequestActuators(
            status_writer=self._tools.status_writer,
            rollback_executor=self._tools.rollback_executor,
            status_updates=StatusUpdates(context.now, context.policy),
            may_act=context.guard.reason is None,
        )

    def _read(self, context: RequestContext) -> ObservedRequests:
        listed = self._tools.lister.read()
        fresh = replace(listed, requests=self._tools.status_writer.replace_stale(listed.requests))
        observed = read_requests(fresh, context.policy, context.now)
        self._ignored.log_new(observed.all)
        return observed

    async def _refresh(
        self, observed: ObservedRequests, context: RequestContext, actuators: RequestActuators
    ) -> tuple[tuple[StatusUpdate, ...], ObservedRequests]:
        """Write updates due to the passing of time (expired, booking ended, old enough to delete).

        Also return the other requests.
        """
        found = self._find_time_updates(observed, context)
        written = await actuators.write([update for update in found if isinstance(update, StatusUpdate)])
        cleared = [await self._delete(update, actuators) for update in found if isinstance(update, RequestDeletion)]
        names = {update.view.name for update in found}
        queue = tuple(request for request in observed.queue if request.name not in names)
        held = tuple(request for request in observed.held if request.name not in names)
        others = tuple(request for request in observed.others if request.name not in names)
        return (*written, *cleared), replace(observed, queue=queue, held=held, others=others)

    def _find_time_updates(
        self, observed: ObservedRequests, context: RequestContext
    ) -> tuple[StatusUpdate | RequestDeletion, ...]:
        """The updates due; a request is not deleted while pods name it, because they would be ignored without it."""
        found = find_time_updates(observed, context.policy, context.now)
        if not any(isinstance(update, RequestDeletion) for update in found):
            return found
        placed = (pod.pod for state in context.snapshot.view.nodes.values() for pod in state.pods.values())
        pending = (pods.pod for pods in context.snapshot.pending)
        consumed = {find_consumed_request(pod) for pod in (*placed, *pending, *context.consuming)}
        return tuple(update for update in found if isinstance(update, StatusUpdate) or update.view.name not in consumed)

    async def _delete(self, deletion: RequestDeletion, actuators: RequestActuators) -> StatusUpdate:
        return StatusUpdate(
            view=deletion.view,
            kind=UpdateKind.DELETED,
            reason=deletion.reason,
            conditions=deletion.view.conditions,
            details=deletion.view.details,
            is_written=actuators.may_act and await self._tools.status_writer.delete(deletion.view),
        )

    async def _book_held(
        self, held: Sequence[RequestView], context: RequestContext, actuators: RequestActuators
    ) -> tuple[BookingResult, tuple[StatusUpdate, ...], list[MissingCapacity]]:
        """Book the capacity of requests that have it.

        Requests that consumed or received their capacity are updated; those whose capacity is missing are not booked.
        """
        booked = await self._book(context, held)
        # A node that cannot be read may be the one that seems to be lost.
        missed = [
            missing
            for missing in self._arrivals.find_missing(held, booked, context.now)
            if missing.failure is not None or not context.unreadable_nodes
        ]
        missing_names = {missing.view.name for missing in missed}
        if missing_names:
            held = [request for request in held if request.name not in missing_names]
            booked = await self._book(context, held)
        status_updates = actuators.status_updates
        updates = [status_updates.mark_consumed(request) for request in held if request.name in booked.consumed]
        updates += [
            status_updates.mark_arrived(request)
            for request in find_arrived(held, booked)
            if request.name not in booked.consumed
        ]
        return booked, await actuators.write(updates), missed

    async def _book(self, context: RequestContext, held: Sequence[RequestView]) -> BookingResult:
        booked: BookingResult = await self._tools.run_planner(
            lambda: book(context.snapshot, held, self._hints, context.policy)
        )
        self._hints = booked.hints
        return booked

    async def _queue_requests(
        self, transaction: RequestTransaction, due: Sequence[RequestView], context: RequestContext
    ) -> RequestTransaction:
        """Answer checks; add the pods of requests that may add nodes to the pods to plan for."""
        actuators, status_updates = transaction.actuators, transaction.actuators.status_updates
        updates = [
            status_updates.mark_failed(request, *request.problem) for request in due if request.problem is not None
        ]
        by_classes: ClassAnswers = await self._tools.run_planner(
            lambda: ClassAnswers(self._tools.classes, status_updates).ask(
                (request for request in due if request.problem is None), transaction.snapshot, context.now
            )
        )
        updates += by_classes.updates
        remaining = by_classes.remaining
        answer: tuple[Snapshot, Mapping[str, CheckResult]] = await self._tools.run_planner(
            lambda: answer_checks(transaction.snapshot, remaining, context.policy)
        )
        snapshot, checked = answer
        updates += [
            status_updates.answer_check(request, checked[request.name])
            for request in remaining
            if request.name in checked
        ]
        written = await actuators.write([update for update in updates if not is_repeated_refusal(update)])
        queue = tuple(request for request in remaining if request.class_kind is not ClassKind.CHECK)
        pending = (replace(pods, rank=_rank(request)) for request in queue for pods in request.pods)
        return replace(
            transaction,
            snapshot=replace(snapshot, pending=(*snapshot.pending, *pending)),
            queue=queue,
            part=replace(transaction.part, updates=(*transaction.part.updates, *written)),
        )


def _rank(view: RequestView) -> int:
    """Requests with an intent are planned before all others: their nodes are requested already."""
    return -1 if view.phase is Phase.INTENDED else 0


def _without_groups(snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    """Exclude groups from scale-up while a rollback lowers them."""
    if not names:
        return snapshot
    groups = (replace(group, not_usable=_ROLLING_BACK) if group.id in names else group for group in snapshot.groups)
    return replace(snapshot, groups=tuple(groups))


def _build_part(observed: ObservedRequests, updates: tuple[StatusUpdate, ...], booked: BookingResult) -> RequestsPart:
    return RequestsPart(
        updates=updates,
        known=observed.known,
        views=observed.all,
        waiting=_count_waiting([request for request in observed.all if request.phase in _UNANSWERED], updates),
        booked=booked.by_request,
        unbookable=booked.unbookable,
    )


def _count_waiting(unanswered: Iterable[RequestView], updates: Iterable[StatusUpdate]) -> dict[str, int]:
    """Requests without an answer, counted by class."""
    answered = {update.view.name for update in updates if update.is_written and update.kind in _ANSWERS}
    return Counter(
        request.request.spec.provisioning_class_name for request in unanswered if request.name not in answered
    )
