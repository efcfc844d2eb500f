"""This process's own writes that its caches do not show yet.

A cache lags behind the server. A controller that acts again on a stale cache would create a pod or a machine twice.
There are two remedies, named as in client-go:

* `Expectations`: the controller skips an owner until the cache shows everything that was written for it.
* `MutationCache`: the controller reads its own writes on top of the cache, and need not wait.

Both are memory only: a new process starts with caches that show everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from plimsoll.kube.informer.events import Key, V, get_key, get_view
from plimsoll.kube.informer.store.cache_updater import is_newer
from plimsoll.objects.api.meta import WireObject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.core.clock import Clock
    from plimsoll.kube.informer import Informer

T = TypeVar("T", bound=WireObject)

# As client-go: a write that is not observed within this time never will be; acting on the cache is the lesser evil.
_TIMEOUT_S: Final = 300.0
# Enough writes to be worth a sweep for those that the cache shows by now.
_SWEEP_AT: Final = 64

RECHECK_S: Final = 5.0
"""When to check again while writes are unobserved. Their events wake a controller earlier, with one exception: an
object that was created and deleted between two deliveries of the informer causes no event."""


class Mutations(Generic[T]):
    """The objects as the server answered our last write to each, until a newer version of it is observed."""

    def __init__(self) -> None:
        self._written: dict[Key, T] = {}
        self._replaced: dict[Key, set[str]] = {}
        """Versions that our writes replaced, for versions that cannot be compared as numbers."""

    def record_write(self, written: T, *, replaced: str = "") -> None:
        """Record the server's answer to a write, and the version that the write was based on."""
        key = get_key(written)
        self._written[key] = written
        if replaced:
            self._replaced.setdefault(key, set()).add(replaced)

    def get_newest(self, cached: T) -> T:
        """The cached object, or our own write if that is newer."""
        key = get_key(cached)
        written = self._written.get(key)
        if written is None:
            return cached
        version = cached.metadata.resource_version
        is_older = version in self._replaced.get(key, ()) or _is_newer(written.metadata.resource_version, version)
        return written if is_older else cached

    def overlay(self, listed: Iterable[T]) -> tuple[T, ...]:
        """The complete list of a cache with our own writes in it.

        Writes that the cache shows, and writes to objects that are not listed, are forgotten.
        """
        if not self._written:
            return tuple(listed)
        found = {get_key(cached): (cached, self.get_newest(cached)) for cached in listed}
        for key in list(self._written):
            cached, newest = found.get(key, (None, None))
            if newest is cached:
                self._forget(key)
        return tuple(newest for _, newest in found.values())

    def _forget(self, key: Key) -> None:
        self._written.pop(key, None)
        self._replaced.pop(key, None)


class MutationCache(Mutations[T]):
    """The cache of an informer with our own writes on top, created and removed objects included."""

    def __init__(self, informer: Informer[T]) -> None:
        super().__init__()
        self._informer = informer
        self._removed: set[str] = set()
        self._unobserved: dict[Key, str] = {}
        """The version of our last write to an object, until the informer delivers it."""
        self._sweep_at = _SWEEP_AT

    def __len__(self) -> int:
        """The number of own writes that the cache does not show yet."""
        self._sweep()
        return len(self._written)

    def record_write(self, written: T, *, replaced: str = "") -> None:
        if len(self._written) + len(self._unobserved) >= self._sweep_at:
            self._sweep()
            self._sweep_at = max(_SWEEP_AT, 2 * (len(self._written) + len(self._unobserved)))
        super().record_write(written, replaced=replaced)
        self._unobserved[get_key(written)] = written.metadata.resource_version

    def record_deletion(self, old: T) -> None:
        """Record that we deleted the object."""
        key = get_key(old)
        self._forget(key)
        self._unobserved.pop(key, None)
        self._removed.add(old.metadata.uid)

    def is_own_write(self, delivered: T) -> bool:
        """Whether the informer delivers a state that we wrote ourselves. True once per write."""
        key = get_key(delivered)
        if self._unobserved.get(key) != delivered.metadata.resource_version:
            return False
        del self._unobserved[key]
        return True

    def get(self, name: str, namespace: str = "") -> T | None:
        cached = self._informer.cache.get(name, namespace)
        if cached is not None:
            return None if cached.metadata.uid in self._removed else self.get_newest(cached)
        written = self._written.get(Key(namespace, name))
        return written if written is not None and self._is_ahead(written) else None

    def list(self) -> tuple[T, ...]:
        """All objects, in the order of namespaces and names."""
        self._sweep()
        cached = self._informer.cache.list()
        if self._removed:
            self._removed &= {value.metadata.uid for value in cached}
        if not self._written and not self._removed:
            return tuple(sorted(cached, key=get_key))
        found = {get_key(value): self.get_newest(value) for value in cached if value.metadata.uid not in self._removed}
        return tuple(value for _, value in sorted((self._written | found).items()))

    def _sweep(self) -> None:
        """Forget the writes that the cache shows by now, or that were deleted since."""
        for key in [key for key, written in self._written.items() if not self._is_ahead(written)]:
            self._forget(key)
        for key in self._unobserved.keys() - self._written.keys():
            if self._informer.cache.get(key.name, key.namespace) is None:
                del self._unobserved[key]

    def _is_ahead(self, written: T) -> bool:
        return is_newer(written.metadata.resource_version, self._informer.position)


