"""What of a turn's plan is news. Pure; remembers what was said of each thing last.

Most of a plan is the same as ten seconds ago: five thousand nodes are kept for the reasons they were kept for before.
So an entry of the journal has only what changed, and a turn without news writes none: `why node/n7` finds the entry in
which its reason was first given. Every six hours everything in force is said again, because the journal forgets what is
old. A reason is the same when its code is, and the codes behind it, and the pod or the size it names: that a node is
used to 61 % and no longer to 62 % is no news. That a pod is not named any more is: it has a place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.plans import Result

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.plans import Action, NotDone, Outcome, Plan, Reason, Ref

_AGAIN_AFTER: Final = timedelta(hours=6)
_REPEATED: Final = (Result.HELD_BACK, Result.FAILED)
"""Ends of actions that the next turn tries, and tells, again."""

_TELLING_FACTS: Final = ("pod", "size", "state")
"""Facts that make a reason another one."""

Settled = Callable[[Sequence["Ref"]], tuple["NotDone", ...]]
Told = tuple["Plan", tuple["Outcome", ...]]
Gist = tuple[object, ...]


class JournalNews:
    """Between the turns of one autoscaler."""

    def __init__(self) -> None:
        self._said: dict[Ref, list[Gist]] = {}
        self._whole_at: datetime | None = None

    def of(self, plan: Plan, outcomes: tuple[Outcome, ...], settled: Settled = lambda _refs: ()) -> Told | None:
        """The part that was not said before, or all of it if that is long ago; None: nothing.

        `settled` tells what became of pods that are named no more; of whom it does not tell, nothing has changed.
        """
        results = {id(outcome.action): outcome.result for outcome in outcomes}
        said = _gists(plan, results)
        before = self._said
        unnamed = [ref for ref in before if ref.kind == "pod" and ref not in said]
        ended = settled(unnamed)
        told = {ref for done in ended for ref in done.about}
        self._said = said | {ref: before[ref] for ref in unnamed if ref not in told}
        plan = structs.replace(plan, not_done=(*plan.not_done, *ended))
        if self._whole_at is None or not timedelta(0) <= plan.at - self._whole_at < _AGAIN_AFTER:
            self._whole_at = plan.at
            return (plan, outcomes) if plan.actions or plan.not_done else None
        fresh = told | {ref for ref, gists in said.items() if before.get(ref) != gists}
        actions = tuple(
            action for action in plan.actions if results.get(id(action)) not in _REPEATED or action.target in fresh
        )
        not_done = tuple(kept for done in plan.not_done if (kept := _fresh_part(done, fresh)) is not None)
        if not actions and not not_done:
            return None
        chosen = {id(action) for action in actions}
        news = structs.replace(plan, actions=actions, not_done=not_done)
        return news, tuple(outcome for outcome in outcomes if id(outcome.action) in chosen)


def _fresh_part(one: NotDone, fresh: set[Ref]) -> NotDone | None:
    about = tuple(ref for ref in one.about if ref in fresh)
    return structs.replace(one, about=about, unnamed=one.count - len(about)) if about else None


def _gists(plan: Plan, results: dict[int, Result]) -> dict[Ref, list[Gist]]:
    found: dict[Ref, list[Gist]] = {}
    for action in plan.actions:
        found.setdefault(action.target, []).append(_gist_of_action(action, results.get(id(action))))
    for not_done in plan.not_done:
        gist = (not_done.what, *_gist(not_done.reason))
        for ref in not_done.about:
            found.setdefault(ref, []).append(gist)
    return found


def _gist_of_action(action: Action, result: Result | None) -> Gist:
    return (action.verb, result, *sorted((key, str(value)) for key, value in action.arguments.items()))


def _gist(reason: Reason) -> Gist:
    facts = (reason.facts.get(name) for name in _TELLING_FACTS)
    return (reason.code, *facts, *(_gist(one) for one in reason.because))
