"""All handlers of one informer, and what each of them has still to hear. Told by `tracking`, asked by the informer.

Handlers that have heard everything keep step: they share one backlog until they have heard that as well. One that is
in the middle of something, because it has to be awaited or has much to catch up with, has a backlog of its own.

Goes round the handlers that have something to hear: one task for all, as long as nobody has to be waited for.

A task for each handler was woken for each event: a dozen handlers made a dozen turns of the event loop of it. Here one
turn tells them all. A handler that has to be awaited gets a task of its own until it has heard everything, so that
nobody waits for it. Used by the informer; what is told, and what comes after a cancellation, is `handlers`' business.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Generic

from plimsoll.kube.informer.delivery.pending import PendingNotifications
from plimsoll.kube.informer.events import V

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from plimsoll.kube.informer.delivery.handler import HandlerRunner
    from plimsoll.kube.informer.events import Departure, KeyTuple
    from plimsoll.kube.informer.store.cache import Cache
    from plimsoll.objects.codec.decode_problems import BadObject


class HandlerBroadcaster(Generic[V]):
    """`feeds` are in the order in which they came; that is also the order in which they hear of a change."""

    def __init__(self, cache: Cache[V], rounds: Rounds) -> None:
        self.feeds: list[HandlerRunner[V]] = []
        self._cache = cache
        self._rounds = rounds
        self._alone: dict[HandlerRunner[V], None] = {}
        self._shared: list[PendingNotifications[V]] = []
        # Of those that wait for the next change.
        self._idle: PendingNotifications[V] = PendingNotifications(cache)

    def add(self, feed: HandlerRunner[V]) -> None:
        """It does not keep step before it knows what was there when it came."""
        self.feeds.append(feed)
        self._alone[feed] = None

    def changed(self, key: KeyTuple, before: V | BadObject | None, departure: Departure[V] | None = None) -> None:
        """The object was in state `before` and is now as the cache has it. If it left, `departure` says how."""
        if self._idle.members:
            self._share_anew()
        for backlog in self._shared:
            backlog.changed(key, before, departure)
        for feed in self._alone:
            feed.changed(key, before, departure)

    def _share_anew(self) -> None:
        """Those that had nothing to hear have something now."""
        waiting = self._idle
        self._idle = PendingNotifications(self._cache)
        self._shared = [
            *(pending_notifications for pending_notifications in self._shared if pending_notifications.members),
            waiting,
        ]
        self._rounds.want([feed for feed in self.feeds if feed in waiting.members])

    # ---- told by feeds

    def keep_step(self, feed: HandlerRunner[V], heard: PendingNotifications[V]) -> PendingNotifications[V]:
        """All of `heard` is told or about to be; gives the backlog it has in common with the others from now on."""
        if feed in self._alone:
            del self._alone[feed]
        else:
            del heard.members[feed]
        self._idle.members[feed] = None
        return self._idle

    def go_alone(self, feed: HandlerRunner[V], shared: PendingNotifications[V]) -> PendingNotifications[V]:
        """What happens from now on waits for it apart from the others; gives the backlog for that."""
        del shared.members[feed]
        self._alone[feed] = None
        return shared.copied()


# Handlers are Python, not C: a few of their calls take as long as decoding hundreds of objects.
CALLS_AT_ONCE: Final = 32


class Rounds:
    """Which feeds of one informer have work. `run` tells it to their handlers."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._wanting: dict[HandlerRunner[Any], None] = {}
        self._apart: set[HandlerRunner[Any]] = set()
        self._sleeping: asyncio.Future[None] | None = None

    def want(self, feeds: Iterable[HandlerRunner[Any]]) -> None:
        """They have something to tell, and had nothing before."""
        for feed in feeds:
            if feed not in self._apart:
                self._wanting[feed] = None
        if self._wanting and self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(None)

    async def run(self, feeds: Iterable[HandlerRunner[Any]], group: asyncio.TaskGroup) -> None:
        """Until cancelled. `group` is for those that go on by themselves; it ends with this."""
        self._apart.clear()
        for feed in feeds:
            feed.begin()
        calls = 0
        while True:
            await self._work_comes()
            feed = next(iter(self._wanting))
            del self._wanting[feed]
            before = feed.told
            outcome = feed.tell_some(CALLS_AT_ONCE)
            calls += feed.told - before
            if outcome is not None:
                self._apart.add(feed)
                group.create_task(self._go_on(feed, outcome), name=f"informer {self._resource}: {feed.name}")
            elif feed.has_work:
                self._wanting[feed] = None
            if calls >= CALLS_AT_ONCE:
                calls = 0
                await asyncio.sleep(0)

    async def _work_comes(self) -> None:
        if self._wanting:
            return
        self._sleeping = asyncio.get_running_loop().create_future()
        try:
            await self._sleeping
        finally:
            self._sleeping = None

    async def _go_on(self, feed: HandlerRunner[Any], outcome: Awaitable[None] | None) -> None:
        """Wait for a handler, and for all it hears until it has caught up."""
        while outcome is not None or feed.has_work:
            if outcome is not None:
                await feed.heard(outcome)
            else:
                await asyncio.sleep(0)
            outcome = feed.tell_some(CALLS_AT_ONCE)
        self._apart.discard(feed)
