"""The keys of a cache that changed since they were last cleared.

A handler receives changes later than the cache shows them. A controller that needs a consistent state in each loop
reads the whole cache once, and from then on only the changed keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.kube.informer.events import KeyTuple

_MOST: Final = 200_000
"""A process that waits to be leader may not read for months. Beyond this number, the whole cache is read again."""


class ChangedKeys:
    """The changed keys of one reader. At the start, every key counts as changed."""

    __slots__ = ("_keys", "_most")

    def __init__(self, *, most: int = _MOST) -> None:
        self._most = most
        self._keys: dict[KeyTuple, None] | None = None

    @property
    def changed(self) -> Collection[KeyTuple] | None:
        """The keys whose object was added, changed or deleted; None if any may have been."""
        return None if self._keys is None else self._keys.keys()

    def add(self, key: KeyTuple) -> None:
        """Record that the object of this key changed."""
        if self._keys is not None:
            self._keys[key] = None
            if len(self._keys) > self._most:
                self._keys = None

    def clear(self) -> None:
        """Record that the reader has processed all changes."""
        self._keys = {}
