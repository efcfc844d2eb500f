"""Decisions of a journal, and of the ConfigMaps with last plans where no journal can be read."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.core.plans import Plan
from plimsoll.journal.decisions import ObjectDecision
from plimsoll.journal.entries import Entry, Query
from plimsoll.journal.last_plans import read_last_plans
from plimsoll.kube.errors import ApiError
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.console.views.ports import DecisionSource
    from plimsoll.core.plans import Ref
    from plimsoll.journal.last_plans import LastPlan
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.client import Client


class JournalDecisions:
    """The decisions of a journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def list_entries(self, query: Query) -> Sequence[Entry]:
        return await self._journal.list_entries(query)

    async def get_entry(self, number: int) -> Entry | None:
        return await self._journal.get_entry(number)

    async def explain(self, ref: Ref, limit: int) -> Sequence[ObjectDecision]:
        entries = await self._journal.list_entries(Query(ref=ref, limit=limit))
        return [ObjectDecision.from_entry(entry, ref) for entry in entries]


class CombinedDecisions:
    """The decisions of several sources as one timeline.

    Each journal counts its own entries. Here the number of an entry is that number times the number of sources, plus
    the place of its source, so that it is unique and can be looked up.
    """

    def __init__(self, sources: Sequence[DecisionSource]) -> None:
        self._sources = sources

    async def list_entries(self, query: Query) -> Sequence[Entry]:
        found: list[Entry] = []
        for place, source in enumerate(self._sources):
            found += [self._renumber(entry, place) for entry in await source.list_entries(query)]
        newest = sorted(found, key=attrgetter("at"), reverse=True)
        return newest if query.limit is None else newest[: query.limit]

    async def get_entry(self, number: int) -> Entry | None:
        own_number, place = divmod(number, len(self._sources))
        entry = await self._sources[place].get_entry(own_number)
        return None if entry is None else self._renumber(entry, place)

    async def explain(self, ref: Ref, limit: int) -> Sequence[ObjectDecision]:
        found = [decision for source in self._sources for decision in await source.explain(ref, limit)]
        return sorted(found, key=attrgetter("at"), reverse=True)[:limit]

    def _renumber(self, entry: Entry, place: int) -> Entry:
        return replace(entry, number=entry.number * len(self._sources) + place)


class LastPlanDecisions:
    """The last decision about each object, from the ConfigMaps of the controllers of a cluster.

    An entry is the last plan of one object; its number is its position in time, the oldest first. A ConfigMap that is
    missing, or that the caller may not read, has no decisions.
    """

    def __init__(self, client: Client, names: Sequence[str], *, namespace: str) -> None:
        self._client = client
        self._names = names
        self._namespace = namespace

    async def list_entries(self, query: Query) -> Sequence[Entry]:
        matching = [entry for entry in reversed(await self._read_entries()) if query.matches(entry)]
        return matching if query.limit is None else matching[: query.limit]

    async def get_entry(self, number: int) -> Entry | None:
        return next((entry for entry in await self._read_entries() if entry.number == number), None)

    async def explain(self, ref: Ref, limit: int) -> Sequence[ObjectDecision]:
        last_plans = await self._read_last_plans()
        return [ObjectDecision.from_last_plan(last_plans[ref])][:limit] if ref in last_plans else []

    async def _read_entries(self) -> list[Entry]:
        last_plans = sorted((await self._read_last_plans()).values(), key=attrgetter("at", "ref"))
        return [_build_entry(number, last_plan) for number, last_plan in enumerate(last_plans, 1)]

    async def _read_last_plans(self) -> dict[Ref, LastPlan]:
        found: dict[Ref, LastPlan] = {}
        for name in self._names:
            try:
                config_map = await self._client.get(ConfigMap, name, namespace=self._namespace)
            except ApiError:
                continue
            found |= read_last_plans(config_map.data)
        return found


def _build_entry(number: int, last_plan: LastPlan) -> Entry:
    plan = Plan(
        subsystem=last_plan.subsystem,
        snapshot=last_plan.snapshot,
        at=last_plan.at,
        actions=last_plan.actions,
        not_done=last_plan.not_done,
        subject=last_plan.ref,
    )
    return Entry(number=number, plan=plan, outcomes=last_plan.outcomes)
