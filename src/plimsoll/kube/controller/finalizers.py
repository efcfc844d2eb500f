"""Adds and removes a finalizer: it keeps an object until its controller has cleaned up.

The list of finalizers is shared, and a merge patch replaces lists whole. So every write carries the `resourceVersion`
at which the list was read: a write in between makes ours a conflict, and the object is read again, a few times. No
other finalizer is lost, and ours is never added to an object that is being deleted.

The given metadata may come from a stale cache. So UNCHANGED is returned only after a GET. A controller that calls `add`
in every reconcile and can rely on its cache checks `is_set` first, which saves the read. Nothing here waits: the caller
retries what the server cannot do now.
"""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.names import find_qualified_name_problems
from plimsoll.kube.errors import NotFound, UnreadableAnswer
from plimsoll.kube.requests.retry import retry_on_conflict
from plimsoll.kube.undecoded_objects import read_undecoded

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import ObjectMeta, WireObject
    from plimsoll.objects.api.resource import Resource

ATTEMPTS: Final = 5


class FinalizerOutcome(StrEnum):
    """The outcome of a change to the finalizers."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    """The finalizer was (or was not) there already, as a GET showed."""
    BEING_DELETED = "being deleted"
    """No finalizer may be added any more."""
    GONE = "gone"
    """The object is gone, or another one has its name."""


class Finalizer:
    """A finalizer, such as `plimsoll.dev/cleanup`, on objects of any kind."""

    def __init__(self, client: Client, name: str) -> None:
        if problems := find_qualified_name_problems(name):
            raise InvalidInput(problems[0], path="finalizer")
        if "/" not in name:
            raise InvalidInput(f"must name its owner, as in example.com/{name}", path="finalizer")
        self.name = name
        self._client = client

    def is_set(self, metadata: ObjectMeta) -> bool:
        """Whether this metadata has the finalizer."""
        return self.name in metadata.finalizers

    async def add(self, of: type[WireObject] | Resource, metadata: ObjectMeta) -> FinalizerOutcome:
        """Add it. Create what needs cleaning up only after CHANGED or UNCHANGED."""
        return await self._settle(of, metadata, is_wanted=True)

    async def remove(self, of: type[WireObject] | Resource, metadata: ObjectMeta) -> FinalizerOutcome:
        """Remove it."""
        return await self._settle(of, metadata, is_wanted=False)

    async def _settle(
        self, of: type[WireObject] | Resource, metadata: ObjectMeta, *, is_wanted: bool
    ) -> FinalizerOutcome:
        current: ObjectMeta | None = metadata

        async def read_again(_failures: int = 0) -> None:
            nonlocal current
            current = await self._read(of, metadata)

        async def attempt() -> FinalizerOutcome:
            if current is None or current.uid != metadata.uid:
                return FinalizerOutcome.GONE
            if self.is_set(current) == is_wanted:
                return FinalizerOutcome.UNCHANGED
            if is_wanted and current.deletion_timestamp is not None:
                return FinalizerOutcome.BEING_DELETED
            try:
                await self._write(of, current, is_wanted=is_wanted)
            except NotFound:
                return FinalizerOutcome.GONE
            return FinalizerOutcome.CHANGED

        if self.is_set(metadata) == is_wanted:
            await read_again()
        return await retry_on_conflict(attempt, attempts=ATTEMPTS, before_retry=read_again)

    async def _write(self, of: type[WireObject] | Resource, current: ObjectMeta, *, is_wanted: bool) -> None:
        others = [finalizer for finalizer in current.finalizers if finalizer != self.name]
        finalizers = [*others, self.name] if is_wanted else others
        patch = {"metadata": {"resourceVersion": current.resource_version, "finalizers": finalizers}}
        with suppress(UnreadableAnswer):  # accepted, of an object that cannot be decoded
            await self._client.merge_patch(of, current.name, patch, namespace=current.namespace)

    async def _read(self, of: type[WireObject] | Resource, known: ObjectMeta) -> ObjectMeta | None:
        found = await read_undecoded(self._client, of, known.name, namespace=known.namespace)
        return None if found is None else found.metadata
