"""What the pages need of the process that they run in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.core.plans import Ref
    from plimsoll.journal.decisions import ObjectDecision
    from plimsoll.journal.entries import Entry, Query


class DecisionSource(Protocol):
    """Recorded decisions: a journal, or the last plans that controllers keep in ConfigMaps."""

    async def list_entries(self, query: Query) -> Sequence[Entry]:
        """Newest first."""
        ...

    async def get_entry(self, number: int) -> Entry | None: ...

    async def explain(self, ref: Ref, limit: int) -> Sequence[ObjectDecision]:
        """The decisions about one object, newest first."""
        ...
