"""Objects as this process last wrote them, until the cache of their informer has come as far.

A binding is several writes. Whoever looks at a claim right after one sees the state before it in the cache, and would
choose again. Memory only: a process that starts has caches that show everything. Nothing is kept of an object that the
cache does not show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from plimsoll.kube.informer.events import Deleted, key_of
from plimsoll.objects.api.meta import WireObject

if TYPE_CHECKING:
    from plimsoll.kube.informer import Informer
    from plimsoll.kube.informer.events import Change, Key

T = TypeVar("T", bound=WireObject)


class Latest(Generic[T]):
    """The newest known state of the objects of one informer."""

    def __init__(self, informer: Informer[T]) -> None:
        self._informer = informer
        self._written: dict[Key, T] = {}
        informer.add_handler(self._changed, name="own writes")

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._written)

    def wrote(self, written: T) -> None:
        meta = written.metadata
        if self._informer.cache.get(meta.name, meta.namespace) is not None:
            self._written[key_of(written)] = written

    def get(self, name: str, namespace: str = "") -> T | None:
        cached = self._informer.cache.get(name, namespace)
        return None if cached is None else self.of(cached)

    def of(self, cached: T) -> T:
        """The same object, newer if we know it newer."""
        key = key_of(cached)
        ours = self._written.get(key)
        if ours is None:
            return cached
        if ours.metadata.uid == cached.metadata.uid and _is_newer(ours, cached):
            return ours
        del self._written[key]
        return cached

    def _changed(self, change: Change[T]) -> None:
        if isinstance(change, Deleted):
            self._written.pop(change.key, None)


def _is_newer(one: WireObject, other: WireObject) -> bool:
    """What is no number cannot be compared: then the cache is believed."""
    ours, theirs = one.metadata.resource_version, other.metadata.resource_version
    return ours.isdecimal() and theirs.isdecimal() and int(ours) > int(theirs)
