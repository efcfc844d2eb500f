"""Changes of objects, and the watch events made from them.

A `Change` is what the history keeps: an object's state before and after a write. An `Event` depends on the watcher's
selector: an object that no longer matches is DELETED for that watcher, one that begins to match is ADDED. The three
possible events of a change are made at most once and shared by all watchers, and so are their encoded forms.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING, Final
from weakref import ref

import msgspec

from plimsoll.local.apiserver.storage.objects import Key, Stored, set_revision

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    Matches = Callable[[Stored], bool]


class EventType(StrEnum):
    """How Kubernetes names what happened. Bookmarks and errors are the handlers' to send."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


_OPENING: Final = {kind: f'{{"type":"{kind.value}","object":'.encode() for kind in EventType}


class EncodingCache:
    """Bounds what the encoded forms of events hold on to: the oldest are dropped, and made again on demand.

    It keeps no event alive: an event that history and watchers have dropped takes its encoded forms with it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: deque[tuple[ref[Event], int]] = deque()

    def keep(self, event: Event, size: int) -> None:
        self._kept.append((ref(event), size))
        self._bytes += size
        while self._kept and (self._bytes > self._max_bytes or self._kept[0][0]() is None):
            kept, freed = self._kept.popleft()
            oldest = kept()
            if oldest is not None:
                oldest.forget_encodings()
            self._bytes -= freed


class Event:
    """What a watcher receives. `revision` is the write's; the object's metadata.resourceVersion equals it."""

    __slots__ = ("__weakref__", "_encodings", "_last", "_memory", "_object", "_wire", "revision", "type")

    def __init__(self, kind: EventType, revision: int, last: Stored, memory: EncodingCache) -> None:
        self.type = kind
        self.revision = revision
        self._last = last
        self._memory = memory
        self._object: Stored | None = None
        self._wire: bytes | None = None
        self._encodings: dict[Hashable, bytes] | None = None

    def __repr__(self) -> str:
        return f"Event({self.type.value} {self._last.key.path} {self.revision})"

    @property
    def object(self) -> Stored:
        """The object to send. Of a DELETED event the last state in sight, under the revision of what ended it."""
        if self.type is not EventType.DELETED:
            return self._last
        if self._object is None:
            made = self._object = set_revision(self._last, self.revision)
            self._memory.keep(self, len(made.data))
            return made
        return self._object

    @property
    def wire(self) -> bytes:
        """`{"type":…,"object":…}` and a newline: a frame of a watch answer."""
        if self._wire is None:
            wire = self._wire = b"%b%b}\n" % (_OPENING[self.type], self.object.data)
            self._memory.keep(self, len(wire))
            return wire
        return self._wire

    def get_encoding(self, form: Hashable) -> bytes | None:
        """The event in another form (another version), if one watcher has had it encoded."""
        return self._encodings.get(form) if self._encodings is not None else None

    def keep_encoding(self, form: Hashable, data: bytes) -> None:
        """Keep what the event is in another form, for the other watchers."""
        if self._encodings is None:
            self._encodings = {}
        self._encodings[form] = data
        self._memory.keep(self, len(data))

    def forget_encodings(self) -> None:
        self._object = self._wire = self._encodings = None


class Change(msgspec.Struct, gc=False, eq=False):
    """One write of one object. At least one of `previous` and `current` is there."""

    revision: int
    path: str
    previous: Stored | None
    current: Stored | None
    at_s: float
    """When it was applied, on the clock that never goes back: what history's age limit is measured with."""
    known_plain: Event | None = None
    """What `build_plain_event` gives, once it was asked for."""
    _entering: Event | None = None
    _leaving: Event | None = None

    @property
    def last(self) -> Stored:
        last = self.current or self.previous
        assert last is not None
        return last

    @property
    def key(self) -> Key:
        return self.last.key

    @property
    def superseded_bytes(self) -> int:
        """What only history keeps alive: the state before. The state after is live, or the next change's before."""
        return len(self.previous.data) if self.previous is not None else 0

    def build_plain_event(self, memory: EncodingCache) -> Event:
        """What a watcher without a selector sees."""
        if self.known_plain is None:
            if self.current is None:
                kind = EventType.DELETED
            else:
                kind = EventType.MODIFIED if self.previous is not None else EventType.ADDED
            self.known_plain = Event(kind, self.revision, self.last, memory)
        return self.known_plain

    def build_event(self, matches: Matches, memory: EncodingCache) -> Event | None:
        """What a watcher with a selector sees, or none if the object was and is out of its sight."""
        before = self.previous is not None and matches(self.previous)
        after = self.current is not None and matches(self.current)
        if after and not before and self.previous is not None:
            return self._build_added(memory)
        if before and not after and self.current is not None:
            return self._build_deleted(memory)
        return self.build_plain_event(memory) if before or after else None

    def _build_added(self, memory: EncodingCache) -> Event:
        if self._entering is None:
            self._entering = Event(EventType.ADDED, self.revision, self.last, memory)
        return self._entering

    def _build_deleted(self, memory: EncodingCache) -> Event:
        """Carries the state that still matched (recorded from a real server: golden watch-005)."""
        if self._leaving is None:
            assert self.previous is not None
            self._leaving = Event(EventType.DELETED, self.revision, self.previous, memory)
        return self._leaving
