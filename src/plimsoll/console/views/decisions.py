"""The timeline of decisions, and one decision with its tree of reasons."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.console.views.parameters import Parameters
from plimsoll.core.plans import encode
from plimsoll.journal.entries import Query
from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from plimsoll.console.views.ports import DecisionSource
    from plimsoll.core.plans import Action, NotDone, Outcome, Reason
    from plimsoll.journal.entries import Entry

_DEFAULT_LIMIT: Final = 50
_MOST_LIMIT: Final = 500
_SEARCHED: Final = 2_000
"""Entries in which a text or a verb is looked for."""
_SUBJECTS: Final = 200
"""Objects that one line names at most."""


class DecisionView:
    """`/api/decisions` and `/api/decisions/NUMBER`."""

    def __init__(self, source: DecisionSource) -> None:
        self._source = source

    async def list_decisions(self, request: Request) -> Response:
        """Filters: `subsystem`, `ref`, `verb`, `text`, `since`, `until`; `limit` at most 500."""
        parameters = Parameters(request)
        verb, text = parameters.get_text("verb").lower(), parameters.get_text("text").lower()
        limit = parameters.get_number("limit", _DEFAULT_LIMIT, most=_MOST_LIMIT)
        query = Query(
            ref=parameters.get_ref("ref"),
            subsystem=parameters.get_text("subsystem"),
            since=parameters.get_time("since"),
            until=parameters.get_time("until"),
            limit=_SEARCHED if verb or text else limit,
        )
        entries = await self._source.list_entries(query)
        matching = [entry for entry in entries if _has_verb(entry, verb) and _has_text(entry, text)]
        return build_json_response({"decisions": [summarize(entry) for entry in matching[:limit]]})

    async def show_decision(self, request: Request) -> Response:
        number = Parameters(request).get_path_number("number")
        entry = await self._source.get_entry(number)
        if entry is None:
            problem = f"there is no entry {number}; the journal drops old ones"
            return build_json_response({"error": problem}, HTTPStatus.NOT_FOUND)
        return build_json_response(describe_entry(entry))


def summarize(entry: Entry) -> dict[str, Any]:
    """A line of the timeline."""
    return {
        "number": entry.number,
        "at": entry.at,
        "subsystem": entry.subsystem,
        "subject": _format_subject(entry),
        "sentence": entry.format_sentence(),
        "done": entry.done,
        "heldBack": entry.held_back,
        "left": sum(not_done.count for not_done in entry.plan.not_done),
    }


def describe_entry(entry: Entry) -> dict[str, Any]:
    """The whole decision: what was done and what was not, each with its tree of reasons."""
    return {**summarize(entry), **describe_parts(entry.plan.actions, entry.plan.not_done, entry.outcomes)}


def describe_parts(
    actions: Iterable[Action], not_done: Iterable[NotDone], outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    """Actions with their outcomes, and what was left alone."""
    ended = {encode(outcome.action): outcome for outcome in outcomes}
    return {
        "actions": [_describe_action(action, ended.get(encode(action))) for action in actions],
        "notDone": [_describe_not_done(left) for left in not_done],
    }


def describe_reason(reason: Reason) -> dict[str, Any]:
    """A reason with its causes."""
    return {
        "code": reason.code,
        "message": reason.message,
        "facts": msgspec.to_builtins(reason.facts),
        "because": [describe_reason(cause) for cause in reason.because],
    }


def _describe_action(action: Action, outcome: Outcome | None) -> dict[str, Any]:
    return {
        "verb": action.verb,
        "target": str(action.target),
        "arguments": msgspec.to_builtins(action.arguments),
        "reason": describe_reason(action.reason),
        "result": "Planned" if outcome is None else outcome.result.value,
        "outcome": None if outcome is None or outcome.reason is None else describe_reason(outcome.reason),
    }


def _describe_not_done(not_done: NotDone) -> dict[str, Any]:
    named = [str(ref) for ref in not_done.about[:_SUBJECTS]]
    return {
        "what": not_done.what,
        "about": named,
        "unnamed": not_done.count - len(named),
        "reason": describe_reason(not_done.reason),
    }


def _format_subject(entry: Entry) -> str:
    return "" if entry.plan.subject is msgspec.UNSET else str(entry.plan.subject)


def _has_verb(entry: Entry, verb: str) -> bool:
    if not verb:
        return True
    return any(verb in action.verb.lower() for action in entry.plan.actions) or any(
        verb in not_done.what.lower() for not_done in entry.plan.not_done
    )


def _has_text(entry: Entry, text: str) -> bool:
    if not text or text in entry.format_sentence().lower():
        return True
    return any(text in line.lower() for line in entry.plan.format_lines())
