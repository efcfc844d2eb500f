"""The handlers of one informer: what each has still to receive, and the loop that delivers it.

Handlers that have received everything share one set of pending notifications until they have received that as well. A
handler that is in the middle of a delivery, because it is awaited or has much to catch up with, has a set of its own.

One task delivers to all handlers as long as none has to be awaited: with a task per handler, each event would cost as
many iterations of the event loop as there are handlers. A handler that has to be awaited gets a task of its own until
it has caught up, so that no other handler waits for it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Generic

from plimsoll.kube.informer.delivery.pending import PendingNotifications
from plimsoll.kube.informer.events import V

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from plimsoll.kube.informer.delivery.handler import HandlerRunner
    from plimsoll.kube.informer.events import Deletion, KeyTuple
    from plimsoll.kube.informer.store.cache import Cache
    from plimsoll.objects.codec.decode_problems import BadObject


class HandlerBroadcaster(Generic[V]):
    """The runners of an informer's handlers, in the order in which they were added (client-go: sharedProcessor)."""

    def __init__(self, cache: Cache[V], delivery: DeliveryLoop) -> None:
        self.runners: list[HandlerRunner[V]] = []
        self._cache = cache
        self._delivery = delivery
        self._unshared: dict[HandlerRunner[V], None] = {}
        self._shared: list[PendingNotifications[V]] = []
        # Shared by the runners that wait for the next change.
        self._idle: PendingNotifications[V] = PendingNotifications(cache)

    def add(self, runner: HandlerRunner[V]) -> None:
        """The runner shares no notifications before its handler has received the initial objects."""
        self.runners.append(runner)
        self._unshared[runner] = None

    def distribute(self, key: KeyTuple, before: V | BadObject | None, deletion: Deletion[V] | None = None) -> None:
        """Record for every handler that the object changed from `before` to its state in the cache."""
        if self._idle.members:
            self._wake_idle()
        for pending in self._shared:
            pending.add(key, before, deletion)
        for runner in self._unshared:
            runner.add(key, before, deletion)

    def _wake_idle(self) -> None:
        """Wake the runners that had nothing to deliver."""
        waiting = self._idle
        self._idle = PendingNotifications(self._cache)
        self._shared = [
            *(pending for pending in self._shared if pending.members),
            waiting,
        ]
        self._delivery.wake([runner for runner in self.runners if runner in waiting.members])

    # ---- sharing

    def share_pending(self, runner: HandlerRunner[V], delivered: PendingNotifications[V]) -> PendingNotifications[V]:
        """Leave `delivered`, which is or will be delivered completely. Returns the set that the runner joins."""
        if runner in self._unshared:
            del self._unshared[runner]
        else:
            del delivered.members[runner]
        self._idle.members[runner] = None
        return self._idle

    def separate(self, runner: HandlerRunner[V], shared: PendingNotifications[V]) -> PendingNotifications[V]:
        """Leave the shared set. Returns a set of the runner's own with the notifications it has still to deliver."""
        del shared.members[runner]
        self._unshared[runner] = None
        return shared.copy()


# A few calls of Python handlers take as long as decoding hundreds of objects in C.
CALLS_AT_ONCE: Final = 32


class DeliveryLoop:
    """Delivers to the handlers of one informer, one after another."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._runnable: dict[HandlerRunner[Any], None] = {}
        self._awaited: set[HandlerRunner[Any]] = set()
        self._wakeup: asyncio.Future[None] | None = None

    def wake(self, runners: Iterable[HandlerRunner[Any]]) -> None:
        """Wake the loop: these runners have notifications, and had none before."""
        for runner in runners:
            if runner not in self._awaited:
                self._runnable[runner] = None
        if self._runnable and self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    async def run(self, runners: Iterable[HandlerRunner[Any]], group: asyncio.TaskGroup) -> None:
        """Deliver until cancelled. `group` runs the tasks of handlers that are awaited, and ends with this loop."""
        self._awaited.clear()
        for runner in runners:
            runner.start()
        calls = 0
        while True:
            await self._wait_for_work()
            runner = next(iter(self._runnable))
            del self._runnable[runner]
            before = runner.delivered
            outcome = runner.deliver_some(CALLS_AT_ONCE)
            calls += runner.delivered - before
            if outcome is not None:
                self._awaited.add(runner)
                group.create_task(self._catch_up(runner, outcome), name=f"informer {self._resource}: {runner.name}")
            elif runner.has_work:
                self._runnable[runner] = None
            if calls >= CALLS_AT_ONCE:
                calls = 0
                await asyncio.sleep(0)

    async def _wait_for_work(self) -> None:
        if self._runnable:
            return
        self._wakeup = asyncio.get_running_loop().create_future()
        try:
            await self._wakeup
        finally:
            self._wakeup = None

    async def _catch_up(self, runner: HandlerRunner[Any], outcome: Awaitable[None] | None) -> None:
        """Await a handler until it has caught up."""
        while outcome is not None or runner.has_work:
            if outcome is not None:
                await runner.await_outcome(outcome)
            else:
                await asyncio.sleep(0)
            outcome = runner.deliver_some(CALLS_AT_ONCE)
        self._awaited.discard(runner)
