"""ProvisioningRequests in the journal and in the log line. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Action, NotDone, Outcome, Reason, Ref, Result
from plimsoll.nodes.requests.model import UpdateKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.requests.model import RequestView, StatusUpdate

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
_UNWRITTEN: Final = Reason(
    code="NotWritten", message="the API server rejected the write; the next loop iteration tries again"
)


def build_request_actions(loop: LoopResult) -> Iterator[tuple[Action, Outcome]]:
    """Status updates as actions of the plan."""
    for update in loop.requests.news:
        if update.kind is UpdateKind.NOT_FOUND:
            continue
        action = Action(verb=_VERBS[update.kind], target=build_request_ref(update.view), reason=update.reason)
        result = Result.DONE if update.is_written else Result.FAILED
        yield action, Outcome(action=action, result=result, reason=None if update.is_written else _UNWRITTEN)


def list_unserved_requests(loop: LoopResult) -> Iterator[NotDone]:
    """Requests without capacity, each with what blocks it."""
    for update in loop.requests.news:
        if update.kind is UpdateKind.NOT_FOUND:
            yield NotDone(what="gets no capacity now", about=(build_request_ref(update.view),), reason=update.reason)
    for warning in loop.requests.warnings:
        namespace, _, name = warning.request.partition("/")
        about = Ref(kind=REQUEST, namespace=namespace, name=name)
        yield NotDone(what="is not consumed as it should be", about=(about,), reason=warning.reason)


def build_request_clauses(loop: LoopResult) -> Iterator[str]:
    """The clauses of the log line about requests."""
    updates_by_kind: dict[UpdateKind, list[StatusUpdate]] = {}
    for update in loop.requests.news:
        updates_by_kind.setdefault(update.kind, []).append(update)
    for update_kind, updates in updates_by_kind.items():
        if update_kind not in _WORDS:
            continue
        names = ", ".join(status_update.view.name for status_update in updates[:_NAMED])
        more = f" and {len(updates) - _NAMED} more" if len(updates) > _NAMED else ""
        why = f" ({updates[0].reason})" if update_kind is UpdateKind.NOT_FOUND else ""
        yield f"{_WORDS[update_kind]} {names}{more}{why}"


def build_request_ref(view: RequestView) -> Ref:
    meta = view.request.metadata
    return Ref(kind=REQUEST, namespace=meta.namespace, name=meta.name)
