"""ProvisioningRequests in the journal, in the log and in metrics. Pure but for counting up what it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Action, NotDone, Outcome, Reason, Ref, Result
from plimsoll.nodes.requests.model import UpdateKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.reporting.metrics.families import Families
    from plimsoll.nodes.requests.model import RequestsPart, RequestView, StatusUpdate

REQUEST: Final = "request"
_VERBS: Final = {
    UpdateKind.ACCEPTED: "accept",
    UpdateKind.PROVISIONED: "provision",
    UpdateKind.FAILED: "fail",
    UpdateKind.BOOKING_EXPIRED: "end-booking",
    UpdateKind.REVOKED: "revoke",
    UpdateKind.ROLLED_BACK: "roll-back",
    UpdateKind.WAITING_FOR_NODES: "wait-for-nodes",
    UpdateKind.DELETED: "delete",
}
_WORDS: Final = {
    UpdateKind.PROVISIONED: "provisioned request",
    UpdateKind.NOT_FOUND: "no capacity for request",
    UpdateKind.FAILED: "failed request",
    UpdateKind.BOOKING_EXPIRED: "ended the booking of request",
    UpdateKind.REVOKED: "revoked request",
    UpdateKind.ROLLED_BACK: "rolled back request",
    UpdateKind.WAITING_FOR_NODES: "waiting for nodes of request",
    UpdateKind.DELETED: "deleted old request",
}
_NAMED: Final = 3
_UNWRITTEN: Final = Reason(code="NotWritten", message="the API server did not take it; the next turn tries again")


def request_actions(turn: LoopResult) -> Iterator[tuple[Action, Outcome]]:
    """What was said of requests, as actions of the plan."""
    for update in turn.requests.news:
        if update.kind is UpdateKind.NOT_FOUND:
            continue
        action = Action(verb=_VERBS[update.kind], target=request_ref(update.view), reason=update.reason)
        result = Result.DONE if update.is_written else Result.FAILED
        yield action, Outcome(action=action, result=result, reason=None if update.is_written else _UNWRITTEN)


def requests_left(turn: LoopResult) -> Iterator[NotDone]:
    """Requests that got nothing, each with what stands in its way."""
    for update in turn.requests.news:
        if update.kind is UpdateKind.NOT_FOUND:
            yield NotDone(what="gets no capacity now", about=(request_ref(update.view),), reason=update.reason)
    for warning in turn.requests.warnings:
        namespace, _, name = warning.request.partition("/")
        about = Ref(kind=REQUEST, namespace=namespace, name=name)
        yield NotDone(what="is not consumed as it should be", about=(about,), reason=warning.reason)


def request_clauses(turn: LoopResult) -> Iterator[str]:
    """Parts of the sentence about a turn."""
    said: dict[UpdateKind, list[StatusUpdate]] = {}
    for update in turn.requests.news:
        said.setdefault(update.kind, []).append(update)
    for saying, verdicts in said.items():
        if saying not in _WORDS:
            continue
        names = ", ".join(status_update.view.name for status_update in verdicts[:_NAMED])
        more = f" and {len(verdicts) - _NAMED} more" if len(verdicts) > _NAMED else ""
        why = f" ({verdicts[0].reason})" if saying is UpdateKind.NOT_FOUND else ""
        yield f"{_WORDS[saying]} {names}{more}{why}"


def count_requests(turn: LoopResult, to: Families) -> None:
    part = turn.requests
    for update in part.news:
        if not update.is_written:
            continue
        kind = update.view.request.spec.provisioning_class_name
        if update.accepts and update.kind is not UpdateKind.ACCEPTED:
            to.requests.labels(kind, UpdateKind.ACCEPTED.value).inc()
        to.requests.labels(kind, update.kind.value).inc()
        if update.kind is UpdateKind.ROLLED_BACK:
            to.rollbacks.inc()
        if update.kind is UpdateKind.PROVISIONED and update.view.created is not None:
            to.request_seconds.labels(kind).observe(max(0.0, (turn.at - update.view.created).total_seconds()))
    if turn.ended_early is None:
        to.pending_requests.clear()
        for kind, waiting in part.waiting.items():
            to.pending_requests.labels(kind).set(waiting)
        to.booked_pods.set(sum(sum(nodes.values()) for nodes in part.booked.values()) + _just_booked(part))
        to.unbookable_pods.set(sum(part.unbookable.values()))


def _just_booked(part: RequestsPart) -> int:
    """Pods that got their room in this very turn."""
    answered = (update.view for update in part.updates if update.is_written and update.kind is UpdateKind.PROVISIONED)
    return sum(request.total for request in answered if request.parameters.reserves and request.name not in part.booked)


def request_ref(seen: RequestView) -> Ref:
    meta = seen.request.metadata
    return Ref(kind=REQUEST, namespace=meta.namespace, name=meta.name)
