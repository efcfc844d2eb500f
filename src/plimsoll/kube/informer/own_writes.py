"""What we know although our cache does not yet: the objects we have just written.

A cache lags behind our own writes. Who plans from it alone would make a machine twice; who waits for it would crawl. So
each answer of the server is kept until the cache has come as far. Nothing here outlives the process: after a restart
the cache begins with everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from plimsoll.kube.informer.store.tracker import is_newer
from plimsoll.objects.api.meta import WireObject

if TYPE_CHECKING:
    from plimsoll.kube.informer import Informer

T = TypeVar("T", bound=WireObject)


class MutationCache(Generic[T]):
    """A cache of cluster-scoped objects with our own writes on top; `local.own_writes` waits for caches instead."""

    def __init__(self, informer: Informer[T]) -> None:
        self._informer = informer
        self._written: dict[str, T] = {}
        self._removed: set[str] = set()
        self._echoes: dict[str, str] = {}
        """By name, the version of a write of ours that the informer has not told of yet."""

    def wrote(self, new: T) -> None:
        self._written[new.metadata.name] = new
        self._echoes[new.metadata.name] = new.metadata.resource_version

    def is_echo(self, new: T) -> bool:
        """Whether this state, which the informer tells of, is what we wrote: no news. To be asked once of each."""
        if self._echoes.get(new.metadata.name) != new.metadata.resource_version:
            return False
        del self._echoes[new.metadata.name]
        return True

    def removed(self, old: T) -> None:
        self._written.pop(old.metadata.name, None)
        self._echoes.pop(old.metadata.name, None)
        self._removed.add(old.metadata.uid)

    def get(self, name: str) -> T | None:
        written = self._written.get(name)
        found = self._informer.cache.get(name) if written is None else written
        return None if found is None or found.metadata.uid in self._removed else found

    def list(self) -> tuple[T, ...]:
        """In the order of names."""
        position = self._informer.position
        self._written = {
            name: one for name, one in self._written.items() if is_newer(one.metadata.resource_version, position)
        }
        cached = self._informer.cache.list()
        self._removed &= {one.metadata.uid for one in cached}
        known = {one.metadata.name: one for one in cached if one.metadata.uid not in self._removed}
        return tuple(one for _, one in sorted((known | self._written).items()))
