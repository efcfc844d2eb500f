"""The stream of changes of the map: at most one per second, encoded once for all browsers.

A browser first gets the whole map, then changes. One that reads too slowly gets the whole map again instead of a queue
that grows.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from plimsoll.console.cluster_map.cluster_map import ClusterMap
    from plimsoll.core.clock import Clock

    NewestEntry = Callable[[], Awaitable[int]]
    """The number of the newest entry of the journal."""

_PERIOD_S: Final = 1.0
_KEPT_S: Final = 60.0
"""How long the map is kept after the last reader left: pages are reloaded."""
_QUEUED: Final = 5
_QUIET_PERIODS: Final = 15
"""Periods without a change after which a comment shows that the connection lives."""
ALIVE: Final = b": alive\n\n"


class Subscription:
    """The connection of a browser. `is_behind`: it has to get the whole map again."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUED)
        self.is_behind = True

    def push(self, event: bytes | None) -> None:
        """Queue an event; None ends the stream. A full queue is emptied: the whole map replaces what was in it."""
        if self.events.full():
            self.is_behind = True
            while not self.events.empty():
                self.events.get_nowait()
        self.events.put_nowait(event)


class ChangeFeed:
    """Sends the changes of a map to all that are connected. `run` is a service."""

    def __init__(self, cluster_map: ClusterMap, newest_entry: NewestEntry, *, clock: Clock) -> None:
        self._map = cluster_map
        self._newest_entry = newest_entry
        self._clock = clock
        self._subscriptions: set[Subscription] = set()
        self._connected = asyncio.Event()
        self._last_read_s = 0.0
        self._last_number = 0

    @property
    def subscribers(self) -> int:
        return len(self._subscriptions)

    @property
    def is_map_kept(self) -> bool:
        return self._map.is_kept

    async def read_snapshot(self) -> bytes:
        """The whole map, for a reader that asks once."""
        await self._keep_map()
        return self._map.encode_snapshot()

    async def subscribe(self) -> AsyncIterator[bytes]:
        """Server-sent events until the browser leaves."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        self._connected.set()
        try:
            await self._keep_map()
            while True:
                if subscription.is_behind:
                    subscription.is_behind = False
                    yield format_event("snapshot", self._map.encode_snapshot())
                event = await subscription.events.get()
                if event is None:
                    return
                yield event
        finally:
            self._subscriptions.discard(subscription)
            self._last_read_s = self._clock.monotonic_s()

    async def run(self) -> None:
        """Sends changes once per second while a browser is connected; waits while none is. Its end ends all streams."""
        quiet = 0
        try:
            while True:
                await self._connected.wait()
                await self._clock.sleep(_PERIOD_S)
                events = await self._collect()
                quiet = 0 if events else quiet + 1
                if quiet >= _QUIET_PERIODS:
                    events, quiet = [ALIVE], 0
                self._push(events)
                self._forget_unused()
        finally:
            self._push([None])

    def _push(self, events: Sequence[bytes | None]) -> None:
        for subscription in self._subscriptions:
            for event in events:
                subscription.push(event)

    async def _collect(self) -> list[bytes]:
        events: list[bytes] = []
        changes = self._map.take_changes()
        if changes is not None:
            events.append(format_event("changes", changes))
        number = await self._newest_entry()
        if number != self._last_number:
            self._last_number = number
            events.append(format_event("decision", b"%d" % number))
        return events

    async def _keep_map(self) -> None:
        self._last_read_s = self._clock.monotonic_s()
        self._connected.set()
        await self._map.fill()

    def _forget_unused(self) -> None:
        if not self._subscriptions and self._clock.monotonic_s() - self._last_read_s > _KEPT_S:
            self._connected.clear()
            self._map.drop()


def format_event(name: str, data: bytes) -> bytes:
    """An event of the stream. JSON has no line breaks."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)
