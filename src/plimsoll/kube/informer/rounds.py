"""Goes round the handlers that have something to hear: one task for all, as long as nobody has to be waited for.

A task for each handler was woken for each event: a dozen handlers made a dozen turns of the event loop of it. Here one
turn tells them all. A handler that has to be awaited gets a task of its own until it has heard everything, so that
nobody waits for it. Used by the informer; what is told, and what comes after a cancellation, is `handlers`' business.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from plimsoll.kube.informer.handlers import HandlerFeed

# Handlers are Python, not C: a few of their calls take as long as decoding hundreds of objects.
CALLS_AT_ONCE: Final = 32


class Rounds:
    """Which feeds of one informer have work. `run` tells it to their handlers."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._wanting: dict[HandlerFeed[Any], None] = {}
        self._apart: set[HandlerFeed[Any]] = set()
        self._sleeping: asyncio.Future[None] | None = None

    def want(self, feeds: Iterable[HandlerFeed[Any]]) -> None:
        """They have something to tell, and had nothing before."""
        for feed in feeds:
            if feed not in self._apart:
                self._wanting[feed] = None
        if self._wanting and self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(None)

    async def run(self, feeds: Iterable[HandlerFeed[Any]], group: asyncio.TaskGroup) -> None:
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

    async def _go_on(self, feed: HandlerFeed[Any], outcome: Awaitable[None] | None) -> None:
        """Wait for a handler, and for all it hears until it has caught up."""
        while outcome is not None or feed.has_work:
            if outcome is not None:
                await feed.heard(outcome)
            else:
                await asyncio.sleep(0)
            outcome = feed.tell_some(CALLS_AT_ONCE)
        self._apart.discard(feed)
