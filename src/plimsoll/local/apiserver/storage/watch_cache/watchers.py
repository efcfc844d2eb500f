"""Watchers: positions in a resource's history that are woken when a change matches them.

Only watchers that wait are woken, and only for changes they see, so a thousand watchers of one namespace each cost one
look, not one task switch, per change elsewhere. A watcher that falls out of the history gets `Expired` and ends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final, Self

from plimsoll.local.apiserver.storage.errors import Expired
from plimsoll.local.apiserver.storage.watch_cache.events import EncodingCache, Event, EventType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from plimsoll.local.apiserver.storage.objects import Stored
    from plimsoll.local.apiserver.storage.watch_cache.events import Change, Matches
    from plimsoll.local.apiserver.storage.watch_cache.history import History

# How many changes a watcher takes in hand at once: what a slow one can keep alive after history forgot it.
_AT_ONCE: Final = 256


class Watch:
    """An ordered, gapless stream of events: `async for event in watch`, or whole batches by `wait_for_batch`.

    Ends when it or its store is closed; raises `Expired` when it was too slow. Close it (`with`) when done.
    """

    def __init__(
        self, hub: Watchers, view: WatchFilter, *, place: int, since: int, initial: Sequence[Stored] = ()
    ) -> None:
        self._hub = hub
        self._view = view
        self._place = place
        self._seen = since
        """Everything up to this revision that is in view was delivered."""
        self._initial = iter(initial)
        self.initial_left = len(initial)
        """How many of the synthetic ADDED events, which give the state at the start, are still to come."""
        self._ready: deque[Event] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._is_nudged = False
        self._closed = False

    @property
    def revision(self) -> int:
        """Everything up to it was delivered: a bookmark's revision. 0 while the initial state is being delivered."""
        if self.initial_left:
            return 0
        self.look()
        if not self._ready and self._place == self._hub.history.end_place:
            # Kept, so that a later bookmark, with events at hand by then, does not fall behind this one.
            self._seen = max(self._seen, self._hub.revision())
        return self._seen

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            await self._wait_until_ready()
        event = self._ready.popleft()
        if self.initial_left:
            self.initial_left -= 1
        else:
            self._seen = event.revision
        return event

    async def wait_for_batch(self) -> list[Event]:
        """As many events as are at hand, at least one unless it was nudged; raises StopAsyncIteration at the end."""
        if not self._ready:
            await self._wait_until_ready()
        if not self._ready:
            return []
        batch = list(self._ready)
        self._ready.clear()
        if self.initial_left:
            self.initial_left -= len(batch)
        else:
            self._seen = batch[-1].revision
        return batch

    def wake(self) -> None:
        """Make the current or next `wait_for_batch` return, without an event if there is none."""
        self._is_nudged = True
        self._wake()

    def close(self) -> None:
        """End the stream, also for a task that waits for its next event."""
        if not self._closed:
            self._closed = True
            self._ready.clear()
            self._hub.remove(self._view.namespace, self)
            self._wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def look(self) -> None:
        """Go on through what history has now, and wake the task that waits if there is something for it."""
        if not self._ready and (self._is_expired() or self._collect()):
            self._wake()

    def hold(self) -> None:
        """Called before history forgets: take in hand what is in view, up to a measure, so as not to miss it."""
        while not self.initial_left and len(self._ready) < _AT_ONCE and not self._is_expired() and self._advance():
            pass

    async def _wait_until_ready(self) -> None:
        while not self._closed:
            if self._ready:
                return
            if self._is_expired():
                self.close()
                raise Expired(self._seen, self._hub.history.floor)
            if self._collect():
                return
            if self._is_nudged:
                self._is_nudged = False
                return
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        raise StopAsyncIteration

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _is_expired(self) -> bool:
        return self._place < self._hub.history.first_place

    def _collect(self) -> bool:
        """Take the next events in view in hand; False if there are none up to history's end."""
        if not self.initial_left and self._place == self._hub.history.end_place:
            return False
        for stored in islice(self._initial, _AT_ONCE):
            self._ready.append(Event(EventType.ADDED, stored.revision, stored, self._hub.encodings))
        while not self._ready and self._advance():
            pass
        return bool(self._ready)

    def _advance(self) -> bool:
        """Go on by some changes; False at history's end."""
        changes = self._hub.history.read_slice(self._place, _AT_ONCE)
        self._place += len(changes)
        self._ready.extend(self._view.filter_events(changes, after=self._seen, memory=self._hub.encodings))
        if changes and not self._ready:
            self._seen = max(self._seen, changes[-1].revision)
        return bool(changes)


class WatchFilter:
    """Which changes a watcher sees, and as what."""

    __slots__ = ("matches", "namespace", "prefix")

    def __init__(self, namespace: str | None, matches: Matches | None) -> None:
        self.namespace = namespace or None
        self.prefix = f"{namespace}/" if namespace else ""
        self.matches = matches

    def filter_events(self, changes: list[Change], *, after: int, memory: EncodingCache) -> Iterable[Event]:
        if self.prefix:
            prefix = self.prefix
            changes = [change for change in changes if change.path.startswith(prefix)]
        if changes and changes[0].revision <= after:  # a watch from a revision that lay in the future
            changes = [change for change in changes if change.revision > after]
        if self.matches is None:
            return [change.known_plain or change.build_plain_event(memory) for change in changes]
        seen = (change.build_event(self.matches, memory) for change in changes)
        return [event for event in seen if event is not None]


class Watchers:
    """The watchers of one resource, by the namespace they look at. `on_abandoned` is called when the last has left."""

    def __init__(
        self,
        history: History,
        *,
        revision: Callable[[], int],
        encodings: EncodingCache,
        on_abandoned: Callable[[], None],
    ) -> None:
        self.history = history
        self.revision = revision
        self.encodings = encodings
        self._on_abandoned = on_abandoned
        self._watches: dict[str | None, dict[Watch, None]] = {}

    def join(self, view: WatchFilter, *, since: int, initial: Sequence[Stored] = ()) -> Watch:
        place = self.history.find_place_after(since) if since < self.revision() else self.history.end_place
        watch = Watch(self, view, place=place, since=since, initial=initial)
        self._watches.setdefault(view.namespace, {})[watch] = None
        return watch

    def remove(self, namespace: str | None, watch: Watch) -> None:
        same_place = self._watches.get(namespace, {})
        same_place.pop(watch, None)
        if not same_place:
            self._watches.pop(namespace, None)
        if not self._watches:
            self._on_abandoned()

    @property
    def is_watched(self) -> bool:
        return bool(self._watches)

    def notify(self, namespaces: set[str]) -> None:
        """History has grown by changes in these namespaces."""
        if not self._watches:
            return
        for namespace in (None, *sorted(namespaces)):
            for watch in tuple(self._watches.get(namespace, ())):
                watch.look()

    def catch_up(self) -> None:
        """Before the history drops changes: a watcher without unread matching changes must not expire."""
        for watch in self._list_watches():
            watch.hold()
            watch.look()

    def close(self) -> None:
        for watch in self._list_watches():
            watch.close()

    def _list_watches(self) -> list[Watch]:
        return [watch for same_place in self._watches.values() for watch in same_place]
