"""What this process wrote and its caches do not show yet.

A cache lags behind the server, so a controller that makes a pod and looks again at once would not see it and make
another. Each controller notes its writes here under the uid of the owner it made them for, and does nothing more about
that owner until all of them are seen. It is memory only: a new process starts with caches that show everything.

A write is seen when the cache has come as far as its version. A deletion is seen when the object is gone or marked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from plimsoll.kube.informer.events import V, key_of, view_of

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kube.informer import Informer
    from plimsoll.kube.informer.events import Key
    from plimsoll.objects.api.meta import WireObject

# As client-go: a write that was never seen in this time will not be; acting on the cache is then the lesser evil.
_LONGEST_WAIT_S: Final = 300.0

LOOK_AGAIN_S: Final = 5.0
"""When to look again while writes are unseen. Their events wake a controller earlier, with one exception: an object
that came and went between two looks of the informer makes no event."""


class _Write(NamedTuple):
    uid: str
    version: str
    """Empty: a deletion."""
    at_s: float


class OwnWrites(Generic[V]):
    """Writes to the objects of one informer, by the owner they were made for."""

    def __init__(self, informer: Informer[V], *, clock: Clock) -> None:
        self._informer = informer
        self._clock = clock
        self._unseen: dict[str, dict[Key, _Write]] = {}
        self._swept_at_s = clock.monotonic_s()

    def wrote(self, owner: str, written: WireObject) -> None:
        """An object was created or patched and is now in this version."""
        self._note(owner, written, written.metadata.resource_version)

    def deleted(self, owner: str, gone: WireObject) -> None:
        """An object was deleted, or was found to be gone."""
        self._note(owner, gone, "")

    def are_seen(self, owner: str) -> bool:
        """Whether the cache shows everything that was written for `owner`."""
        writes = self._unseen.get(owner)
        if writes is None:
            return True
        position = self._informer.position
        for key in [key for key, write in writes.items() if self._is_seen(key, write, position)]:
            del writes[key]
        if writes:
            return False
        del self._unseen[owner]
        return True

    def has_any(self, owner: str) -> bool:
        """Whether something was written for `owner` since `are_seen` last said yes."""
        return owner in self._unseen

    def awaits(self, owner: str, key: Key) -> bool:
        """Whether a write to this object was made for `owner` and was not looked at since."""
        return key in self._unseen.get(owner, ())

    def _note(self, owner: str, value: WireObject, version: str) -> None:
        now_s = self._clock.monotonic_s()
        if now_s - self._swept_at_s > _LONGEST_WAIT_S:
            self._sweep(now_s)
        self._unseen.setdefault(owner, {})[key_of(value)] = _Write(value.metadata.uid, version, now_s)

    def _sweep(self, now_s: float) -> None:
        """Drop what has waited too long: nobody asks any more about an owner that is gone."""
        self._swept_at_s = now_s
        for owner, writes in list(self._unseen.items()):
            recent = {key: write for key, write in writes.items() if not _is_given_up(write, now_s)}
            if recent:
                self._unseen[owner] = recent
            else:
                del self._unseen[owner]

    def _is_seen(self, key: Key, write: _Write, position: str) -> bool:
        cached: Any = self._informer.cache.get(key.name, key.namespace)
        metadata = None if cached is None else view_of(cached).metadata
        is_there = metadata is not None and metadata.uid == write.uid
        if not write.version:
            seen = not is_there or (metadata is not None and metadata.deletion_timestamp is not None)
        elif metadata is not None and is_there and metadata.resource_version == write.version:
            seen = True
        else:
            seen = _reaches(position, write.version)
        return seen or _is_given_up(write, self._clock.monotonic_s())


def _is_given_up(write: _Write, now_s: float) -> bool:
    return now_s - write.at_s > _LONGEST_WAIT_S


def _reaches(position: str, version: str) -> bool:
    """Whether a cache at `position` has seen `version`. What is no number cannot be compared: not yet, then."""
    return position.isdecimal() and version.isdecimal() and int(position) >= int(version)
