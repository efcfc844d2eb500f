"""An entry of the journal: a plan, the outcomes of its actions, and the objects it names. Pure.

The encoding is the same on every machine, so that two runs of a scenario store the same bytes.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import Final

import msgspec
from msgspec import structs

from plimsoll.core.errors import InvalidInput
from plimsoll.core.plans import DONE_RESULTS, Action, NotDone, Outcome, Plan, Reason, Ref, Result, encode
from plimsoll.core.values import Value
from plimsoll.journal.workloads import find_workload_pods, to_plural

SMALLEST_ENTRY: Final = 4096
"""A size that every entry can be brought down to."""


TOO_LARGE: Final = "EntryTooLarge"


class Entry(Value):
    """A decision. `number` grows in the order of writing and is never used twice."""

    number: int
    plan: Plan
    outcomes: tuple[Outcome, ...] = ()

    @property
    def at(self) -> datetime:
        return self.plan.at

    @property
    def subsystem(self) -> str:
        return self.plan.subsystem

    @property
    def snapshot(self) -> int:
        return self.plan.snapshot

    @property
    def held_back(self) -> int:
        """The number of actions that pause, dry run or a limit stopped."""
        return sum(outcome.result is Result.HELD_BACK for outcome in self.outcomes)

    @property
    def done(self) -> int:
        """The number of actions that were carried out. One that is planned, or begun and not ended yet, is not."""
        return sum(outcome.result in DONE_RESULTS for outcome in self.outcomes)

    def format_sentence(self) -> str:
        """One sentence about the decision."""
        return self.plan.format_sentence(self.outcomes)

    def list_subjects(self) -> frozenset[Ref]:
        """All objects that the entry names."""
        left = (ref for not_done in self.plan.not_done for ref in not_done.subjects)
        done = (ref for action in self.plan.actions for ref in action.subjects)
        return frozenset((*done, *left))

    def filter_by_ref(self, ref: Ref) -> Entry:
        """The part that concerns one thing."""
        outcomes = tuple(outcome for outcome in self.outcomes if ref in outcome.action.subjects)
        return structs.replace(self, plan=self.plan.filter_by_ref(ref), outcomes=outcomes)


class Query(Value):
    """A query for entries, newest first. Times are inclusive; `limit` None: all."""

    ref: Ref | None = None
    subsystem: str = ""
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = 100

    def matches(self, entry: Entry) -> bool:
        if self.subsystem and entry.subsystem != self.subsystem:
            return False
        if self.since is not None and entry.at < self.since:
            return False
        if self.until is not None and entry.at > self.until:
            return False
        return self.ref is None or self.ref in entry.list_subjects()


class Retention(Value):
    """The retention of a journal: the number of entries, their age relative to the newest, and their total size.

    An entry above the size limit of one entry names fewer objects and counts the others.
    """

    entries: int = 10_000
    days: float = 7.0
    total_bytes: int = 512 * 1024**2
    entry_bytes: int = 4 * 1024**2
    """The size limit of one entry as JSON; stored entries are compressed."""

    def __post_init__(self) -> None:
        if self.entries < 1:
            raise InvalidInput(f"must be at least 1, is {self.entries}", path="entries")
        if not self.days > 0:
            raise InvalidInput(f"must be more than 0, is {self.days}", path="days")
        if self.entry_bytes < SMALLEST_ENTRY:
            raise InvalidInput(f"must be at least {SMALLEST_ENTRY}, is {self.entry_bytes}", path="entry_bytes")
        if self.total_bytes < self.entry_bytes:
            raise InvalidInput(f"must be at least entry_bytes, is {self.total_bytes}", path="total_bytes")


def limit_size(entry: Entry, most_bytes: int) -> Entry:
    """The entry, shortened to the limit: as many objects as possible are named, the others counted.

    Reasons and numbers are cut last. Actions are cut only if they alone exceed the limit.
    """
    if len(encode(entry)) <= most_bytes:
        return entry
    for names in (20_000, 5_000, 1_000, 100, 10, 1, 0):
        fewer = tuple(_limit_names(not_done, names) for not_done in entry.plan.not_done)
        shorter = structs.replace(entry, plan=structs.replace(entry.plan, not_done=fewer))
        if len(encode(shorter)) <= most_bytes:
            return shorter
    return _truncate_actions(entry, most_bytes)


def _limit_names(not_done: NotDone, names: int) -> NotDone:
    named = not_done.about[:names]
    concerns = msgspec.UNSET if not_done.concerns is msgspec.UNSET else not_done.concerns[:names] or msgspec.UNSET
    return structs.replace(not_done, about=named, unnamed=not_done.count - len(named), concerns=concerns)


def _truncate_actions(entry: Entry, most_bytes: int) -> Entry:
    """The first actions that fit, with their outcomes, and how many more there were."""
    left = sum(not_done.count for not_done in entry.plan.not_done)
    actions: tuple[Action, ...] = entry.plan.actions
    while True:
        kept = set(map(encode, actions))
        missing = len(entry.plan.actions) - len(actions) + left
        rest = Reason(code=TOO_LARGE, message="the entry was too large for the journal, and was cut")
        cut = structs.replace(
            entry,
            plan=structs.replace(
                entry.plan,
                actions=actions,
                not_done=(NotDone(what="are not listed", about=(), reason=rest, unnamed=missing),),
                budgets={},
            ),
            outcomes=tuple(outcome for outcome in entry.outcomes if encode(outcome.action) in kept),
        )
        if not actions or len(encode(cut)) <= most_bytes:
            return cut
        actions = actions[: len(actions) // 2]


def shorten(not_done: NotDone, ref: Ref) -> NotDone:
    """The part about one object: the others are counted, not named. About a workload: how many of its pods.

    About an object that it only concerns, such as the Kafka of a goal: the objects that it is about are named.
    """
    if ref in not_done.about:
        return structs.replace(not_done, about=(ref,), unnamed=not_done.count - 1, concerns=msgspec.UNSET)
    pods = len(find_workload_pods(ref, not_done.about))
    if pods:
        what = f"{pods} of its pods {not_done.what if pods == 1 else to_plural(not_done.what)}"
    else:
        what = f"{not_done.format_subjects()} {not_done.what}".lstrip()
    return structs.replace(not_done, what=what, about=(ref,), unnamed=0, concerns=msgspec.UNSET)


def group_by_subject(plan: Plan) -> dict[Ref, tuple[list[Action], list[NotDone]]]:
    """The parts of a plan by object, in one pass: a plan may name ten thousand pods."""
    parts: dict[Ref, tuple[list[Action], list[NotDone]]] = {}
    for action in plan.actions:
        for ref in action.subjects:
            parts.setdefault(ref, ([], []))[0].append(action)
    for not_done in plan.not_done:
        for ref in not_done.subjects:
            parts.setdefault(ref, ([], []))[1].append(not_done)
    return parts


_DECODER: Final = msgspec.json.Decoder(Entry)


def encode_entry(entry: Entry) -> bytes:
    return encode(entry)


def decode_entry(data: bytes) -> Entry:
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"not a journal entry: {error}") from error
