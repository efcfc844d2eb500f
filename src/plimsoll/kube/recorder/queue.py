"""Events that wait to be written: a bounded queue in which repeated events share a place.

A controller may report the same event five thousand times in one loop. If each took a place, it would push out the
events of others. So equal events are counted in one place, and of similar events (same object, type and reason) the
first few keep their own place and all others share one, as they will share one event on the server. `correlation`
defines which events are equal.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time
from typing import TYPE_CHECKING

import msgspec

from plimsoll.core.values import Value
from plimsoll.kube.recorder.correlation import build_equality_key, build_similar_key
from plimsoll.kube.recorder.event_objects import Occurrence  # noqa: TC001 -- the same

if TYPE_CHECKING:
    from plimsoll.kube.recorder.correlation import Key


class QueuedEvent(Value):
    """An event and how often it occurred; `last` is the latest. `is_combined`: the messages differ."""

    last: Occurrence
    first_at: datetime
    times: int = 1
    is_combined: bool = False


class EventQueue:
    """A first-in, first-out queue; a repeated event keeps its place. No I/O, no time."""

    def __init__(self, *, capacity: int, similar: int) -> None:
        self._capacity = capacity
        self._similar = similar
        self._waiting: OrderedDict[Key, QueuedEvent] = OrderedDict()
        self._similar_waiting: Counter[Key] = Counter()
        self.events = 0
        """The number of events, each repetition counted."""

    def add(self, occurrence: Occurrence) -> QueuedEvent | None:
        """Return the event that was dropped for it: the oldest, because the newest show the current state."""
        self.events += 1
        key = ("one", *build_equality_key(occurrence))
        what = build_similar_key(occurrence)
        is_combined = key not in self._waiting and self._similar_waiting[what] + 1 >= self._similar
        if is_combined:
            key = ("combined", *what)
        before = self._waiting.get(key)
        if before is not None:
            self._waiting[key] = msgspec.structs.replace(before, last=occurrence, times=before.times + 1)
            return None
        pushed_out = self.take() if len(self._waiting) >= self._capacity else None
        self._waiting[key] = QueuedEvent(last=occurrence, first_at=occurrence.at, is_combined=is_combined)
        if not is_combined:
            self._similar_waiting[what] += 1
        return pushed_out

    def take(self) -> QueuedEvent:
        """Remove the event that has waited longest."""
        _, queued = self._waiting.popitem(last=False)
        self.events -= queued.times
        if not queued.is_combined:
            what = build_similar_key(queued.last)
            self._similar_waiting[what] -= 1
            if not self._similar_waiting[what]:
                del self._similar_waiting[what]
        return queued

    def __bool__(self) -> bool:
        return bool(self._waiting)
