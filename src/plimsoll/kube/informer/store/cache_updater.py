"""Applies lists and watch events to the cache and reports the changes, without I/O, time or tasks.

A list is complete: its objects replace those of the cache, whatever version the cache had (a server that was restored
from a backup goes back), and objects that it does not hold are deleted. A watch delivers the changes since, in the
order of versions; an event that is not newer than the position of the watch is ignored, and an older one is suspect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic

import structlog

from plimsoll.kube.informer.events import Deletion, V, get_key, get_key_tuple, get_version, is_unchanged
from plimsoll.objects.codec.decode_problems import BadObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from plimsoll.kube.informer.events import KeyTuple
    from plimsoll.kube.informer.store.cache import WritableCache

    OnChange = Callable[[KeyTuple, V | BadObject | None, Deletion[V] | None], None]
    """Called after each change with the key, the previous state, and the deletion, if it was one."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# Warnings remembered so that they are not repeated.
_MOST_WARNINGS: Final = 1000


class CacheUpdater(Generic[V]):
    """Updates the cache. `position` is the version up to which it is complete; a watch resumes there.

    The position is empty before the first list.
    """

    def __init__(self, resource: str, *, cache: WritableCache[V], on_change: OnChange[V]) -> None:
        self.position = ""
        self.is_suspect = False
        """An event could not be decoded, or the server went back: only a list shows what was missed."""
        self.contradiction = ""
        """Why the last list is not believed; empty if it is."""
        self.known = 0
        """How many objects were known when the list began."""
        self.regressed: dict[KeyTuple, str] = {}
        """Objects that the list holds in an older version than the cache, with that version."""
        self.unreadable = 0
        self.replays = 0
        self._resource = resource
        self._cache = cache
        self._on_change = on_change
        self._unlisted: dict[str, dict[str, None]] = {}
        self._older: dict[KeyTuple, V | BadObject] = {}
        self._has_nameless = False
        self._warned: dict[tuple[str, str], None] = {}

    # ---- a list

    def begin_list(self) -> None:
        """Start a list, or restart one that was interrupted: no object of the cache is listed yet."""
        self._has_nameless = False
        self._unlisted = self._cache.list_names()
        self.known = sum(map(len, self._unlisted.values()))
        self.regressed = {}
        self._older = {}

    def add_listed(self, values: Iterable[V | BadObject]) -> None:
        for value in values:
            key = get_key_tuple(value)
            namespace, name = key
            if not name:
                self._has_nameless = True
                self.note_unreadable(value.problem if isinstance(value, BadObject) else "metadata.name: missing")
                continue
            if namespace in self._unlisted:
                self._unlisted[namespace].pop(name, None)
            if not self._is_regressed(key, value):
                self._put(key, value)

    def _is_regressed(self, key: KeyTuple, value: V | BadObject) -> bool:
        """Whether the cache has a newer version of a listed object; then it stays until the list is believed."""
        old = self._cache.get_state(key)
        if old is None or not is_restored(get_version(value), get_version(old)):
            return False
        self.regressed[key] = get_version(value)
        self._older[key] = value
        return True

    def get_uid(self, key: KeyTuple) -> str:
        found = self._cache.get_state(key)
        if found is None:
            return ""
        return found.uid if isinstance(found, BadObject) else found.metadata.uid

    def find_unlisted(self) -> Iterator[KeyTuple]:
        """Find the objects of the cache that are not in the complete list; pass each to `infer_deletion`.

        There are none if the list has an object without a name: it may be any of them, and missing data must not
        cause deletions.
        """
        unlisted, self._unlisted = self._unlisted, {}
        if self._has_nameless:
            missing = sum(map(len, unlisted.values()))
            log.warning("informer.deletions_not_inferred", resource=self._resource, missing=missing)
            return
        for namespace, names in unlisted.items():
            for name in sorted(names):
                yield (namespace, name)

    def infer_deletion(self, key: KeyTuple) -> None:
        self._remove(key, last=None, is_inferred=True)

    def end_list(self, version: str, *, contradiction: str = "") -> None:
        """The list is complete up to `version`, even if that is older than the position before."""
        for key, value in self._older.items():
            self._put(key, value)
        self._older = {}
        self.contradiction = contradiction
        self.position = version
        self.is_suspect = self._has_nameless

    # ---- a watch

    def update(self, value: V | BadObject) -> None:
        """Apply ADDED or MODIFIED. They are not distinguished: the server's history may differ from the cache's."""
        if self._advance(get_version(value)):
            self._put(get_key_tuple(value), value)

    def delete(self, value: V | BadObject) -> None:
        if self._advance(get_version(value)):
            self._remove(get_key_tuple(value), last=value, is_inferred=False)

    def delete_while_listing(self, value: V | BadObject) -> None:
        """Apply a deletion that arrives among the initial events of a watch."""
        namespace, name = key = get_key_tuple(value)
        self._unlisted.get(namespace, {}).pop(name, None)
        self._remove(key, last=value, is_inferred=False)

    def advance_to(self, version: str) -> None:
        self._advance(version)

    def note_unreadable(self, problem: str) -> None:
        """Record an event whose object is unknown."""
        self.unreadable += 1
        self.is_suspect = True
        self._warn_once("", problem)

    def _advance(self, version: str) -> bool:
        """Move the position forward. Returns whether the version is new; one that is not a number always is."""
        if not version:
            return True
        if version == self.position:
            # Bookmarks of a quiet watch repeat the version.
            self.replays += 1
            return False
        if not is_newer(version, self.position):
            self.replays += 1
            self._check_went_back(version)
            return False
        self.position = version
        return True

    def _check_went_back(self, version: str) -> None:
        """Mark the cache suspect if the server went back: a watch never sends older versions without a restore."""
        if is_restored(version, self.position) and not self.is_suspect:
            self.is_suspect = True
            log.warning("informer.went_back", resource=self._resource, version=version, position=self.position)

    # ---- both

    def count_objects(self) -> int:
        """The number of objects that the server is known to have, undecodable ones included."""
        return len(self._cache) + len(self._cache.bad)

    def set_aside(self, key: KeyTuple, bad: BadObject) -> None:
        """Treat an object as one that cannot be decoded, until the server sends another version of it."""
        self._warn_once(bad.uid or str(get_key(bad)), bad.problem, name=str(get_key(bad)))
        old = self._cache.get_state(key)
        self._cache.put(key, bad)
        self._on_change(key, old, None)

    def _put(self, key: KeyTuple, new: V | BadObject) -> None:
        old = self._cache.get_state(key)
        if old is not None and is_unchanged(old, new):
            return
        if isinstance(new, BadObject):
            self._warn_once(new.uid or str(get_key(new)), new.problem, name=str(get_key(new)))
        self._cache.put(key, new)
        self._on_change(key, old, None)

    def _remove(self, key: KeyTuple, *, last: V | BadObject | None, is_inferred: bool) -> None:
        old = self._cache.get_state(key)
        if old is None:
            return
        self._cache.remove(key)
        self._on_change(key, old, Deletion(last=last, is_inferred=is_inferred))

    def _warn_once(self, uid: str, problem: str, *, name: str = "") -> None:
        """Log once per object and problem, whatever the number of versions."""
        if (uid, problem) in self._warned:
            return
        if len(self._warned) >= _MOST_WARNINGS:
            self._warned.clear()
        self._warned[uid, problem] = None
        log.warning("informer.bad_object", resource=self._resource, object=name, problem=problem[:500])


def is_newer(version: str, than: str) -> bool:
    """Whether `version` is newer. Different versions that cannot be compared count as newer."""
    if len(version) == len(than) and version.isascii() and version.isdigit() and than.isdigit():
        # The usual case. Strings of equal length compare like numbers.
        return version > than
    if _is_number(version) and _is_number(than):
        return int(version) > int(than)
    return version != than


def is_restored(version: str, position: str) -> bool:
    """Whether the server was restored: its `version` is older than the `position` it had reached."""
    return _is_number(version) and _is_number(position) and int(version) < int(position)


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdigit() and len(version) < 40
