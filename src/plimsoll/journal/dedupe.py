"""Selects the changed part of a plan for the journal. Pure; remembers what was written about each object.

Most of a plan equals that of ten seconds ago: thousands of nodes are unremovable for the same reasons. So an entry
holds only what changed, and a plan without changes makes no entry: `why node/n7` finds the entry in which its reason
was first given. Every six hours the whole plan is written again, because the journal forgets old entries. Two reasons
are equal if their codes are, the codes of their causes, and the pod or the size they name: a node at 61 % after 62 % is
no change. A pod that is no longer named is one: it has a node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, structs

from plimsoll.core.plans import Result, encode
from plimsoll.journal.workloads import find_workload_pods

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.plans import Action, NotDone, Outcome, Plan, Reason, Ref

_AGAIN_AFTER: Final = timedelta(hours=6)
_REPEATED: Final = (Result.HELD_BACK, Result.FAILED)
"""Results of actions that the next plan repeats."""

_DISTINGUISHING_FACTS: Final = ("pod", "size", "state")
"""Facts that distinguish reasons of the same code."""

Settled = Callable[[Sequence["Ref"]], tuple["NotDone", ...]]
Selected = tuple["Plan", tuple["Outcome", ...]]
Content = tuple[object, ...]


class PlanDeduplicator:
    """State between the plans of one controller. `compares_facts`: reasons with other facts are other reasons."""

    def __init__(self, *, compares_facts: bool = False) -> None:
        self._compares_facts = compares_facts
        self._reported: dict[Ref, list[Content]] = {}
        self._whole_at: datetime | None = None

    def select_changes(
        self, plan: Plan, outcomes: tuple[Outcome, ...], settled: Settled = lambda _refs: ()
    ) -> Selected | None:
        """The part that is not in the journal yet, or the whole plan if that was long ago; None: nothing changed.

        `settled` returns what became of pods that are no longer named. The others count as unchanged.
        """
        results = {id(outcome.action): outcome.result for outcome in outcomes}
        current = _collect_contents(plan, results, compares_facts=self._compares_facts)
        before = self._reported
        unnamed = [ref for ref in before if ref.kind == "pod" and ref not in current]
        ended = settled(unnamed)
        settled_refs = {ref for done in ended for ref in done.about}
        self._reported = current | {ref: before[ref] for ref in unnamed if ref not in settled_refs}
        plan = structs.replace(plan, not_done=(*plan.not_done, *ended))
        if self._whole_at is None or not timedelta(0) <= plan.at - self._whole_at < _AGAIN_AFTER:
            self._whole_at = plan.at
            return (plan, outcomes) if plan.actions or plan.not_done else None
        fresh = settled_refs | {ref for ref, contents in current.items() if before.get(ref) != contents}
        actions = tuple(
            action
            for action in plan.actions
            if results.get(id(action)) not in _REPEATED or _get_subject(action) in fresh
        )
        not_done = tuple(kept for done in plan.not_done if (kept := _filter_fresh(done, fresh)) is not None)
        if not actions and not not_done:
            return None
        chosen = {id(action) for action in actions}
        news = structs.replace(plan, actions=actions, not_done=not_done)
        return news, tuple(outcome for outcome in outcomes if id(outcome.action) in chosen)


def _filter_fresh(not_done: NotDone, fresh: set[Ref]) -> NotDone | None:
    about = tuple(ref for ref in not_done.about if ref in fresh)
    if not about:
        return None
    concerns = not_done.concerns
    if concerns is not UNSET:
        concerns = tuple(ref for ref in concerns if find_workload_pods(ref, about)) or UNSET
    return structs.replace(not_done, about=about, unnamed=not_done.count - len(about), concerns=concerns)


def _collect_contents(plan: Plan, results: dict[int, Result], *, compares_facts: bool) -> dict[Ref, list[Content]]:
    found: dict[Ref, list[Content]] = {}
    for action in plan.actions:
        found.setdefault(_get_subject(action), []).append(_build_action_content(action, results.get(id(action))))
    for not_done in plan.not_done:
        content: Content = (not_done.what, *_build_reason_content(not_done.reason))
        if compares_facts:
            content = (not_done.what, encode(not_done.reason))
        for ref in not_done.about:
            found.setdefault(ref, []).append(content)
    return found


def _get_subject(action: Action) -> Ref:
    """What an action is compared by: its target, or the machine type of a new group, whose name differs every time."""
    machine_type = action.arguments.get("machineType")
    return structs.replace(action.target, name=f"new {machine_type}") if machine_type else action.target


def _build_action_content(action: Action, result: Result | None) -> Content:
    return (action.verb, result, *sorted((key, str(value)) for key, value in action.arguments.items()))


def _build_reason_content(reason: Reason) -> Content:
    facts = (reason.facts.get(name) for name in _DISTINGUISHING_FACTS)
    return (reason.code, *facts, *(_build_reason_content(cause) for cause in reason.because))
