"""A decision about an object, read from the journal's file or from a ConfigMap. Pure."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING

from plimsoll.core.plans import Action, NotDone, Outcome, Ref  # noqa: TC001 - likewise
from plimsoll.core.values import Value
from plimsoll.journal.entries import shorten

if TYPE_CHECKING:
    from plimsoll.journal.entries import Entry
    from plimsoll.journal.last_plans import LastPlan


class ObjectDecision(Value):
    """The actions of a plan about one object. `number` is that of the journal's entry; None if unknown."""

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
