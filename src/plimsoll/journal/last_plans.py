"""The last plan about each object, as the data of a ConfigMap: the source of `why` without a journal file. Pure.

There is one key per object, so that a change is a small patch. The size is limited to 256 KiB: the oldest plans are
dropped first, always whole. The ConfigMap may have been edited; unreadable values are dropped.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.plans import Action, NotDone, Outcome, Ref, encode
from plimsoll.core.values import Value
from plimsoll.journal.entries import group_by_subject, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.journal.entries import Entry

MOST_BYTES: Final = 256 * 1024
_SMALLEST_BYTES: Final = 100
"""A lower bound of the size of one object: the field names alone are larger."""
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")


class LastPlan(Value):
    """The part of a plan about one object, and its outcome."""

    ref: Ref
    at: datetime
    subsystem: str
    snapshot: int
    actions: tuple[Action, ...] = ()
    not_done: tuple[NotDone, ...] = ()
    outcomes: tuple[Outcome, ...] = ()


_DECODER: Final = msgspec.json.Decoder(LastPlan)


def build_last_plans(
    before: Mapping[str, str], entries: Iterable[Entry], *, most_bytes: int = MOST_BYTES
) -> dict[str, str]:
    """The ConfigMap's data after these entries, given its data before."""
    known = read_last_plans(before)
    for entry in entries:
        for last_plan in _list_last_plans(entry, at_most=most_bytes // _SMALLEST_BYTES):
            if last_plan.ref not in known or known[last_plan.ref].at <= last_plan.at:
                known[last_plan.ref] = last_plan
    return _select_fitting(known.values(), most_bytes)


def read_last_plans(data: Mapping[str, str]) -> dict[Ref, LastPlan]:
    found: dict[Ref, LastPlan] = {}
    for text in data.values():
        try:
            last_plan = _DECODER.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        found[last_plan.ref] = last_plan
    return found


def build_key(ref: Ref) -> str:
    """A valid ConfigMap key: kinds and namespaces have no underscore; ids of clouds may have any character."""
    key = f"{ref.kind}_{ref.namespace}_{ref.name}"
    if _KEY.fullmatch(key):
        return key
    return f"hash_{hashlib.blake2b(str(ref).encode(), digest_size=16).hexdigest()}"


def _list_last_plans(entry: Entry, *, at_most: int) -> Iterable[LastPlan]:
    """The objects that may fit, in the order of precedence."""
    outcomes: dict[Ref, list[Outcome]] = {}
    for outcome in entry.outcomes:
        for ref in outcome.action.subjects:
            outcomes.setdefault(ref, []).append(outcome)
    parts = group_by_subject(entry.plan)
    for ref in sorted(parts, key=lambda part: (not parts[part][0], part))[:at_most]:
        actions, not_done = parts[ref]
        yield LastPlan(
            ref=ref,
            at=entry.at,
            subsystem=entry.subsystem,
            snapshot=entry.snapshot,
            actions=tuple(actions),
            not_done=tuple(shorten(done, ref) for done in not_done),
            outcomes=tuple(outcomes.get(ref, ())),
        )


def _select_fitting(known: Iterable[LastPlan], most_bytes: int) -> dict[str, str]:
    """The newest that fit; of equally old ones those with something done about them, then by name."""
    data: dict[str, str] = {}
    left = most_bytes
    by_name = sorted(known, key=lambda last_plan: (not last_plan.actions, last_plan.ref))
    for last_plan in sorted(by_name, key=lambda last_plan: last_plan.at, reverse=True):
        key, value = build_key(last_plan.ref), encode(last_plan)
        size = len(key) + len(value)
        if size > most_bytes:
            continue
        if size > left:
            break
        left -= size
        data[key] = value.decode()
    return dict(sorted(data.items()))
