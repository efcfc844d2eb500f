"""The keys of a cache that changed since they were last cleared.

A handler receives changes later than the cache shows them. A controller that needs everything as of one moment, loop
after loop, follows the cache instead: it reads the cache whole once, and from then on only at the changed keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.kube.informer.events import KeyTuple

_MOST: Final = 200_000
"""Nobody may be looking, for months, in a process that waits to be leader: past this many, all is read anew."""


class ChangedKeys:
    """Of one follower. It begins with everything."""

    __slots__ = ("_keys", "_most")

    def __init__(self, *, most: int = _MOST) -> None:
        self._most = most
        self._keys: dict[KeyTuple, None] | None = None

    @property
    def changed(self) -> Collection[KeyTuple] | None:
        """Places whose object is another, or gone, or there again. None: any may be."""
        return None if self._keys is None else self._keys.keys()

    def add(self, key: KeyTuple) -> None:
        """What is there changed."""
        if self._keys is not None:
            self._keys[key] = None
            if len(self._keys) > self._most:
                self._keys = None

    def clear(self) -> None:
        """The follower has looked at all of it."""
        self._keys = {}
