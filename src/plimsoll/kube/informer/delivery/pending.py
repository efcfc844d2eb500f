"""The notifications that handlers have still to receive, stored once for all handlers at the same point.

The handlers of an informer are nearly always at the same point, so what is pending for one is pending for all. Nothing
here calls a handler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from plimsoll.kube.informer.events import Deletion, V, is_other_object, list_changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.kube.informer.delivery.handler import HandlerRunner
    from plimsoll.kube.informer.events import Change, KeyTuple
    from plimsoll.kube.informer.store.cache import Cache
    from plimsoll.objects.codec.decode_problems import BadObject

    Notification = tuple[KeyTuple, Change[V]]


class PendingNotifications(Generic[V]):
    """Objects whose changes the members have still to receive, each with the state they know, None if they know none.

    They are in the order of the first change. A notification follows from that state and the cache at delivery.
    """

    def __init__(self, cache: Cache[V]) -> None:
        self.members: dict[HandlerRunner[V], None] = {}
        self.known: dict[KeyTuple, V | BadObject | None] = {}
        self.deletions: dict[KeyTuple, Deletion[V]] = {}
        self._cache = cache
        self._notifications: list[Notification[V]] | None = None

    def add(self, key: KeyTuple, before: V | BadObject | None, deletion: Deletion[V] | None) -> None:
        """Record that the object changed from `before` to its state in the cache; `deletion` if it was deleted."""
        self._notifications = None
        # The state that the members know stays, whatever happened since.
        known = self.known.setdefault(key, before)
        if deletion is None:
            return
        if known is None:
            # Created and deleted before delivery. Such objects would fill the memory while a handler hangs.
            del self.known[key]
        elif not is_of_other_object(deletion, known):
            self.deletions[key] = deletion

    def build_notifications(self) -> Sequence[Notification[V]]:
        """The current notifications; the same list for every member until the next change.

        Each has its key, because an object with a new uid under the same name causes two changes.
        """
        if self._notifications is None:
            get_state, deletions = self._cache.get_state, self.deletions
            self._notifications = [
                (key, change)
                for key, known in self.known.items()
                for change in list_changes(known, get_state(key), deletions.get(key))
            ]
        return self._notifications

    def copy(self) -> PendingNotifications[V]:
        """A copy without members."""
        copy = PendingNotifications(self._cache)
        copy.known.update(self.known)
        copy.deletions.update(self.deletions)
        return copy


def is_of_other_object(deletion: Deletion[V], known: V | BadObject) -> bool:
    return deletion.last is not None and is_other_object(deletion.last, known)
