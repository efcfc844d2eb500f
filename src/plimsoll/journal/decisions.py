"""A decision about an object, and the kinds of objects that each subsystem decides about. Pure.

`plimsoll why` and `plimsoll journal` know no kind by themselves: a subsystem declares the words that name a kind, where
the last plan about it is kept, and what to do when no decision names an object.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING

from plimsoll.core.plans import Action, NotDone, Outcome, Ref  # noqa: TC001 - likewise
from plimsoll.core.values import Value
from plimsoll.journal.entries import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.journal.entries import Entry
    from plimsoll.journal.last_plans import LastPlan


class ObjectDecision(Value):
    """The actions of a plan about one object. `number` is that of the journal's entry; None: from a ConfigMap."""

    ref: Ref
    at: datetime
    subsystem: str
    snapshot: int
    number: int | None = None
    actions: tuple[Action, ...] = ()
    not_done: tuple[NotDone, ...] = ()
    outcomes: tuple[Outcome, ...] = ()

    @classmethod
    def from_entry(cls, entry: Entry, ref: Ref) -> ObjectDecision:
        """The part of an entry about this object; other objects are counted, not named."""
        part = entry.filter_by_ref(ref)
        return cls(
            ref=ref,
            at=entry.at,
            subsystem=entry.subsystem,
            snapshot=entry.snapshot,
            number=entry.number,
            actions=part.plan.actions,
            not_done=tuple(shorten(not_done, ref) for not_done in part.plan.not_done),
            outcomes=part.outcomes,
        )

    @classmethod
    def from_last_plan(cls, last_plan: LastPlan) -> ObjectDecision:
        return cls(
            ref=last_plan.ref,
            at=last_plan.at,
            subsystem=last_plan.subsystem,
            snapshot=last_plan.snapshot,
            actions=last_plan.actions,
            not_done=last_plan.not_done,
            outcomes=last_plan.outcomes,
        )


class JournalKind(Value):
    """A kind. `words`: further names, such as its plural and short names. `advice`: where else to look."""

    name: str
    advice: str
    words: tuple[str, ...] = ()
    has_namespace: bool = True


class JournalKinds(Value):
    """The kinds of one subsystem. `last_plans`: the ConfigMap with the last plan of each object.

    Empty: the last plans are in the journal, which the subsystem keeps in its own database.
    """

    subsystem: str
    kinds: tuple[JournalKind, ...]
    last_plans: str = ""

    def find_kind(self, name: str) -> JournalKind | None:
        return next((kind for kind in self.kinds if kind.name == name), None)


def index_words(declared: Iterable[JournalKinds]) -> dict[str, JournalKind]:
    """Every word with its kind, in the order of declaration. Of two kinds of one name the first is meant."""
    words: dict[str, JournalKind] = {}
    for subsystem in declared:
        for kind in subsystem.kinds:
            for word in (kind.name, *kind.words):
                words.setdefault(word, kind)
    return words
