"""Where ProvisioningRequests are served, turn by turn: read, refreshed, taken back, booked, checked, planned, answered.

The main flow of specs/nodes.md 4.1. `RequestController.open` does everything that comes before growth is planned and
gives a `RequestTransaction`, which does the rest. All that matters is written in the requests themselves; what a desk
remembers only says where to look first, what was seen last, and what its own writes were answered.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.nodes.requests.booking.booking import Hints, answer_checks, book
from plimsoll.nodes.requests.booking.consumption import consumers
from plimsoll.nodes.requests.booking.node_arrivals import Arrivals, arrived
from plimsoll.nodes.requests.classes import ClassAnswers
from plimsoll.nodes.requests.lifecycle import Deletion, due_now, refreshed
from plimsoll.nodes.requests.model import ClassKind, Phase, RequestsPart, StatusUpdate, UpdateKind
from plimsoll.nodes.requests.parameters import IgnoredParameters
from plimsoll.nodes.requests.reader import read_requests
from plimsoll.nodes.requests.rollback.cancellation import Cancelling
from plimsoll.nodes.requests.rollback.recovery import Recall, StatusWriter, is_on_its_way_back, is_stranded, recall
from plimsoll.nodes.requests.rollback.rollback import Grounds
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
    from plimsoll.nodes.observing.request_lister import RequestLister
    from plimsoll.nodes.planning.requests.check_queue import Checked
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.nodes.requests.booking.booking import Booked
    from plimsoll.nodes.requests.booking.node_arrivals import Missed
    from plimsoll.nodes.requests.classes import RegisteredClass
    from plimsoll.nodes.requests.model import RequestsSeen, RequestView
    from plimsoll.nodes.requests.rollback.rollback import RollBack
    from plimsoll.nodes.requests.status_writer import RequestWriter
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.operator.pause import ActionGuard

GROWTH_RETURNED: Final = "GrowthReturned"
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
    brakes: ActionGuard
    consuming: Sequence[Pod] = ()
    """Pods without a node that say they consume a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDependencies:
    """What a desk is made of."""

    watched: RequestLister
    writer: RequestWriter
    roll_back: RollBack
    provider: Provider
    planning: PlanRunner
    classes: Mapping[str, RegisteredClass] = field(default_factory=dict)
    """Of other packages, by name."""


