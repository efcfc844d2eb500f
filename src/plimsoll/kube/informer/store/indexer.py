"""Indexes of a cache: pods by node, replica sets by owner. Updated object by object.

If an index function fails on an object, the object is left out of that index, the failure is logged once, and
everything else goes on. A function must return the same keys for the same object each time, because an object's old
keys are not stored but computed again when it is removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic

import structlog

from plimsoll.kube.informer.events import V, get_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable

    IndexFunc = Callable[[V], Iterable[Hashable]]

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


# Most index functions return one of these, with at most one key. Any other iterable can only be iterated.
_PLAIN: Final = frozenset({list, tuple})


class Index(Generic[V]):
    """One index. `index_func` returns the keys of an object, possibly none."""

    def __init__(self, name: str, index_func: IndexFunc[V]) -> None:
        self.name = name
        self.failures = 0
        self._index_func = index_func
        # By uid, a string that the object holds anyway. A key of namespace and name would need memory per object.
        self._objects: dict[Hashable, dict[str, V]] = {}

    def get(self, key: Hashable) -> tuple[V, ...]:
        return tuple(self._objects.get(key, {}).values())

    def list_keys(self) -> tuple[Hashable, ...]:
        return tuple(self._objects)

    def add(self, new: V, ident: str) -> None:
        """Add an object; `ident` is its `get_identity`, computed once for all indexes of a cache."""
        self._put(self._compute_keys(new), new, ident)

    def remove(self, old: V, ident: str) -> None:
        """Remove an object that was deleted from the cache."""
        self._drop(self._compute_keys(old), ident)

    def replace(self, old: V, new: V, ident: str) -> None:
        """Replace `old` by `new`, which has the same `ident`."""
        before, after = self._compute_keys(old), self._compute_keys(new)
        if before != after:
            self._drop(before, ident)
            self._put(after, new, ident)
            return
        for key in after:
            filed = self._objects.get(key)
            if filed is None:
                self._objects[key] = {ident: new}
                continue
            # Moved to the end: the order is that of the last change.
            filed.pop(ident, None)
            filed[ident] = new

    def _put(self, keys: Iterable[Hashable], new: V, ident: str) -> None:
        for key in keys:
            filed = self._objects.get(key)
            if filed is None:
                self._objects[key] = {ident: new}
            else:
                filed[ident] = new

    def _drop(self, keys: Iterable[Hashable], ident: str) -> None:
        for key in keys:
            filed = self._objects.get(key)
            if filed is not None:
                filed.pop(ident, None)
                if not filed:
                    del self._objects[key]

    def _compute_keys(self, value: V) -> Collection[Hashable]:
        try:
            keys = self._index_func(value)
            # As keys of a dict, so that unhashable keys fail here.
            if type(keys) in _PLAIN and len(keys) <= 1:  # type: ignore[arg-type] # they are
                return {keys[0]: None} if keys else ()  # type: ignore[index] # as above
            return dict.fromkeys(keys)
        except Exception as error:  # noqa: BLE001 - whatever an index function raises, the informer must go on
            self._report(value, error)
            return ()

    def _report(self, value: Any, error: Exception) -> None:
        self.failures += 1
        if self.failures == 1:
            log.warning("informer.index_failed", index=self.name, object=str(get_key(value)), error=repr(error)[:500])


def get_identity(value: V) -> str:
    """The identity of an object within an index."""
    return value.metadata.uid or str(get_key(value))
