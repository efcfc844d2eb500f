"""Entries and decisions as output: lines for a terminal, plain data for `-o json` and `-o yaml`.

The command line and the console print the same lines. Text of objects is made harmless for a terminal; pages escape it
themselves. Pure: the current time is a parameter.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.formatting import format_age, format_time
from plimsoll.core.plans import Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from plimsoll.core.plans import Outcome, Reason
    from plimsoll.journal.decisions import ObjectDecision
    from plimsoll.journal.entries import Entry

Row = tuple[str, ...]
JOURNAL_HEAD: Final = ("NUMBER", "TIME", "SUBSYSTEM", "SNAPSHOT", "DONE", "HELD BACK", "LEFT", "SENTENCE")
_RESULTS: Final = {
    Result.DONE: "done",
    Result.ALREADY_SO: "was so already",
    Result.OVERTAKEN: "overtaken",
    Result.HELD_BACK: "held back",
    Result.PROPOSED: "proposed",
    Result.FAILED: "failed",
}
_WIDTH: Final = 110
_STEP: Final = "  "
_NAMES: Final = "names"
"""The fact that lists everything a reason's sentence names only the first few of."""


# ---- why


def format_decisions(decisions: Iterable[ObjectDecision], *, now: datetime, width: int = _WIDTH) -> Iterator[str]:
    """One block per decision, in the given order: time, actions, omissions, and the tree of reasons."""
    for number, decision in enumerate(decisions):
        if number:
            yield ""
        entry = "" if decision.number is None else f", entry {decision.number}"
        subsystem = remove_control_characters(decision.subsystem)
        yield f"{format_time(decision.at)} ({_format_ago(decision.at, now)}), {subsystem}{entry}"
        ended = {msgspec.json.encode(outcome.action): outcome for outcome in decision.outcomes}
        for action in decision.actions:
            whose = "" if action.target == decision.ref else f" {action.target}"
            what = f"{action.verb}{whose}" + "".join(
                f" {key}={value}" for key, value in sorted(action.arguments.items())
            )
            outcome = ended.get(msgspec.json.encode(action))
            yield from _wrap(f"{what}: {_format_result(outcome)}", _STEP, width)
            yield from _format_reason(action.reason, _STEP * 2, width)
        for not_done in decision.not_done:
            others = f" (and {not_done.unnamed} more like it)" if not_done.unnamed else ""
            yield from _wrap(f"{not_done.what}{others}", _STEP, width)
            yield from _format_reason(not_done.reason, _STEP * 2, width)


def build_decisions_data(decisions: Iterable[ObjectDecision]) -> list[dict[str, Any]]:
    """The decisions as plain JSON."""
    return [_convert_tuples(decision) for decision in decisions]


def _format_reason(reason: Reason, indent: str, width: int) -> Iterator[str]:
    yield from _wrap(reason.message, indent, width)
    names = reason.facts.get(_NAMES)
    if isinstance(names, list) and names:
        groups = _parse_whole(reason.facts.get("groups")) - _parse_whole(reason.facts.get("machineTypes"))
        more = max(groups - len(names), 0)
        line = f"{', '.join(map(str, names))} and {more} more" if more else f"all of them: {', '.join(map(str, names))}"
        yield from _wrap(line, indent + _STEP, width)
    for cause in reason.because:
        yield from _format_reason(cause, indent + _STEP, width)


def _parse_whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _wrap(text: str, indent: str, width: int) -> list[str]:
    """Words are not broken, so that names can be copied whole."""
    return textwrap.wrap(
        remove_control_characters(text),
        max(width, len(indent) + 40),
        initial_indent=indent,
        subsequent_indent=indent + _STEP,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [indent.rstrip()]


# ---- journal


def build_journal_rows(entries: Iterable[Entry]) -> list[Row]:
    return [
        (
            str(entry.number),
            format_time(entry.at),
            remove_control_characters(entry.subsystem),
            str(entry.snapshot),
            str(entry.done),
            str(entry.held_back),
            str(sum(not_done.count for not_done in entry.plan.not_done)),
            remove_control_characters(entry.format_sentence()),
        )
        for entry in entries
    ]


def build_journal_data(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    return [_convert_tuples(entry) for entry in entries]


def format_entry(entry: Entry) -> Iterator[str]:
    """All of one entry: a line for everything done, with its end, and for everything not done."""
    yield f"{entry.number}  {format_time(entry.at)}  {remove_control_characters(entry.format_sentence())}"
    ended = {msgspec.json.encode(outcome.action): outcome for outcome in entry.outcomes}
    for action in entry.plan.actions:
        outcome = ended.get(msgspec.json.encode(action))
        yield remove_control_characters(f"+ {action} [{_format_result(outcome)}]")
    for not_done in entry.plan.not_done:
        yield remove_control_characters(f"- {not_done}")


def remove_control_characters(text: str) -> str:
    """The text without characters that would move a terminal's cursor, change its colours or break a row."""
    return "".join(mark if mark.isprintable() else " " if mark.isspace() else "?" for mark in text)


def _format_result(outcome: Outcome | None) -> str:
    if outcome is None:
        return "planned"
    ended = _RESULTS[outcome.result]
    return ended if outcome.reason is None else f"{ended}: {outcome.reason}"


def _convert_tuples(value: object) -> Any:
    """Convert tuples to lists, because YAML writers treat them differently."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _format_ago(moment: datetime, now: datetime) -> str:
    seconds = (now - moment).total_seconds()
    if seconds < 0:
        return "in the future, by this clock"
    return f"{format_age(seconds)} ago"
