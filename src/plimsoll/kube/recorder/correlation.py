"""Event correlation: an event becomes a new object, a higher count of an old one, part of a combined one, or nothing.

The rules and numbers of client-go's event correlator, as a pure state machine: occurrences and times in, entries out.

* The same thing (object, type, reason, message) within the window after the last time counts up one event.
* After a number of different messages with one object, type and reason within the window, further new ones share one
  event, marked as combined. client-go forgets a random message then; we keep the first ones, so that the same
  history gives the same events.
* An object may cause `burst` writes at once and one more every `refill_s`. Further events are dropped as chatter. The
  budget is checked before anything is counted, so that an event is either on the server or counted as dropped.

The number of remembered keys is limited; the least recently used key is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from plimsoll.core.values import Value
from plimsoll.kube.recorder.event_objects import MESSAGE_BYTES, cut
from plimsoll.kube.requests.rate_limiter import TokenBucket

if TYPE_CHECKING:
    from plimsoll.kube.recorder.event_objects import Occurrence

COMBINED: Final = "(combined from similar events): "

Key = tuple[str, ...]
V = TypeVar("V")


class CorrelationSettings(Value):
    """Limits of the correlator, with client-go's numbers."""

    window_s: float = 600.0
    similar: int = 10
    """From this many different messages on they are combined."""
    burst: int = 25
    refill_s: float = 300.0
    remembered: int = 4096


class Written(Value):
    """An event that is on the server, as we left it."""

    name: str
    count: int
    first_at: datetime


class Entry(Value):
    """What to write for an occurrence: `before` is the event to count up, None asks for a new one."""

    key: Key
    message: str
    before: Written | None


def build_object_key(occurrence: Occurrence) -> Key:
    """The key of the object of an event. Each object has one budget."""
    about = occurrence.about
    return (about.kind, about.namespace, about.name, about.uid, about.api_version)


def build_similar_key(occurrence: Occurrence) -> Key:
    """The key that similar events share."""
    return (*build_object_key(occurrence), occurrence.type.value, occurrence.reason)


def build_equality_key(occurrence: Occurrence) -> Key:
    """The key that equal events share."""
    return (*build_similar_key(occurrence), occurrence.about.field_path, occurrence.message)


class Correlator:
    """Remembers recently written events. Times are seconds of one monotonic clock."""

    def __init__(self, settings: CorrelationSettings) -> None:
        self._settings = settings
        self._similar: _Lately[_Similar] = _Lately(settings.remembered)
        self._written: _Lately[tuple[float, Written]] = _Lately(settings.remembered)
        self._budgets: _Lately[TokenBucket] = _Lately(settings.remembered)

    def build_entry(self, occurrence: Occurrence, now_s: float, *, is_combined: bool = False) -> Entry | None:
        """What to write; None if the object has used up its budget. `is_combined`: it stands for several already."""
        if not self._get_budget(build_object_key(occurrence)).take(now_s):
            return None
        what = build_similar_key(occurrence)
        if self._is_one_too_many(what, occurrence.message, now_s) or is_combined:
            key: Key = ("combined", *what)
            message = cut(COMBINED + occurrence.message, MESSAGE_BYTES)
        else:
            key = ("one", *build_equality_key(occurrence))
            message = occurrence.message
        return Entry(key=key, message=message, before=self._get_last_written(key, now_s))

    def record_write(self, entry: Entry, written: Written, now_s: float) -> None:
        self._written.put(entry.key, (now_s, written))

    def _get_budget(self, about: Key) -> TokenBucket:
        budget = self._budgets.get(about)
        if budget is None:
            budget = TokenBucket(per_s=1 / self._settings.refill_s, burst=self._settings.burst)
            self._budgets.put(about, budget)
        return budget

    def _is_one_too_many(self, what: Key, message: str, now_s: float) -> bool:
        similar = self._similar.get(what)
        if similar is None or now_s - similar.last_s > self._settings.window_s:
            similar = _Similar()
            self._similar.put(what, similar)
        similar.last_s = now_s
        if message not in similar.messages:
            if len(similar.messages) + 1 >= self._settings.similar:
                return True
            similar.messages.add(message)
        return False

    def _get_last_written(self, key: Key, now_s: float) -> Written | None:
        last_s, written = self._written.get(key) or (0.0, None)
        return written if now_s - last_s <= self._settings.window_s else None


class _Similar:
    """The messages of one object, type and reason, and the time of the last one."""

    def __init__(self) -> None:
        self.messages: set[str] = set()
        self.last_s = 0.0


class _Lately(Generic[V]):
    """A bounded map; the least recently used key is removed first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Key, V] = OrderedDict()

    def get(self, key: Key) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Key, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._size:
            self._values.popitem(last=False)