class _Write(NamedTuple):
    uid: str
    version: str
    """Empty for a deletion."""
    at_s: float


class Expectations(Generic[V]):
    """Writes to the objects of one informer that the cache does not show yet, by the uid of the owner.

    A write is observed when the cache has reached its version. A deletion is observed when the object is gone, or has
    a deletion timestamp.
    """

    def __init__(self, informer: Informer[V], *, clock: Clock) -> None:
        self._informer = informer
        self._clock = clock
        self._unobserved: dict[str, dict[Key, _Write]] = {}
        self._swept_at_s = clock.monotonic_s()

    def expect_write(self, owner: str, written: WireObject) -> None:
        """An object was created or patched, and now has this version."""
        self._expect(owner, written, written.metadata.resource_version)

    def expect_deletion(self, owner: str, deleted: WireObject) -> None:
        """An object was deleted, or was found to be gone."""
        self._expect(owner, deleted, "")

    def are_fulfilled(self, owner: str) -> bool:
        """Whether the cache shows everything that was written for `owner`."""
        writes = self._unobserved.get(owner)
        if writes is None:
            return True
        position = self._informer.position
        for key in [key for key, write in writes.items() if self._is_observed(key, write, position)]:
            del writes[key]
        if writes:
            return False
        del self._unobserved[owner]
        return True

    def has_any(self, owner: str) -> bool:
        """Whether something was written for `owner` since `are_fulfilled` last returned True."""
        return owner in self._unobserved

    def is_awaiting(self, owner: str, key: Key) -> bool:
        """Whether a write to this object was made for `owner` and not checked since."""
        return key in self._unobserved.get(owner, ())

    def _expect(self, owner: str, value: WireObject, version: str) -> None:
        now_s = self._clock.monotonic_s()
        if now_s - self._swept_at_s > _TIMEOUT_S:
            self._sweep(now_s)
        self._unobserved.setdefault(owner, {})[get_key(value)] = _Write(value.metadata.uid, version, now_s)

    def _sweep(self, now_s: float) -> None:
        """Drop expired writes: `are_fulfilled` is no longer called for an owner that is gone."""
        self._swept_at_s = now_s
        for owner, writes in list(self._unobserved.items()):
            recent = {key: write for key, write in writes.items() if not _is_expired(write, now_s)}
            if recent:
                self._unobserved[owner] = recent
            else:
                del self._unobserved[owner]

    def _is_observed(self, key: Key, write: _Write, position: str) -> bool:
        cached: Any = self._informer.cache.get(key.name, key.namespace)
        metadata = None if cached is None else get_view(cached).metadata
        is_there = metadata is not None and metadata.uid == write.uid
        if not write.version:
            observed = not is_there or (metadata is not None and metadata.deletion_timestamp is not None)
        elif metadata is not None and is_there and metadata.resource_version == write.version:
            observed = True
        else:
            observed = _is_at_least(position, write.version)
        return observed or _is_expired(write, self._clock.monotonic_s())


def _is_expired(write: _Write, now_s: float) -> bool:
    return now_s - write.at_s > _TIMEOUT_S


def _is_at_least(position: str, version: str) -> bool:
    """Whether `position` is at least `version`; False if they cannot be compared as numbers."""
    return position.isdecimal() and version.isdecimal() and int(position) >= int(version)


def _is_newer(version: str, other: str) -> bool:
    """Whether `version` is newer; False if they cannot be compared as numbers."""
    return version != other and _is_at_least(version, other)
