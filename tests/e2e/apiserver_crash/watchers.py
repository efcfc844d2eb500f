"""Clients that follow a resource and, whenever they are cut off, go on from the last revision they saw."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.e2e.apiserver_crash.acknowledged_writes import NAMESPACE, Event, event_of, is_even, revision_of
from tests.e2e.apiserver_crash.connections import LOST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.e2e.apiserver.raw_clients import Client
    from tests.e2e.apiserver_crash.acknowledged_writes import Json, Write
    from tests.e2e.apiserver_crash.connections import ConnectionSettings


class Watcher:
    def __init__(self, resource: str, *, everywhere: bool = False, only_even: bool = False) -> None:
        self.resource = resource
        self.only_even = only_even
        self.seen = 0
        """The revision it goes on from."""
        self.reported: list[Event] = []
        self.resumptions = 0
        place = "" if everywhere else f"namespaces/{NAMESPACE}/"
        selector = "&labelSelector=parity%3Deven" if only_even else ""
        self._path = f"/api/v1/{place}{resource}?watch=1{selector}"
        self._client: Client | None = None
        self._half_line = b""

    async def resume(self, session: ConnectionSettings) -> None:
        self._client = await session.connected()
        self._half_line = b""
        await self._client.send(
            f"GET {self._path}&resourceVersion={self.seen} HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {session.token}\r\n\r\n".encode()
        )
        status, _ = await self._client.response_head()
        assert status == 200
        self.resumptions += 1

    async def catch_up(self, revision: int) -> None:
        while self.seen < revision:
            assert await self._take(), "the watch ended by itself"

    async def follow(self, session: ConnectionSettings, *, hang_up_after: int) -> bool:
        """Until the server ends it; False if that was in the middle. Goes away once under way, and comes back."""
        enough = len(self.reported) + hang_up_after
        try:
            while len(self.reported) < enough:
                if not await self._take():
                    return True
            await self.hang_up()
            if not await self._came_back(session):
                return True
            while await self._take():
                pass
        except LOST:
            return False
        return True

    async def _came_back(self, session: ConnectionSettings) -> bool:
        """False if the server went first."""
        try:
            await self.resume(session)
        except LOST:
            return False
        return True

    async def hang_up(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _take(self) -> bool:
        """Take what comes next; False at the proper end of the stream. Half a line was not delivered."""
        assert self._client is not None
        chunk = await self._client.chunk()
        if chunk is None:
            assert not self._half_line
            return False
        *lines, self._half_line = (self._half_line + chunk).split(b"\n")
        for line in lines:
            self._hear(json.loads(line))
        return True

    def _hear(self, frame: Json) -> None:
        kind, obj = frame["type"], frame["object"]
        assert kind in {"ADDED", "MODIFIED", "DELETED"}, frame  # an ERROR would be 410, and nothing was compacted
        event = Event(kind, revision_of(obj), obj["metadata"]["name"], obj)
        assert event.revision > self.seen, "told twice, or out of order"
        self.seen = event.revision
        self.reported.append(event)

    def check(self, history: Iterable[Write]) -> None:
        """Did it receive everything since the last check, once, in order, as it was written? Then begin anew."""
        events = (event_of(write, self._sees) for write in history if write.key.resource == self.resource)
        expected = [event for event in events if event is not None]
        outlines = [[event[:3] for event in events] for events in (self.reported, expected)]
        assert outlines[0] == outlines[1]
        assert self.reported == expected
        self.reported.clear()

    def _sees(self, obj: Json) -> bool:
        return is_even(obj) or not self.only_even
