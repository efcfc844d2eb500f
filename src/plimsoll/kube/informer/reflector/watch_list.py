"""A watch that begins with all existing objects (WatchList), up to the bookmark that ends the initial events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from plimsoll.core.errors import PlimsollError
from plimsoll.kube.informer.events import V
from plimsoll.kube.informer.reflector.watch_decoder import Bookmark, Present, UnreadableFrame, WatchDeleted, WatchError

if TYPE_CHECKING:
    from plimsoll.kube.informer.store.cache_updater import CacheUpdater


class NoInitialEvents(PlimsollError):
    """The server does not do this: pages must do."""


class InitialEvents(Generic[V]):
    """Takes the place of a list for the updater: begins one, and gives it every object as listed."""

    def __init__(self, updater: CacheUpdater[V]) -> None:
        self._updater = updater
        self.version = ""
        updater.begin_list()

    def apply(self, event: Present[V] | WatchDeleted[V] | Bookmark | WatchError | UnreadableFrame) -> bool:
        """Whether this was the last of the beginning; `version` is then what the state is of."""
        match event:
            case Present(value):
                self._updater.add_listed((value,))
            case WatchDeleted(value):
                self._updater.delete_while_listing(value)
            case Bookmark(version, ends_initial=ends_initial):
                if not ends_initial:
                    raise NoInitialEvents("a bookmark without the mark that ends the first events")
                self.version = version
                return True
            case WatchError(error):
                raise error
            case UnreadableFrame(problem):
                raise NoInitialEvents(f"an event that cannot be read: {problem}")
        return False
