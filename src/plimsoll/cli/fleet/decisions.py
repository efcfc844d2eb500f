"""Decisions of a fleet manager for `plimsoll why` and `plimsoll journal`: from its database or its admin route."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from plimsoll.cli.fleet.databases import find_database_url, find_local_database

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from plimsoll.core.plans import Ref
    from plimsoll.journal.decisions import ObjectDecision
    from plimsoll.journal.entries import Entry, Query
    from plimsoll.journal.ports import Journal

T = TypeVar("T")
DatabaseUrlOption = Annotated[
    str,
    typer.Option("--database-url", help="Database of a fleet manager: cluster/ID, kafka/ID, capacity/…", metavar="URL"),
]
DatabaseUrlFileOption = Annotated[
    str, typer.Option("--database-url-file", help="File with the URL of that database.", metavar="FILE")
]
FleetUrlOption = Annotated[
    str, typer.Option("--fleet", help="URL of a fleet manager's API, instead of its database.", metavar="URL")
]
FleetTokenOption = Annotated[
    str, typer.Option("--fleet-token-file", help="File with an admin token for --fleet.", metavar="FILE")
]
_SHARED_KINDS: Final = frozenset({"kafka"})
"""Kinds that clusters have as well."""
_DECISIONS: Final = "/admin/scaling/decisions"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSource:
    """The fleet manager that is asked. Without a URL there is none."""

    database_url: str = ""
    api_url: str = ""
    token_file: str = ""

    @property
    def is_given(self) -> bool:
        return bool(self.database_url or self.api_url)

    def find_ref(self, subject: str) -> Ref | None:
        """What a subject names in the fleet; None: it names something else, or no fleet is given."""
        from plimsoll.app.references import find_kind, read_ref
        from plimsoll.fleet.journal_kinds import KINDS
        from plimsoll.journal.decisions import index_words

        written, _, name = subject.partition("/")
        if not self.is_given or "/" in name or find_kind(written, index_words((KINDS,))) is None:
            return None
        return read_ref(subject, declared=(KINDS,))

    def read_decisions(self, ref: Ref, *, limit: int) -> list[ObjectDecision]:
        """The newest decisions about an object. Raises `NothingKnown`."""
        found = self._read_from_api(ref, limit) if self.api_url else self._read_from_database(ref, limit)
        if not found:
            from plimsoll.fleet.journal_kinds import KINDS
            from plimsoll.journal.errors import NothingKnown

            kind = KINDS.find_kind(ref.kind)
            raise NothingKnown(
                f"nothing is known about {ref} in the journal of the fleet", hint="" if kind is None else kind.advice
            )
        return found

    def list_entries(self, query: Query) -> tuple[Entry, ...]:
        """Entries of the journal in the database."""
        return self._run_with_journal(lambda journal: journal.list_entries(query))

    def get_entry(self, number: int) -> Entry | None:
        return self._run_with_journal(lambda journal: journal.get_entry(number))

    def _run_with_journal(self, work: Callable[[Journal], Awaitable[T]]) -> T:
        import asyncio

        from plimsoll.app.fleet.journal_reading import open_fleet_journal

        async def run() -> T:
            with open_fleet_journal(self.database_url) as journal:
                return await work(journal)

        return asyncio.run(run())

    def _read_from_database(self, ref: Ref, limit: int) -> list[ObjectDecision]:
        from plimsoll.journal.decisions import ObjectDecision
        from plimsoll.journal.entries import Query

        entries = self.list_entries(Query(ref=ref, limit=limit))
        return [ObjectDecision.from_entry(entry, ref) for entry in entries]

    def _read_from_api(self, ref: Ref, limit: int) -> list[ObjectDecision]:
        import asyncio

        items: Sequence[dict[str, Any]] = asyncio.run(self._fetch(ref, limit))
        return [_build_decision(ref, item) for item in items]

    async def _fetch(self, ref: Ref, limit: int) -> Sequence[dict[str, Any]]:
        from plimsoll.cli.fleet.api_calls import fetch_list

        document = await fetch_list(self.api_url, self.token_file, _DECISIONS, {"subject": str(ref), "size": limit})
        return list(document["items"])


def build_source(database_url: str, database_url_file: str, fleet: str = "", token_file: str = "") -> FleetSource:
    from plimsoll.core.errors import InvalidInput

    url = find_database_url(database_url, database_url_file)
    if url and fleet:
        raise InvalidInput("is given beside a database; give one of them", path="--fleet")
    if token_file and not fleet:
        raise InvalidInput("needs --fleet", path="--fleet-token-file")
    return FleetSource(database_url=url, api_url=fleet, token_file=token_file)


def read_local_decisions(subject: str, data: str, *, limit: int) -> tuple[Ref, list[ObjectDecision]] | None:
    """From the database of a fleet manager in the directory of data. None: there is none, or it is not of a fleet.

    Raises `NothingKnown` for what only a fleet manager has.
    """
    from plimsoll.journal.errors import NothingKnown

    source = FleetSource(database_url=find_local_database(data))
    ref = source.find_ref(subject)
    if ref is None:
        return None
    try:
        return ref, source.read_decisions(ref, limit=limit)
    except NothingKnown:
        if ref.kind in _SHARED_KINDS:
            return None
        raise


def _build_decision(ref: Ref, item: dict[str, Any]) -> ObjectDecision:
    """A decision as the API shows it. One with an outcome is an action."""
    from datetime import datetime

    from plimsoll.core.plans import Action, NotDone, Outcome, Reason, Result
    from plimsoll.journal.decisions import ObjectDecision

    reason = Reason(code=str(item["reason"]), message=str(item["message"]), facts=item.get("inputs") or {})
    outcome = item.get("outcome")
    action = Action(verb=str(item["decision"]), target=ref, reason=reason)
    return ObjectDecision(
        ref=ref,
        at=datetime.fromisoformat(item["at"]),
        subsystem="fleet",
        snapshot=0,
        actions=(action,) if outcome else (),
        not_done=() if outcome else (NotDone(what=str(item["decision"]), about=(ref,), reason=reason),),
        outcomes=(Outcome(action=action, result=Result(outcome)),) if outcome else (),
    )
