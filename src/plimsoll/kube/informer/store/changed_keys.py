"""Which objects of a cache changed since somebody last looked: for who looks now and then, at all of them at once.

A handler hears of changes later than the cache shows them. Who needs everything as of one moment, turn after turn,
follows the cache instead: reads it whole once, and from then on only at the places that its trail names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.kube.informer.events import Place

_MOST: Final = 200_000
"""Nobody may be looking, for months, in a process that waits to be leader: past this many, all is read anew."""


class ChangedKeys:
    """Of one follower. It begins with everything."""

    __slots__ = ("_most", "_places")

    def __init__(self, *, most: int = _MOST) -> None:
        self._most = most
        self._places: dict[Place, None] | None = None

    @property
    def changed(self) -> Collection[Place] | None:
        """Places whose object is another, or gone, or there again. None: any may be."""
        return None if self._places is None else self._places.keys()

    def note(self, place: Place) -> None:
        """What is there changed."""
        if self._places is not None:
            self._places[place] = None
            if len(self._places) > self._most:
                self._places = None

    def caught_up(self) -> None:
        """The follower has looked at all of it."""
        self._places = {}
