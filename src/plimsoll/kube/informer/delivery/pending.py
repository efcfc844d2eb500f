"""What handlers have still to hear: kept once for all that have heard the same so far.

A dozen handlers of one informer are nearly always at the same point, so what waits for one of them waits for all.
`audiences` moves them from one backlog to the next; `handlers` tells what is in it. Nothing here calls a handler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from plimsoll.kube.informer.events import Departure, V, changes_between, is_other_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.kube.informer.delivery.handler import HandlerRunner
    from plimsoll.kube.informer.events import Change, KeyTuple
    from plimsoll.kube.informer.store.cache import Cache
    from plimsoll.objects.codec.decode_problems import BadObject

    Telling = tuple[KeyTuple, Change[V]]


class PendingNotifications(Generic[V]):
    """Objects that its members must hear about, each with what they know of it: None if nothing.

    In the order of first change. What is told follows from that and the cache at the moment of telling.
    """

    def __init__(self, cache: Cache[V]) -> None:
        self.members: dict[HandlerRunner[V], None] = {}
        self.known: dict[KeyTuple, V | BadObject | None] = {}
        self.departures: dict[KeyTuple, Departure[V]] = {}
        self._cache = cache
        self._tellings: list[Telling[V]] | None = None

    def changed(self, key: KeyTuple, before: V | BadObject | None, departure: Departure[V] | None) -> None:
        """The object was in state `before` and is now as the cache has it. If it left, `departure` says how."""
        self._tellings = None
        # What the members were told before this began to wait stands, whatever happened since.
        known = self.known.setdefault(key, before)
        if departure is None:
            return
        if known is None:
            # Came and went unheard of. Kept, such objects would fill the memory while a handler is stuck.
            del self.known[key]
        elif not is_of_another(departure, known):
            self.departures[key] = departure

    def tellings(self) -> Sequence[Telling[V]]:
        """All that is to be told of it now, the same for each member that asks before the next change.

        Each with its key: an object of another uid under one name makes two changes.
        """
        if self._tellings is None:
            state, departures = self._cache.state, self.departures
            self._tellings = [
                (key, change)
                for key, known in self.known.items()
                for change in changes_between(known, state(key), departures.get(key))
            ]
        return self._tellings

    def copied(self) -> PendingNotifications[V]:
        """The same, as yet without members."""
        copy = PendingNotifications(self._cache)
        copy.known.update(self.known)
        copy.departures.update(self.departures)
        return copy


def is_of_another(departure: Departure[V], known: V | BadObject) -> bool:
    return departure.last is not None and is_other_object(departure.last, known)
