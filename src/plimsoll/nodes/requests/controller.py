"""Where ProvisioningRequests are served, turn by turn: read, refreshed, taken back, booked, checked, planned, answered.

The main flow of specs/nodes.md 4.1. `RequestController.begin` does everything that comes before growth is planned and
gives a `RequestTransaction`, which does the rest. All that matters is written in the requests themselves; what a desk
remembers only says where to look first, what was seen last, and what its own writes were answered.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.nodes.requests.booking.booking import BookingHints, answer_checks, book
from plimsoll.nodes.requests.booking.consumption import find_consumer_warnings
from plimsoll.nodes.requests.booking.node_arrivals import NodeArrivals, find_arrived
from plimsoll.nodes.requests.classes import ClassAnswers
from plimsoll.nodes.requests.lifecycle import RequestDeletion, find_time_updates, select_due
from plimsoll.nodes.requests.model import ClassKind, Phase, RequestsPart, StatusUpdate, UpdateKind
from plimsoll.nodes.requests.reader import IgnoredParametersLog, read_requests
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
    from plimsoll.nodes.model.plan_runner import PlanRunner
    from plimsoll.nodes.model.results import ScaleUpPart
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.observing.listers import Stale
    from plimsoll.nodes.planning.requests.check_queue import CheckResult
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.nodes.requests.booking.booking import BookingResult
    from plimsoll.nodes.requests.booking.node_arrivals import MissingCapacity
    from plimsoll.nodes.requests.classes import RegisteredClass
    from plimsoll.nodes.requests.lister import RequestLister
    from plimsoll.nodes.requests.model import ObservedRequests, RequestView
    from plimsoll.nodes.requests.rollback.rollback import RollbackExecutor
    from plimsoll.nodes.requests.status_writer import RequestStatusWriter
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.operator.pause import ActionGuard

SCALE_UP_ROLLED_BACK: Final = "GrowthReturned"
_RETURNING: Final = "growth of requests is being taken back"
_ANSWERS: Final = (UpdateKind.PROVISIONED, UpdateKind.FAILED)
_UNANSWERED: Final = (Phase.DUE, Phase.WAITING, Phase.INTENDED, Phase.ARRIVING)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """What a turn knows when it comes to requests."""

    snapshot: Snapshot
    nodes: Sequence[Node]
    """Those of the API server."""
    sizes: Mapping[str, int]
    """Of groups: what they are to have."""
    policy: Policy
    now: datetime
    guard: ActionGuard
    consuming: Sequence[Pod] = ()
    """Pods without a node that say they consume a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDependencies:
    """What a desk is made of."""

    lister: RequestLister
    status_writer: RequestStatusWriter
    rollback_executor: RollbackExecutor
    provider: Provider
    run_planner: PlanRunner
    classes: Mapping[str, RegisteredClass] = field(default_factory=dict)
    """Of other packages, by name."""


