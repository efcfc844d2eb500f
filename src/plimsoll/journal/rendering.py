"""Entries as people and programs read them: rows for a terminal, plain data for `-o json` and `-o yaml`. Pure.

The command line and the console print what is made here, so that all tell the same. Text of objects is made harmless
for a terminal; pages escape it themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.plans import Result
from plimsoll.journal.entries import brief

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.core.plans import Outcome, Ref
    from plimsoll.journal.entries import Entry

Row = tuple[str, ...]
WHY_HEAD: Final = ("TIME", "SUBSYSTEM", "SNAPSHOT", "WHAT", "WHY", "RESULT")
JOURNAL_HEAD: Final = ("NUMBER", "TIME", "SUBSYSTEM", "SNAPSHOT", "DONE", "LEFT", "SENTENCE")
_RESULTS: Final = {
    Result.DONE: "done",
    Result.ALREADY_SO: "was so already",
    Result.OVERTAKEN: "overtaken",
    Result.HELD_BACK: "held back",
    Result.FAILED: "failed",
}


def why_rows(entries: Iterable[Entry], ref: Ref) -> list[Row]:
    """What was decided about one thing, a row each, in the order of the entries."""
    rows: list[Row] = []
    for entry in entries:
        part = entry.about(ref)
        head = (_time(entry.at), entry.subsystem, str(entry.snapshot))
        ended = {msgspec.json.encode(one.action): one for one in part.outcomes}
        for action in part.plan.actions:
            outcome = ended.get(msgspec.json.encode(action))
            what = action.verb + "".join(f" {key}={value}" for key, value in sorted(action.arguments.items()))
            rows.append((*head, harmless(what), harmless(str(action.reason)), harmless(_result(outcome))))
        rows.extend((*head, harmless(one.what), harmless(str(one.reason)), "not done") for one in part.plan.not_done)
    return rows


def why_data(entries: Iterable[Entry], ref: Ref) -> list[dict[str, Any]]:
    """The same for programs; what a reason says of others is counted, not listed."""
    found: list[dict[str, Any]] = []
    for entry in entries:
        part = entry.about(ref)
        found.append(
            {
                "number": entry.number,
                "at": _plain(entry.at),
                "subsystem": entry.subsystem,
                "snapshot": entry.snapshot,
                "actions": _plain(part.plan.actions),
                "notDone": [_plain(brief(one, ref)) for one in part.plan.not_done],
                "outcomes": _plain(part.outcomes),
            }
        )
    return found


def journal_rows(entries: Iterable[Entry]) -> list[Row]:
    return [
        (
            str(entry.number),
            _time(entry.at),
            entry.subsystem,
            str(entry.snapshot),
            str(len(entry.plan.actions)),
            str(sum(one.count for one in entry.plan.not_done)),
            harmless(entry.plan.sentence()),
        )
        for entry in entries
    ]


def journal_data(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    return [_plain(entry) for entry in entries]


def harmless(text: str) -> str:
    """Without what would move a terminal's cursor, change its colours or break a row."""
    return "".join(mark if mark.isprintable() else " " if mark.isspace() else "?" for mark in text)


def _result(outcome: Outcome | None) -> str:
    if outcome is None:
        return "planned"
    ended = _RESULTS[outcome.result]
    return ended if outcome.reason is None else f"{ended}: {outcome.reason}"


def _plain(value: object) -> Any:
    """Lists where we have tuples: writers of YAML tell them apart."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"
