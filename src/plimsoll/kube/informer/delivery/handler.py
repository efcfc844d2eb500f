"""Delivers changes to one handler, at its own pace (client-go: processorListener).

A runner holds, for each object whose latest state its handler has not received, the state it received last; the next
notification follows from that and the cache at the time of delivery. So a slow handler skips versions but never
receives one twice or out of order, and what is pending for it is bounded by the number of objects, not of events.
Handlers do not wait for each other, and the informer waits for none of them. A handler that raises is reported and gets
the next change. A handler that is cancelled in the middle gets the same change again when the informer runs again.

A handler that has received everything shares its pending notifications with all others in that state
(`HandlerBroadcaster`). Only a handler that was interrupted has state of its own.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic

import structlog

from plimsoll.kube.informer.delivery.pending import PendingNotifications, is_of_other_object
from plimsoll.kube.informer.events import V, list_changes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from plimsoll.kube.informer.delivery.broadcaster import DeliveryLoop, HandlerBroadcaster
    from plimsoll.kube.informer.delivery.pending import Notification
    from plimsoll.kube.informer.events import Change, Deletion, KeyTuple
    from plimsoll.kube.informer.store.cache import Cache
    from plimsoll.objects.codec.decode_problems import BadObject

    Handler = Callable[[Change[V]], Awaitable[None] | None]

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_INITIAL_AT_ONCE: Final = 1000


class HandlerRunner(Generic[V]):
    """A handler and its pending notifications. It shows the progress of the handler."""

    def __init__(
        self,
        name: str,
        handler: Handler[V],
        *,
        cache: Cache[V],
        broadcaster: HandlerBroadcaster[V],
        delivery: DeliveryLoop,
    ) -> None:
        self.name = name
        self.delivered = 0
        """The number of changes that the handler was called with."""
        self.failures = 0
        self._delivery = delivery
        self._handler = handler
        self._cache = cache
        self._broadcaster = broadcaster
        self._pending: PendingNotifications[V] = PendingNotifications(cache)
        self._is_unshared = True
        # The rest is used while the runner does not share: the objects in delivery, with the state the handler knows.
        self._in_delivery: dict[KeyTuple, V | BadObject | None] = {}
        self._deletions: dict[KeyTuple, Deletion[V]] = {}
        self._next: deque[KeyTuple] = deque()
        # Changes of the current object that are not delivered yet.
        self._current_changes: deque[Change[V]] = deque()
        # The objects that existed when the handler was added, and are not delivered yet. They come first.
        self._initial_names = cache.list_names()
        self._has_work = bool(self._initial_names)
        self._is_busy = False
        self._batches_to_sync: int | None = None
        self._synced = asyncio.Event()

    # ---- progress

    @property
    def pending(self) -> int:
        """The number of objects whose changes the handler has not received yet."""
        current = 1 if self._current_changes else 0
        return current + len(self._pending.known) + len(self._in_delivery) + sum(map(len, self._initial_names.values()))

    @property
    def handled(self) -> int:
        """The number of calls of the handler that did not fail."""
        return self.delivered - self.failures

    @property
    def has_synced(self) -> bool:
        """Whether the handler has received all objects of the first list."""
        return self._synced.is_set()

    async def wait_until_synced(self) -> None:
        await self._synced.wait()

    # ---- changes

    def add(self, key: KeyTuple, before: V | BadObject | None, deletion: Deletion[V] | None) -> None:
        """Like `PendingNotifications.add`; a change to an object in delivery adds no second notification."""
        if self._in_delivery and key in self._in_delivery:
            known = self._in_delivery[key]
            if deletion is not None and known is not None and not is_of_other_object(deletion, known):
                self._deletions[key] = deletion
        elif self._initial_names and key[1] in self._initial_names.get(key[0], ()):
            if deletion is not None:
                del self._initial_names[key[0]][key[1]]
        else:
            self._pending.add(key, before, deletion)
            if not self._has_work:
                self._announce_work()

    def mark_cache_complete(self) -> None:
        """Record that the cache is complete. The handler has synced once it has received what is pending now."""
        if self._batches_to_sync is None:
            self._batches_to_sync = 1 + self._is_busy
            self._announce_work()

    def _announce_work(self) -> None:
        self._has_work = True
        self._delivery.wake((self,))

    # ---- delivery

    @property
    def has_work(self) -> bool:
        if not self._is_unshared:
            return bool(self._pending.known)
        return self._has_work or bool(self._current_changes or self._in_delivery)

    def start(self) -> None:
        """Prepare for a new delivery loop. A cancelled run may have left work that is not announced."""
        self._next = deque(self._in_delivery)
        self._announce_work()

    def deliver_some(self, most: int) -> Awaitable[None] | None:
        """Call the handler with at most `most` changes.

        Stops at the first call that has to be awaited and returns its awaitable, for `await_outcome`.
        """
        if not self._is_unshared:
            pending, notifications = self._pending, self._pending.build_notifications()
            self._pending = self._broadcaster.share_pending(self, pending)
            if len(notifications) <= most:
                return self._deliver_shared(pending, notifications)
            self._stop_sharing(pending, notifications)
        outcome = self._deliver_own(most)
        if outcome is None and self.has_synced and not self.has_work:
            self._is_unshared = False
            self._pending = self._broadcaster.share_pending(self, self._pending)
        return outcome

    def _deliver_shared(
        self, pending: PendingNotifications[V], notifications: Sequence[Notification[V]]
    ) -> Awaitable[None] | None:
        """Deliver the shared notifications at once; after an interruption the runner delivers the rest by itself."""
        for number, (_, change) in enumerate(notifications):
            try:
                outcome = self._handler(change)
            except (asyncio.CancelledError, Exception) as error:  # noqa: BLE001 - a bug of a handler must not stop the informer
                self._report(change, error)
            except BaseException:  # propagates; the undelivered notifications must not be lost
                self._stop_sharing(pending, notifications[number:])
                raise
            else:
                # Most handlers are plain functions that return None; the check for an awaitable is slow.
                if outcome is not None and inspect.isawaitable(outcome):
                    self._stop_sharing(pending, notifications[number:])
                    return outcome
            self.delivered += 1
        return None

    def _stop_sharing(self, pending: PendingNotifications[V], rest: Sequence[Notification[V]]) -> None:
        """Deliver the rest of `pending` separately. The first notification of the rest may be in progress."""
        first, _ = rest[0]
        self._current_changes = deque(change for key, change in rest if key == first)
        self._in_delivery = {key: pending.known.get(key) for key, _ in rest if key != first}
        self._deletions = {key: deletion for key, deletion in pending.deletions.items() if key in self._in_delivery}
        self._next = deque(self._in_delivery)
        self._is_busy = self._is_unshared = True
        self._pending = self._broadcaster.separate(self, self._pending)
        self._has_work = bool(self._pending.known)

    def _deliver_own(self, most: int) -> Awaitable[None] | None:
        for _ in range(most):
            if not self._current_changes and not self._take_next():
                return None
            change = self._current_changes[0]
            try:
                outcome = self._handler(change)
            except (asyncio.CancelledError, Exception) as error:  # noqa: BLE001 - as above
                self._report(change, error)
            else:
                if outcome is not None and inspect.isawaitable(outcome):
                    return outcome
            self.delivered += 1
            self._current_changes.popleft()
        if not self._current_changes and not self._in_delivery:
            self._finish_batch()
        return None

    async def await_outcome(self, outcome: Awaitable[None]) -> None:
        """Wait for the awaitable that the last call of the handler returned."""
        change = self._current_changes[0]
        try:
            await outcome
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Not this task was cancelled, but something that the handler waited for.
            self._report(change, error)
        except Exception as error:  # noqa: BLE001 - as above
            self._report(change, error)
        self.delivered += 1
        self._current_changes.popleft()

    def _take_next(self) -> bool:
        """Make the changes of the next object current. Returns False if there are none for now."""
        while True:
            while self._next:
                # Popped one by one: a change of an object that is still in delivery needs no second notification.
                key = self._next.popleft()
                known = self._in_delivery.pop(key)
                changes = list_changes(known, self._cache.get_state(key), self._deletions.pop(key, None))
                if changes:
                    self._current_changes.extend(changes)
                    return True
            self._finish_batch()
            if not self._has_work:
                return False
            self._take_batch()
            self._next.extend(self._in_delivery)

    def _take_batch(self) -> None:
        """Take the next batch: some of the initial objects, or else everything that is pending."""
        while self._initial_names:
            namespace, names = next(iter(self._initial_names.items()))
            some = tuple(islice(names, _INITIAL_AT_ONCE))
            if len(some) == len(names):
                del self._initial_names[namespace]
            else:
                for name in some:
                    del names[name]
            if some:
                self._in_delivery = {(namespace, name): None for name in some}
                return
        self._has_work = False
        self._in_delivery, self._deletions = self._pending.known, self._pending.deletions
        self._pending = PendingNotifications(self._cache)
        self._is_busy = True

    def _finish_batch(self) -> None:
        if not self._is_busy:
            return
        self._is_busy = False
        if self._batches_to_sync:
            self._batches_to_sync -= 1
            if self._batches_to_sync:
                # The next batch may be empty, and is needed nevertheless.
                self._has_work = True
            else:
                self._synced.set()

    def _report(self, change: Change[V], error: BaseException) -> None:
        self.failures += 1
        log.error(
            "informer.handler_failed",
            handler=self.name,
            change=type(change).__name__,
            object=str(change.key),
            error=f"{type(error).__name__}: {error}"[:500],
            failures=self.failures,
        )
