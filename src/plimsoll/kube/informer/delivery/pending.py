"""The notifications that handlers have still to receive, stored once for all handlers at the same point.

The handlers of an informer are nearly always at the same point, so what is pending for one is pending for all. Nothing
here calls a handler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from plimsoll.kube.informer.events import Deletion, V, changes_between, is_other_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.kube.informer.delivery.handler import HandlerRunner
    from plimsoll.kube.informer.events import Change, KeyTuple
    from plimsoll.kube.informer.store.cache import Cache
    from plimsoll.objects.codec.decode_problems import BadObject

    Notification = tuple[KeyTuple, Change[V]]


class PendingNotifications(Generic[V]):
    """Objects whose changes the members have still to receive, each with the state they know; None: unknown to them.

    In the order of first change. The notification follows from that state and the cache at the time of delivery.
    """

    def __init__(self, cache: Cache[V]) -> None:
        self.members: dict[HandlerRunner[V], None] = {}
        self.known: dict[KeyTuple, V | BadObject | None] = {}
        self.deletions: dict[KeyTuple, Deletion[V]] = {}
        self._cache = cache
        self._notifications: list[Notification[V]] | None = None

    def add(self, key: KeyTuple, before: V | BadObject | None, deletion: Deletion[V] | None) -> None:
        """The object was in state `before` and is now as the cache has it. `deletion` says how it left, if it did."""
        self._notifications = None
        # The state that the members know stays, whatever happened since.
        known = self.known.setdefault(key, before)
        if deletion is None:
            return
        if known is None:
            # Created and deleted before delivery. Such objects would fill the memory while a handler is stuck.
            del self.known[key]
        elif not is_of_other_object(deletion, known):
            self.deletions[key] = deletion

    def build_notifications(self) -> Sequence[Notification[V]]:
        """All notifications as of now; the same list for each member until the next change.

        Each comes with its key: an object of another uid under the same name makes two changes.
        """
        if self._notifications is None:
            state, departures = self._cache.get_state, self.deletions
            self._notifications = [
                (key, change)
                for key, known in self.known.items()
                for change in changes_between(known, state(key), departures.get(key))
            ]
        return self._notifications

    def copy(self) -> PendingNotifications[V]:
        """The same, without members."""
        copy = PendingNotifications(self._cache)
        copy.known.update(self.known)
        copy.deletions.update(self.deletions)
        return copy


def is_of_other_object(deletion: Deletion[V], known: V | BadObject) -> bool:
    return deletion.last is not None and is_other_object(deletion.last, known)
