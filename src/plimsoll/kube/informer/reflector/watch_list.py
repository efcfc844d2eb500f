"""A watch that begins with all existing objects (WatchList), up to the bookmark that ends the initial events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from plimsoll.core.errors import PlimsollError
from plimsoll.kube.informer.events import V
from plimsoll.kube.informer.reflector.watch_decoder import Bookmark, Present, UnreadableFrame, WatchDeleted, WatchError

if TYPE_CHECKING:
    from plimsoll.kube.informer.store.cache_updater import CacheUpdater


class NoInitialEvents(PlimsollError):
    """The server does not support initial events: pages are used instead."""


class InitialEvents(Generic[V]):
    """Passes the initial events of a watch to the cache updater as a list."""

    def __init__(self, updater: CacheUpdater[V]) -> None:
        self._updater = updater
        self.version = ""
        updater.begin_list()

    def apply(self, event: Present[V] | WatchDeleted[V] | Bookmark | WatchError | UnreadableFrame) -> bool:
        """Apply one event. Returns whether it was the last; then `version` is the version of the state."""
        match event:
            case Present(value):
                self._updater.add_listed((value,))
            case WatchDeleted(value):
                self._updater.delete_while_listing(value)
            case Bookmark(version, ends_initial=ends_initial):
                if not ends_initial:
                    raise NoInitialEvents("a bookmark without the annotation that ends the initial events")
                self.version = version
                return True
            case WatchError(error):
                raise error
            case UnreadableFrame(problem):
                raise NoInitialEvents(f"an event that cannot be decoded: {problem}")
        return False
