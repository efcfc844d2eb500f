"""Fair queueing of requests to an API server in the same process, as API Priority and Fairness does.

One event loop runs the server, the cluster and its clients: a controller that creates five hundred pods at once would
delay a user's `get`, and every other component as well. So only a limited number of requests runs at a time, and the
rest of a burst waits. Waiting requests are admitted round-robin by component, not by arrival: one lease does not wait
behind five hundred pods. Events come last, because nothing depends on them: they are admitted when nothing else waits,
and now and then nevertheless; their recorders drop what has waited too long.

All components share one `FairQueue`, each through its own `FairQueueTransport`. Watches are not queued.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from plimsoll.kube.transport import Request, Response, Transport

_LEASES: Final = "/apis/coordination.k8s.io/"
_EVENTS: Final = "events"
# One of so many slots goes to an event while others wait.
_REQUESTS_PER_EVENT: Final = 8


class FairQueue:
    """Admits a limited number of requests, round-robin by component; the requests of one component keep their order."""

    def __init__(self, *, at_once: int) -> None:
        self._free = at_once
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # parts, the next one first
        self._without_event = 0

    @asynccontextmanager
    async def admit(self, part: str) -> AsyncIterator[None]:
        await self._enter(part)
        try:
            yield
        finally:
            self._free += 1
            self._admit_next()

    async def _enter(self, part: str) -> None:
        if self._free and not self._waiting:
            self._free -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(part, deque()).append(place)
        self._admit_next()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                # The slot was granted already: pass it on.
                self._free += 1
            self._admit_next()
            raise

    def _admit_next(self) -> None:
        while self._free and self._waiting:
            place = self._pop_next()
            if not place.done():
                self._free -= 1
                place.set_result(None)

    def _pop_next(self) -> asyncio.Future[None]:
        part = self._choose_next_part()
        queue = self._waiting.pop(part)
        place = queue.popleft()
        if queue:
            self._waiting[part] = queue
        return place

    def _choose_next_part(self) -> str:
        others = next((part for part in self._waiting if part != _EVENTS), _EVENTS)
        if others == _EVENTS or (_EVENTS in self._waiting and self._without_event >= _REQUESTS_PER_EVENT):
            self._without_event = 0
            return _EVENTS
        self._without_event += 1
        return others


class FairQueueTransport:
    """A transport that queues the requests of one component before another transport, which it does not close."""

    def __init__(self, inner: Transport, queue: FairQueue, *, part: str) -> None:
        self._inner = inner
        self._queue = queue
        self._part = part

    async def send(self, call: Request) -> Response:
        if call.is_stream:
            return await self._inner.send(call)
        async with self._queue.admit(self._get_part(call)):
            return await self._inner.send(call)

    async def aclose(self) -> None:
        """Nothing of our own."""

    def _get_part(self, call: Request) -> str:
        if call.path.startswith(_LEASES):
            return f"leases of {self._part}"
        return _EVENTS if _parse_resource(call.path) == "events" else self._part


def _parse_resource(path: str) -> str:
    """The plural of what a call is about; a namespace may be called like one."""
    parts = path.strip("/").split("/")
    parts = parts[3:] if parts[0] == "apis" else parts[2:]
    if parts[:1] == ["namespaces"] and len(parts) > len(("namespaces", "its name")):
        parts = parts[2:]
    return parts[0] if parts else ""
