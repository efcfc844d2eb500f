"""The route of decisions about scaling: the entries of the journal that `plimsoll why` prints."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from fastapi import Query

from plimsoll.core.errors import InvalidInput
from plimsoll.core.plans import Action, Ref, encode
from plimsoll.fleet.api.documents.admin import DecisionAnswer, DecisionListAnswer
from plimsoll.fleet.api.documents.base import build_document_response
from plimsoll.fleet.api.errors import Code, RequestRefused
from plimsoll.fleet.api.operations import Group, Operation, PageNumber, PageSize, answer_errors
from plimsoll.fleet.api.parsing.paging import cut_page, parse_page
from plimsoll.fleet.model.workers import Worker
from plimsoll.journal.entries import Query as EntryQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.core.plans import NotDone
    from plimsoll.fleet.api.ports import ApiPorts
    from plimsoll.journal.entries import Entry
    from plimsoll.web.responses import PageResponse

SubjectName = Annotated[str, Query(alias="subject")]
WorkerName = Annotated[str, Query(alias="worker")]
SinceTime = Annotated[str, Query(alias="since")]
_KINDS: Final = frozenset({"cluster", "kafka", "capacity"})
_MOST_ENTRIES: Final = 10_000
_WORKER_KIND: Final = "worker"


class ScalingDecisions:
    """Decisions of the workers, newest first."""

    def __init__(self, ports: ApiPorts) -> None:
        self._journal = ports.journal

    def list_operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/admin/scaling/decisions",
                operation_id="getScalingDecisions",
                group=Group.ADMIN,
                endpoint=self.list_decisions,
                answers={200: DecisionListAnswer, **answer_errors(400, 401, 404, 429, 500)},
                summary="What workers decided about clusters, Kafkas and capacity, newest first.",
            ),
        )

    async def list_decisions(
        self,
        subject: SubjectName = "",
        worker: WorkerName = "",
        since: SinceTime = "",
        number: PageNumber = "",
        size: PageSize = "",
    ) -> PageResponse:
        page = parse_page(number, size)
        ref = _parse_subject(subject)
        if worker and worker not in set(Worker):
            raise RequestRefused(Code.VALIDATION, f"worker: one of {', '.join(Worker)} is expected")
        query = EntryQuery(ref=ref, subsystem="fleet", since=_parse_time(since), limit=_MOST_ENTRIES)
        entries = await self._journal.list_entries(query)
        found = [decision for entry in entries for decision in _list_decisions(entry, ref, worker=worker)]
        items = [_build(decision) for decision in cut_page(found, page)]
        return build_document_response(
            DecisionListAnswer(
                kind="ScalingDecisionList", page=page.number, size=len(items), total=len(found), items=items
            )
        )


def _parse_subject(text: str) -> Ref | None:
    if not text:
        return None
    try:
        ref = Ref.parse(text)
    except InvalidInput as error:
        raise RequestRefused(Code.VALIDATION, f"subject: {error.problem}") from error
    if ref.kind not in _KINDS or ref.namespace:
        raise RequestRefused(
            Code.VALIDATION, "subject: cluster/ID, kafka/ID or capacity/PROVIDER.REGION.TYPE is expected"
        )
    return ref


def _parse_time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        # A plus sign in a query is a space.
        moment = datetime.fromisoformat(text.replace(" ", "+") if text.count(" ") == 1 and "T" in text else text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise RequestRefused(
            Code.VALIDATION, f"since: {text[:50]!r} is not a time such as 2026-01-01T00:00:00Z"
        ) from error


class _Decision(NamedTuple):
    """A decision of an entry. Only those of the page become documents: a journal has a hundred thousand."""

    entry: Entry
    number: int
    about: Ref
    part: Action | NotDone


def _list_decisions(entry: Entry, ref: Ref | None, *, worker: str) -> Iterator[_Decision]:
    """The decisions of an entry, one per object that the query may be about."""
    if worker and worker != _get_worker(entry):
        return
    number = 0
    for action in entry.plan.actions:
        for about in _select(action.subjects[:1] if ref is None else action.subjects, ref):
            number += 1
            yield _Decision(entry, number, about, action)
    for not_done in entry.plan.not_done:
        for about in _select(not_done.about if ref is None else not_done.subjects, ref):
            number += 1
            yield _Decision(entry, number, about, not_done)


def _get_worker(entry: Entry) -> str:
    subject = entry.plan.subject
    return subject.name if isinstance(subject, Ref) and subject.kind == _WORKER_KIND else ""


def _select(refs: tuple[Ref, ...], wanted: Ref | None) -> tuple[Ref, ...]:
    return tuple(ref for ref in refs if wanted is None or ref == wanted)


def _build(decision: _Decision) -> DecisionAnswer:
    entry, part = decision.entry, decision.part
    return DecisionAnswer(
        id=f"{entry.number}-{decision.number}",
        at=entry.at,
        worker=_get_worker(entry),
        subject=str(decision.about),
        decision=part.verb if isinstance(part, Action) else part.what,
        reason=part.reason.code,
        inputs=part.reason.facts,
        message=str(part.reason),
        outcome=_find_outcome(entry, part) if isinstance(part, Action) else None,
    )


def _find_outcome(entry: Entry, action: Action) -> str | None:
    """The last outcome of an action."""
    wanted = encode(action)
    ended = [outcome.result.value for outcome in entry.outcomes if encode(outcome.action) == wanted]
    return ended[-1] if ended else None
