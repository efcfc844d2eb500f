"""Events that wait to be written: so many places, and what would be one event on the server takes one.

A controller may tell the same thing five thousand times in one turn. If each took a place, it would push out what
others told; so the same is folded while it waits, and of similar ones (one object, type and reason) the first few keep
their own place and all further ones share one, as they will share one event. `recording` asks, `correlation` says what
is the same.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time
from typing import TYPE_CHECKING

import msgspec

from plimsoll.core.values import Value
from plimsoll.kube.recorder.correlation import sameness_of, what_of
from plimsoll.kube.recorder.event_objects import Occurrence  # noqa: TC001 -- the same

if TYPE_CHECKING:
    from plimsoll.kube.recorder.correlation import Key


class QueuedEvent(Value):
    """What happened so many times, as it was the last time. `is_combined`: not always with the same message."""

    last: Occurrence
    first_at: datetime
    times: int = 1
    is_combined: bool = False


class EventQueue:
    """First come, first out; who comes again moves nobody. Without I/O or time."""

    def __init__(self, *, capacity: int, similar: int) -> None:
        self._capacity = capacity
        self._similar = similar
        self._waiting: OrderedDict[Key, QueuedEvent] = OrderedDict()
        self._alike: Counter[Key] = Counter()
        self.events = 0
        """How many there are, the folded ones counted one by one."""

    def add(self, occurrence: Occurrence) -> QueuedEvent | None:
        """Gives what had to go for it: the oldest, because the newest say how things are."""
        self.events += 1
        key = ("one", *sameness_of(occurrence))
        what = what_of(occurrence)
        is_combined = key not in self._waiting and self._alike[what] + 1 >= self._similar
        if is_combined:
            key = ("combined", *what)
        before = self._waiting.get(key)
        if before is not None:
            self._waiting[key] = msgspec.structs.replace(before, last=occurrence, times=before.times + 1)
            return None
        pushed_out = self.take() if len(self._waiting) >= self._capacity else None
        self._waiting[key] = QueuedEvent(last=occurrence, first_at=occurrence.at, is_combined=is_combined)
        if not is_combined:
            self._alike[what] += 1
        return pushed_out

    def take(self) -> QueuedEvent:
        """The one that has waited longest."""
        _, folded = self._waiting.popitem(last=False)
        self.events -= folded.times
        if not folded.is_combined:
            what = what_of(folded.last)
            self._alike[what] -= 1
            if not self._alike[what]:
                del self._alike[what]
        return folded

    def __bool__(self) -> bool:
        return bool(self._waiting)
