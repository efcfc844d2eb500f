"""Events are deleted when they have not been written for a while, as kube-apiserver's `--event-ttl` has it.

Without it a store grows for as long as its cluster runs: every pod leaves half a dozen events. Watchers see the
deletions, as those of a real server do.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.local.apiserver.storage import Delete, EventType, Expired, Keep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.local.apiserver.server import Server
    from plimsoll.local.apiserver.storage import Decision, Event, Key, Stored, Watch

EVENTS: Final = "events"
DEFAULT_TTL_S: Final = 3600.0
_MOST_IN_ONE_WRITE: Final = 200


class _Written(NamedTuple):
    """The last write of an event."""

    revision: int
    at_s: float
    """On the clock that never goes back."""


class EventExpiry:
    """A service: runs until it is cancelled."""

    def __init__(self, server: Server, *, ttl_s: float = DEFAULT_TTL_S) -> None:
        self._store = server.store
        self._clock = server.clock
        self._ttl_s = ttl_s
        self._written: dict[Key, _Written] = {}
        """In the order of the times."""

    async def run(self) -> None:
        while True:
            self._record_present()
            with self._store.watch(EVENTS, since=self._store.revision) as changes:
                await self._follow(changes)

    def _record_present(self) -> None:
        """What is there at the start: as old as it says, and at most as old as lets it go at once."""
        now, now_s = self._clock.now(), self._clock.monotonic_s()
        present = [
            (stored.key, _Written(stored.revision, now_s - _compute_age_s(stored.decode_body(), now)))
            for stored in self._store.list(EVENTS).items
        ]
        self._written = dict(sorted(present, key=lambda pair: pair[1].at_s))

    async def _follow(self, changes: Watch) -> None:
        """Until the watch is too far behind to go on."""
        while True:
            await self._expire()
            alarm = self._set_alarm(changes)
            try:
                batch = await changes.wait_for_batch()
            except Expired:
                return
            finally:
                if alarm is not None:
                    alarm.cancel()
            for event in batch:
                self._record(event)

    def _set_alarm(self, changes: Watch) -> asyncio.TimerHandle | None:
        oldest = next(iter(self._written.values()), None)
        if oldest is None:
            return None
        after_s = max(0.0, oldest.at_s + self._ttl_s - self._clock.monotonic_s())
        return asyncio.get_running_loop().call_later(after_s, changes.wake)

    def _record(self, event: Event) -> None:
        key = event.object.key
        self._written.pop(key, None)
        if event.type is not EventType.DELETED:
            self._written[key] = _Written(event.revision, self._clock.monotonic_s())

    async def _expire(self) -> None:
        while due := self._collect_due():
            keys, revisions = list(due), [written.revision for written in due.values()]
            for key in keys:
                del self._written[key]
            await self._store.update_all(keys, partial(_decide, revisions))

    def _collect_due(self) -> dict[Key, _Written]:
        # An alarm set in floats may ring a hair too early.
        latest_s = self._clock.monotonic_s() - self._ttl_s + 1e-6
        oldest = islice(self._written.items(), _MOST_IN_ONE_WRITE)
        return {key: written for key, written in oldest if written.at_s <= latest_s}


def _decide(revisions: Sequence[int], found: Sequence[Stored | None]) -> list[Decision]:
    """One that was written again lives on: its write is on the way to `_record`."""
    pairs = zip(found, revisions, strict=True)
    return [Delete() if stored is not None and stored.revision == seen else Keep() for stored, seen in pairs]


def _compute_age_s(event: dict[str, Any], now: datetime) -> float:
    """How long ago it was written, as far as its own times say; 0 for one that does not say."""
    times = (event["metadata"].get("creationTimestamp"), event.get("lastTimestamp"), event.get("eventTime"))
    series = event.get("series")
    last_seen = series.get("lastObservedTime") if isinstance(series, dict) else None
    moments = [moment for text in (*times, last_seen) if (moment := _parse_time(text)) is not None]
    return max(0.0, (now - max(moments)).total_seconds()) if moments else 0.0


def _parse_time(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
