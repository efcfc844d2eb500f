"""The port between the store and its durability; `memory` and `sqlite` implement it.

A driver is a log: rows arrive with rising revisions, are acknowledged in the same order, and are compacted by number.
It knows nothing of objects, selectors or watchers, and never reads the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from plimsoll.local.apiserver.storage.errors import NotStored, StoreClosed
    from plimsoll.local.apiserver.storage.objects import Key
    from plimsoll.local.apiserver.storage.watch_cache.events import Change

    Problem = NotStored | StoreClosed
    Settle = Callable[[Sequence[tuple["Write", Problem | None]]], None]

EVERYTHING = ""
"""The resource under which the floor of an explicit compaction is kept; it holds for all."""


class Row(NamedTuple):
    """The state of one object from `revision` on; without data it was deleted."""

    revision: int
    resource: str
    namespace: str
    name: str
    data: bytes | None


class Recovered(NamedTuple):
    """What a driver found: rows in the order of their revisions, and floors by resource."""

    rows: Iterable[Row]
    floors: Mapping[str, int]
    revision: int
    """The greatest that may have been given before."""


class Compaction(NamedTuple):
    """Rows that are no longer needed, and the new floors."""

    revisions: Sequence[int]
    floors: Mapping[str, int]


class Write:
    """Changes that become durable together or not at all, with the future of their caller."""

    __slots__ = ("changes", "keys", "settled")

    def __init__(self, keys: Sequence[Key], changes: Sequence[Change], settled: asyncio.Future[None]) -> None:
        self.keys = keys
        self.changes = changes
        self.settled = settled

    def iterate_rows(self) -> Iterable[Row]:
        for change in self.changes:
            data = change.current.data if change.current is not None else None
            yield Row(change.revision, *change.key, data)


class Driver(Protocol):
    """Owned by one store, used from one event loop's thread."""

    is_inline: ClassVar[bool]
    """Whether `submit` settles before it returns."""

    def recover(self) -> Recovered:
        """Read everything; called once, before anything else, and may block."""
        ...

    def start(self, settle: Settle) -> None:
        """From now on call `settle`, on the loop's thread and in order, with the outcome of each write."""
        ...

    def submit(self, write: Write) -> None: ...

    def forget(self, forgotten: Compaction) -> None:
        """Drop rows. If that fails they are found, and dropped, at the next recovery."""
        ...

    async def aclose(self, revision: int) -> None:
        """Finish what was submitted, store the greatest revision given, and release everything."""
        ...
