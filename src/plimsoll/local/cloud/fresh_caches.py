"""What we know although our cache does not yet: the objects we have just written.

A cache lags behind our own writes. Who plans from it alone would make a machine twice; who waits for it would crawl. So
each answer of the server is kept until the cache has come as far. Nothing here outlives the process: after a restart
the cache begins with everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from plimsoll.kube.informer.tracking import is_newer
from plimsoll.objects.meta import WireObject

if TYPE_CHECKING:
    from plimsoll.kube.informer import Informer

T = TypeVar("T", bound=WireObject)


class FreshCache(Generic[T]):
    """A cache of cluster-scoped objects with our own writes on top; `local.own_writes` waits for caches instead."""

    def __init__(self, informer: Informer[T]) -> None:
        self._informer = informer
        self._written: dict[str, T] = {}
        self._removed: set[str] = set()

    def wrote(self, new: T) -> None:
        self._written[new.metadata.name] = new

    def removed(self, old: T) -> None:
        self._written.pop(old.metadata.name, None)
        self._removed.add(old.metadata.uid)

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