class RequestController:
    """One a controller; one session at a time."""

    def __init__(self, tools: RequestDependencies) -> None:
        self._tools = tools
        self._arrivals = Arrivals()
        self._cancelling = Cancelling(tools.provider)
        self._hints = Hints()
        self._ignored = IgnoredParameters()

    async def synced(self) -> None:
        """Return once everything that requests are read from has been seen."""
        await self._tools.watched.synced()

    def stale(self) -> Stale | None:
        """What of it is not known any more."""
        return self._tools.watched.stale()

    def note(self, changes: Changes) -> None:
        """What became of growth; every turn that looked at the cloud."""
        self._arrivals.note(changes)

    async def open(self, at: RequestContext) -> RequestTransaction:
        """All that comes before growth is planned."""
        counter = self._counter(at)
        seen = self._read(at)
        refreshed, left = await self._refreshed(seen, at, counter)
        if self._cancelling.misses_some_of(seen.all):
            self._hints = self._hints.but_coming(at.snapshot)
        booked, kept, missed = await self._booked(left.held, at, counter)
        self._cancelling.see(seen.all, booked, at.sizes)
        counter = replace(counter, grounds=Grounds(nodes=at.nodes, kept=booked.nodes))
        going = Recall(booked=booked, sizes=at.sizes, line=left.line, missed=missed)
        returned = await recall(counter, going)
        session = RequestTransaction(
            counter=counter,
            snapshot=_but_groups(booked.snapshot, returned.groups),
            sizes=at.sizes,
            policy=at.policy,
            planning=self._tools.planning,
            returning=returned.unfinished,
            booked_nodes=booked.nodes,
            unanswered=tuple(request for request in seen.all if request.phase in _UNANSWERED),
            part=replace(
                _part(seen, (*refreshed, *kept, *returned.verdicts), booked),
                warnings=consumers(at.consuming, seen, unbookable=booked.unbookable),
            ),
        )
        if returned.did_something:
            told = "growth of requests was taken back; the next turn looks anew"
            return replace(session, ended=Reason(code=GROWTH_RETURNED, message=told))
        waiting = [request for request in left.line if not is_on_its_way_back(request) and not is_stranded(request)]
        return await self._lined_up(session, due_now(waiting, at.policy), at)

    async def close(self, session: RequestTransaction, up: ScaleUpPart) -> RequestsPart:
        """All that comes after growth was asked for."""
        part = await session.close(up)
        places = session.places(up)
        self._hints = self._hints.planned(
            session.served(), existing=places.existing, grown=places.grown, group_of=session.snapshot.group_of
        )
        if session.counter.is_free:
            await self._cancelling.give_back(session.snapshot, {*session.booked_nodes, *places.existing})
        return replace(part, waiting=_waiting(session.unanswered, part.verdicts))

    # ---- steps

    def _counter(self, at: RequestContext) -> StatusWriter:
        return StatusWriter(
            writer=self._tools.writer,
            roll_back=self._tools.roll_back,
            answering=StatusUpdates(at.now, at.policy),
            is_free=at.brakes.reason is None,
        )

    def _read(self, at: RequestContext) -> RequestsSeen:
        listed = self._tools.watched.read()
        fresh = replace(listed, requests=self._tools.writer.freshest(listed.requests))
        seen = read_requests(fresh, at.policy, at.now)
        self._ignored.tell(seen.all)
        return seen

    async def _refreshed(
        self, seen: RequestsSeen, at: RequestContext, counter: StatusWriter
    ) -> tuple[tuple[StatusUpdate, ...], RequestsSeen]:
        """What time did (expired, not booked any more, old enough to be cleared away), and those it did not touch."""
        found = refreshed(seen, at.policy, at.now)
        said = await counter.say([one for one in found if isinstance(one, StatusUpdate)])
        cleared = [await self._deleted(one, counter) for one in found if isinstance(one, Deletion)]
        names = {one.seen.name for one in found}
        line = tuple(request for request in seen.line if request.name not in names)
        held = tuple(request for request in seen.held if request.name not in names)
        return (*said, *cleared), replace(seen, line=line, held=held)

    async def _deleted(self, one: Deletion, counter: StatusWriter) -> StatusUpdate:
        return StatusUpdate(
            seen=one.seen,
            saying=UpdateKind.DELETED,
            reason=one.reason,
            conditions=one.seen.conditions,
            details=one.seen.details,
            is_written=counter.is_free and await self._tools.writer.delete(one.seen),
        )

    async def _booked(
        self, held: Sequence[RequestView], at: RequestContext, counter: StatusWriter
    ) -> tuple[Booked, tuple[StatusUpdate, ...], list[Missed]]:
        """Capacity that was given is kept. Who has consumed or got it is told; who misses it is not booked."""
        booked = await self._book(at, held)
        missed = self._arrivals.missed(held, booked, at.now)
        gone = {one.seen.name for one in missed}
        if gone:
            held = [request for request in held if request.name not in gone]
            booked = await self._book(at, held)
        answering = counter.answering
        verdicts = [answering.consumed(request) for request in held if request.name in booked.consumed]
        verdicts += [
            answering.arrived(request) for request in arrived(held, booked) if request.name not in booked.consumed
        ]
        return booked, await counter.say(verdicts), missed

    async def _book(self, at: RequestContext, held: Sequence[RequestView]) -> Booked:
        booked: Booked = await self._tools.planning(lambda: book(at.snapshot, held, self._hints, at.policy))
        self._hints = booked.hints
        return booked

    async def _lined_up(
        self, session: RequestTransaction, due: Sequence[RequestView], at: RequestContext
    ) -> RequestTransaction:
        """Checks are answered; the pods of those that nodes may be added for are planned with all others."""
        counter, answering = session.counter, session.counter.answering
        verdicts = [answering.failed(request, *request.problem) for request in due if request.problem is not None]
        by_classes: ClassAnswers = await self._tools.planning(
            lambda: ClassAnswers(self._tools.classes, answering).ask(
                (request for request in due if request.problem is None), session.snapshot, at.now
            )
        )
        verdicts += by_classes.verdicts
        asking = by_classes.left
        checks: tuple[Snapshot, Mapping[str, Checked]] = await self._tools.planning(
            lambda: answer_checks(session.snapshot, asking, at.policy)
        )
        snapshot, checked = checks
        verdicts += [answering.checked(request, checked[request.name]) for request in asking if request.name in checked]
        said = await counter.say(verdicts)
        line = tuple(request for request in asking if request.nature is not ClassKind.CHECK)
        pending = (replace(pods, rank=_rank(request)) for request in line for pods in request.pods)
        return replace(
            session,
            snapshot=replace(snapshot, pending=(*snapshot.pending, *pending)),
            line=line,
            part=replace(session.part, verdicts=(*session.part.verdicts, *said)),
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


def _part(seen: RequestsSeen, verdicts: tuple[StatusUpdate, ...], booked: Booked) -> RequestsPart:
    return RequestsPart(
        verdicts=verdicts,
        known=seen.known,
        seen=seen.all,
        waiting=_waiting([request for request in seen.all if request.phase in _UNANSWERED], verdicts),
        booked=booked.by_request,
        unbookable=booked.unbookable,
    )


def _waiting(unanswered: Iterable[RequestView], verdicts: Iterable[StatusUpdate]) -> dict[str, int]:
    """By class, those that have no answer yet."""
    answered = {update.seen.name for update in verdicts if update.is_written and update.saying in _ANSWERS}
    return Counter(
        request.request.spec.provisioning_class_name for request in unanswered if request.name not in answered
    )