class RequestController:
    """One a controller; one session at a time."""

    def __init__(self, tools: RequestDependencies) -> None:
        self._tools = tools
        self._arrivals = NodeArrivals()
        self._cancelling = CancellationTracker(tools.provider)
        self._hints = BookingHints()
        self._ignored = IgnoredParametersLog()

    async def synced(self) -> None:
        """Return once everything that requests are read from has been seen."""
        await self._tools.lister.synced()

    def stale(self) -> Stale | None:
        """What of it is not known any more."""
        return self._tools.lister.stale()

    def record_changes(self, changes: Changes) -> None:
        """What became of growth; every turn that looked at the cloud."""
        self._arrivals.record(changes)

    async def begin(self, at: RequestContext) -> RequestTransaction:
        """All that comes before growth is planned."""
        counter = self._counter(at)
        seen = self._read(at)
        refreshed, left = await self._refreshed(seen, at, counter)
        if self._cancelling.has_deleted(seen.all):
            self._hints = self._hints.without_upcoming(at.snapshot)
        booked, kept, missed = await self._booked(left.held, at, counter)
        self._cancelling.observe(seen.all, booked, at.sizes)
        counter = replace(counter, rollback_context=RollbackContext(nodes=at.nodes, booked_nodes=booked.nodes))
        going = RecoveryContext(booked=booked, sizes=at.sizes, queue=left.queue, missing=missed)
        returned = await recover(counter, going)
        session = RequestTransaction(
            actuators=counter,
            snapshot=_but_groups(booked.snapshot, returned.groups),
            sizes=at.sizes,
            policy=at.policy,
            run_planner=self._tools.run_planner,
            unfinished_rollbacks=returned.unfinished,
            booked_nodes=booked.nodes,
            unanswered=tuple(request for request in seen.all if request.phase in _UNANSWERED),
            part=replace(
                _part(seen, (*refreshed, *kept, *returned.updates), booked),
                warnings=find_consumer_warnings(at.consuming, seen, unbookable=booked.unbookable),
            ),
        )
        if returned.did_something:
            told = "growth of requests was taken back; the next turn looks anew"
            return replace(session, ended_early=Reason(code=SCALE_UP_ROLLED_BACK, message=told))
        waiting = [request for request in left.queue if not is_rolling_back(request) and not is_stranded(request)]
        return await self._lined_up(session, select_due(waiting, at.policy), at)

    async def finish(self, session: RequestTransaction, up: ScaleUpPart) -> RequestsPart:
        """All that comes after growth was asked for."""
        part = await session.finish(up)
        places = session.find_placements(up)
        self._hints = self._hints.with_plan(
            session.current_views(), existing=places.existing, grown=places.added, group_of=session.snapshot.group_of
        )
        if session.actuators.may_act:
            await self._cancelling.release(session.snapshot, {*session.booked_nodes, *places.existing})
        return replace(part, waiting=_waiting(session.unanswered, part.updates))

    # ---- steps

    def _counter(self, at: RequestContext) -> RequestActuators:
        return RequestActuators(
            status_writer=self._tools.status_writer,
            rollback_executor=self._tools.rollback_executor,
            status_updates=StatusUpdates(at.now, at.policy),
            may_act=at.guard.reason is None,
        )

    def _read(self, at: RequestContext) -> ObservedRequests:
        listed = self._tools.lister.read()
        fresh = replace(listed, requests=self._tools.status_writer.freshest(listed.requests))
        seen = read_requests(fresh, at.policy, at.now)
        self._ignored.log_new(seen.all)
        return seen

    async def _refreshed(
        self, seen: ObservedRequests, at: RequestContext, counter: RequestActuators
    ) -> tuple[tuple[StatusUpdate, ...], ObservedRequests]:
        """What time did (expired, not booked any more, old enough to be cleared away), and those it did not touch."""
        found = find_time_updates(seen, at.policy, at.now)
        said = await counter.write([one for one in found if isinstance(one, StatusUpdate)])
        cleared = [await self._deleted(one, counter) for one in found if isinstance(one, RequestDeletion)]
        names = {one.view.name for one in found}
        line = tuple(request for request in seen.queue if request.name not in names)
        held = tuple(request for request in seen.held if request.name not in names)
        return (*said, *cleared), replace(seen, queue=line, held=held)

    async def _deleted(self, one: RequestDeletion, counter: RequestActuators) -> StatusUpdate:
        return StatusUpdate(
            view=one.view,
            kind=UpdateKind.DELETED,
            reason=one.reason,
            conditions=one.view.conditions,
            details=one.view.details,
            is_written=counter.may_act and await self._tools.status_writer.delete(one.view),
        )

    async def _booked(
        self, held: Sequence[RequestView], at: RequestContext, counter: RequestActuators
    ) -> tuple[BookingResult, tuple[StatusUpdate, ...], list[MissingCapacity]]:
        """Capacity that was given is kept. Who has consumed or got it is told; who misses it is not booked."""
        booked = await self._book(at, held)
        missed = self._arrivals.find_missing(held, booked, at.now)
        gone = {one.view.name for one in missed}
        if gone:
            held = [request for request in held if request.name not in gone]
            booked = await self._book(at, held)
        answering = counter.status_updates
        verdicts = [answering.consumed(request) for request in held if request.name in booked.consumed]
        verdicts += [
            answering.arrived(request) for request in find_arrived(held, booked) if request.name not in booked.consumed
        ]
        return booked, await counter.write(verdicts), missed

    async def _book(self, at: RequestContext, held: Sequence[RequestView]) -> BookingResult:
        booked: BookingResult = await self._tools.run_planner(lambda: book(at.snapshot, held, self._hints, at.policy))
        self._hints = booked.hints
        return booked

    async def _lined_up(
        self, session: RequestTransaction, due: Sequence[RequestView], at: RequestContext
    ) -> RequestTransaction:
        """Checks are answered; the pods of those that nodes may be added for are planned with all others."""
        counter, answering = session.actuators, session.actuators.status_updates
        verdicts = [answering.failed(request, *request.problem) for request in due if request.problem is not None]
        by_classes: ClassAnswers = await self._tools.run_planner(
            lambda: ClassAnswers(self._tools.classes, answering).ask(
                (request for request in due if request.problem is None), session.snapshot, at.now
            )
        )
        verdicts += by_classes.updates
        asking = by_classes.remaining
        checks: tuple[Snapshot, Mapping[str, CheckResult]] = await self._tools.run_planner(
            lambda: answer_checks(session.snapshot, asking, at.policy)
        )
        snapshot, checked = checks
        verdicts += [answering.checked(request, checked[request.name]) for request in asking if request.name in checked]
        said = await counter.write(verdicts)
        line = tuple(request for request in asking if request.class_kind is not ClassKind.CHECK)
        pending = (replace(pods, rank=_rank(request)) for request in line for pods in request.pods)
        return replace(
            session,
            snapshot=replace(snapshot, pending=(*snapshot.pending, *pending)),
            queue=line,
            part=replace(session.part, updates=(*session.part.updates, *said)),
        )


def _rank(one: RequestView) -> int:
    """Who was begun with goes before everybody else: its nodes are asked for already."""
    return -1 if one.phase is Phase.INTENDED else 0


def _but_groups(snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    """Groups that are being made smaller do not grow."""
    if not names:
        return snapshot
    groups = (replace(group, not_usable=_RETURNING) if group.id in names else group for group in snapshot.groups)
    return replace(snapshot, groups=tuple(groups))


def _part(seen: ObservedRequests, verdicts: tuple[StatusUpdate, ...], booked: BookingResult) -> RequestsPart:
    return RequestsPart(
        updates=verdicts,
        known=seen.known,
        views=seen.all,
        waiting=_waiting([request for request in seen.all if request.phase in _UNANSWERED], verdicts),
        booked=booked.by_request,
        unbookable=booked.unbookable,
    )


def _waiting(unanswered: Iterable[RequestView], verdicts: Iterable[StatusUpdate]) -> dict[str, int]:
    """By class, those that have no answer yet."""
    answered = {update.view.name for update in verdicts if update.is_written and update.kind in _ANSWERS}
    return Counter(
        request.request.spec.provisioning_class_name for request in unanswered if request.name not in answered
    )
