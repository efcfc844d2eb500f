"""Checks a list against what is known before its gaps are taken for deletions.

A server, a proxy or a cache in between may answer with a list that misses objects which exist, or with an old one. So
some of the objects in question are read one by one: if one of them exists, the list is wrong. What is wrong stays as it
was in the cache, and everything is listed again later. A list that misses few of the known objects is believed if they
cannot be read; one that misses more than a small share, or is older than what is known, is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic

import structlog

from plimsoll.kube.errors import Forbidden, ServerTrouble, UnreadableAnswer
from plimsoll.kube.informer.events import V
from plimsoll.kube.informer.store.cache_updater import is_newer, is_restored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.kube.informer.events import KeyTuple
    from plimsoll.kube.informer.reflector.lister_watcher import ListerWatcher
    from plimsoll.kube.informer.store.cache_updater import CacheUpdater

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

BELIEVED_SHARE: Final = 0.1
"""The share of known objects that may be missing from a list although a second read fails."""
BELIEVED_COUNT: Final = 1
"""That many may be missing in any case."""
_READ_ONE_BY_ONE: Final = 20


def is_small_loss(missing: int, known: int) -> bool:
    """Whether so few of the known objects are missing that a list is believed even if nothing confirms it."""
    return missing <= max(BELIEVED_COUNT, BELIEVED_SHARE * known)


class ListVerifier(Generic[V]):
    """Verifies the lists of one informer."""

    def __init__(self, lister_watcher: ListerWatcher, updater: CacheUpdater[V]) -> None:
        self._lister_watcher = lister_watcher
        self._updater = updater
        self._unverified: frozenset[KeyTuple] = frozenset()
        """Objects that the last list missed, and that could not be read one by one."""

    async def find_contradiction(self, missing: Sequence[KeyTuple], version: str) -> str:
        """Why the list is not believed; empty if it is. Raises `UnreadableAnswer` if it is older than what is known."""
        regressed = self._updater.regressed
        is_old = bool(regressed) or is_restored(version, self._updater.position)
        known = self._updater.known
        is_plausible = not is_old and is_small_loss(len(missing), known)
        if is_plausible and not missing:
            self._unverified = frozenset()
            return ""
        for key in spread(sorted(regressed), _READ_ONE_BY_ONE):
            found = await self._read(key)
            if found is not None and is_newer(found[1], regressed[key]):
                raise UnreadableAnswer(f"the list of {self._lister_watcher.name} is older than {_format_name(key)}")
        try:
            existing = await self._find_existing(missing)
        except Forbidden:
            return "" if is_plausible else self._compare_with_last(missing, known)
        except ServerTrouble as error:
            return "" if is_plausible else f"{self._describe(missing, known)}, which could not be read: {error}"
        if not existing:
            return ""
        if is_old:
            raise UnreadableAnswer(f"the list of {self._lister_watcher.name} is old and misses {existing}")
        return f"{self._describe(missing, known)}, of which {existing} exists"

    async def _find_existing(self, missing: Sequence[KeyTuple]) -> str:
        for key in spread(missing, _READ_ONE_BY_ONE):
            found = await self._read(key)
            if found is not None and found[0] == self._updater.get_uid(key):
                return _format_name(key)
        return ""

    async def _read(self, key: KeyTuple) -> tuple[str, str] | None:
        """The uid and the version of an object; None if it does not exist."""
        return await self._lister_watcher.get_identity(key)

    def _compare_with_last(self, missing: Sequence[KeyTuple], known: int) -> str:
        """Without the permission to read single objects, a second list must miss the same."""
        before, self._unverified = self._unverified, frozenset(missing)
        if before >= self._unverified:
            return ""
        return f"{self._describe(missing, known)}, and no second list has yet agreed"

    def _describe(self, missing: Sequence[KeyTuple], known: int) -> str:
        return f"a list of {self._lister_watcher.name} missed {len(missing)} of {known}"


def spread(keys: Sequence[KeyTuple], most: int) -> Sequence[KeyTuple]:
    """At most so many of the keys, from all parts of them."""
    return keys if len(keys) <= most else [keys[index * len(keys) // most] for index in range(most)]


def _format_name(key: KeyTuple) -> str:
    namespace, name = key
    return f"{namespace}/{name}" if namespace else name
