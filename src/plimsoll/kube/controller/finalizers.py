"""Keeping an object until we have cleaned up after it, and letting go of it afterwards.

A list of finalizers belongs to everybody, and a merge patch replaces lists whole. So every write here carries the
`resourceVersion` its list was read at: whoever else wrote in between makes ours a conflict, and we read again, a few
times. Nobody's finalizer is lost, and ours is never added to an object that is on its way out.

Controllers call it with the metadata they have from their cache, and that may be stale. So "there is nothing to do" is
never said by the cache alone: the object is read first. Who calls `add` in every turn and can live with what the cache
says asks `is_on` before, and saves the read. It never waits: what a server cannot do now is the caller's error to
retry.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.names import qualified_name_problems
from plimsoll.kube.errors import Conflict, NotFound

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import ObjectMeta, WireObject
    from plimsoll.objects.registry import Resource

ATTEMPTS: Final = 5


class Kept(StrEnum):
    """What came of it."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    """It was (or was not) there already: the server says so."""
    BEING_DELETED = "being deleted"
    """Nothing may be added any more."""
    GONE = "gone"
    """There is no such object, or another one of the same name."""


class Finalizer:
    """One finalizer, `plimsoll.dev/cleanup` say, on objects of any kind."""

    def __init__(self, client: Client, name: str) -> None:
        if problems := qualified_name_problems(name):
            raise InvalidInput(problems[0], path="finalizer")
        if "/" not in name:
            raise InvalidInput(f"must name its owner, as in example.com/{name}", path="finalizer")
        self.name = name
        self._client = client

    def is_on(self, metadata: ObjectMeta) -> bool:
        """Whether it was when this metadata was read."""
        return self.name in metadata.finalizers

    async def add(self, of: type[WireObject] | Resource, metadata: ObjectMeta) -> Kept:
        """Put it on. Do what has to be cleaned up only after this said CHANGED or UNCHANGED."""
        return await self._settle(of, metadata, is_wanted=True)

    async def remove(self, of: type[WireObject] | Resource, metadata: ObjectMeta) -> Kept:
        """Take it off; what is gone needs nothing more."""
        return await self._settle(of, metadata, is_wanted=False)

    async def _settle(self, of: type[WireObject] | Resource, metadata: ObjectMeta, *, is_wanted: bool) -> Kept:
        current: ObjectMeta | None = metadata
        if self.is_on(metadata) == is_wanted:
            current = await self._read(of, metadata)
        for attempt in range(1, ATTEMPTS + 1):
            if current is None or current.uid != metadata.uid:
                return Kept.GONE
            if self.is_on(current) == is_wanted:
                return Kept.UNCHANGED
            if is_wanted and current.deletion_timestamp is not None:
                return Kept.BEING_DELETED
            try:
                await self._write(of, current, is_wanted=is_wanted)
            except NotFound:
                return Kept.GONE
            except Conflict:
                if attempt == ATTEMPTS:
                    raise
            else:
                return Kept.CHANGED
            current = await self._read(of, current)
        raise AssertionError("the last attempt returns or raises")

    async def _write(self, of: type[WireObject] | Resource, current: ObjectMeta, *, is_wanted: bool) -> None:
        others = [finalizer for finalizer in current.finalizers if finalizer != self.name]
        finalizers = [*others, self.name] if is_wanted else others
        patch = {"metadata": {"resourceVersion": current.resource_version, "finalizers": finalizers}}
        await self._client.merge_patch(of, current.name, patch, namespace=current.namespace)

    async def _read(self, of: type[WireObject] | Resource, known: ObjectMeta) -> ObjectMeta | None:
        try:
            found: WireObject = await self._client.get(of, known.name, namespace=known.namespace)
        except NotFound:
            return None
        return found.metadata
