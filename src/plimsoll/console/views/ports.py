"""What the pages need of the process that they run in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.core.plans import Ref
    from plimsoll.journal.decisions import ObjectDecision
    from plimsoll.journal.entries import Entry, Query
    from plimsoll.kube.informer import Informer
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod


class ClusterInformers(NamedTuple):
    """The kinds that the console follows. Everything else is listed when a page asks for it."""

    nodes: Informer[Node]
    pods: Informer[Pod]


class DecisionSource(Protocol):
    """Recorded decisions: a journal, or the last plans that controllers keep in ConfigMaps."""

    async def list_entries(self, query: Query) -> Sequence[Entry]:
        """Newest first."""
        ...

    async def get_entry(self, number: int) -> Entry | None: ...

    async def explain(self, ref: Ref, limit: int) -> Sequence[ObjectDecision]:
        """The decisions about one object, newest first."""
        ...
