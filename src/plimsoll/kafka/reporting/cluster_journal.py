"""A journal for one of several Kafka clusters: entries name brokers and topics with their cluster.

`plimsoll why kafka/NS/CLUSTER` finds all of them, `plimsoll why broker/NS/CLUSTER.3` those of one broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from plimsoll.core.plans import Ref

if TYPE_CHECKING:
    from plimsoll.core.plans import Action, NotDone, Outcome, Plan
    from plimsoll.journal.entries import Entry, Query
    from plimsoll.journal.ports import Journal


class ClusterJournal:
    """Writes to a shared journal."""

    def __init__(self, journal: Journal, namespace: str, name: str) -> None:
        self._journal = journal
        self._cluster = Ref(kind="kafka", namespace=namespace, name=name)

    async def append(self, plan: Plan, outcomes: tuple[Outcome, ...] = ()) -> Entry:
        named = replace(
            plan,
            actions=tuple(self._name_action(action) for action in plan.actions),
            not_done=tuple(self._name_not_done(not_done) for not_done in plan.not_done),
            subject=self._cluster,
        )
        return await self._journal.append(named, self._name_outcomes(outcomes))

    async def conclude(self, number: int, outcomes: tuple[Outcome, ...]) -> None:
        await self._journal.conclude(number, self._name_outcomes(outcomes))

    async def list_entries(self, query: Query) -> tuple[Entry, ...]:
        return await self._journal.list_entries(query)

    async def get_entry(self, number: int) -> Entry | None:
        """The entry with the names that its plan had before it was written."""
        entry = await self._journal.get_entry(number)
        if entry is None:
            return None
        actions = tuple(replace(action, target=self._shorten(action.target)) for action in entry.plan.actions)
        return replace(entry, plan=replace(entry.plan, actions=actions, subject=UNSET))

    async def close(self) -> None:
        """The journal is not ours to close."""

    def _name_outcomes(self, outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
        return tuple(replace(outcome, action=self._name_action(outcome.action)) for outcome in outcomes)

    def _name_action(self, action: Action) -> Action:
        return replace(action, target=self._name(action.target), concerns=(self._cluster,))

    def _name_not_done(self, not_done: NotDone) -> NotDone:
        about = tuple(self._name(ref) for ref in not_done.about)
        return replace(not_done, about=about, concerns=(self._cluster,))

    def _name(self, ref: Ref) -> Ref:
        if ref.kind == "cluster":
            return self._cluster
        if ref.kind not in {"broker", "topic"}:
            return ref
        return Ref(kind=ref.kind, namespace=self._cluster.namespace, name=f"{self._cluster.name}.{ref.name}")

    def _shorten(self, ref: Ref) -> Ref:
        if ref.kind not in {"broker", "topic"}:
            return ref
        return Ref(kind=ref.kind, name=ref.name.removeprefix(f"{self._cluster.name}."))
