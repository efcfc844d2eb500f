"""All objects of one resource as they are now, with their recent history: the source of every read.

Synchronous and without I/O. The store applies changes when they are durable; nothing else changes anything here.
"""

from __future__ import annotations

from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Final

from sortedcontainers import SortedList

from plimsoll.core.values import Value
from plimsoll.local.apiserver.storage.watch_cache.history import History

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.apiserver.storage.objects import Stored, Traits
    from plimsoll.local.apiserver.storage.watch_cache.events import Change, Matches

# What follows the greatest path that starts with "namespace/": the slash's successor.
_AFTER_SLASH: Final = chr(ord("/") + 1)


class ListQuery(Value, frozen=True):
    """Which objects of a resource, and how many at once."""

    namespace: str | None = None
    """None: of all namespaces, or of none for a cluster-scoped resource."""
    start: str = ""
    """The first path to consider: `Page.next` of the page before."""
    limit: int | None = None
    at: int | None = None
    """An exact earlier revision; None: the newest."""


class Page(Value, frozen=True):
    """A list, or a part of one, all of it as it was at `revision`."""

    items: tuple[Stored, ...]
    revision: int
    next: str | None = None
    """Where the next page starts; none if this was the last."""
    remaining: int | None = None
    """How many objects there are after this page; unknown (none) where a selector was given, as in Kubernetes."""


class Collection:
    """The objects of one resource, by path."""

    def __init__(self, traits: Traits, *, floor: int) -> None:
        self.traits = traits
        self.history = History(floor)
        self.objects: dict[str, Stored] = {}
        self._paths: SortedList[str] = SortedList()

    def put(self, path: str, after: Stored | None) -> None:
        """Set the object at `path` without a history entry (recovery of states older than the history)."""
        if after is None:
            if self.objects.pop(path, None) is not None:
                self._paths.remove(path)
        else:
            if path not in self.objects:
                self._paths.add(path)
            self.objects[path] = after

    def apply(self, change: Change) -> None:
        self.put(change.path, change.current)
        self.history.append(change)

    def forget_fields(self) -> None:
        """Drop the cached selector fields: another function reads them from now on."""
        for stored in self.objects.values():
            stored.forget_fields()
        for change in self.history:
            for state in (change.previous, change.current):
                if state is not None:
                    state.forget_fields()

    def count(self, namespace: str | None) -> int:
        low, high = _compute_bounds(namespace)
        return self._count(low, high)

    def read_newest_page(self, query: ListQuery, *, revision: int, matches: Matches | None) -> Page:
        """The newest state."""
        low, high = _compute_bounds(query.namespace)
        low = max(low, query.start)
        total = self._count(low, high) if query.limit is not None and matches is None else None
        found = map(self.objects.__getitem__, self._iterate_paths(low, high))
        return _build_page(found, total=total, limit=query.limit, revision=revision, matches=matches)

    def read_page_at(self, query: ListQuery, *, revision: int, matches: Matches | None) -> Page:
        """The state at an earlier revision: what is here now, with everything that changed since put back."""
        low, high = _compute_bounds(query.namespace)
        low = max(low, query.start)
        then = {
            path: state
            for path, state in self.history.compute_states_at(revision).items()
            if path >= low and (high is None or path < high)
        }
        total = None
        if query.limit is not None and matches is None:
            reappear = sum(state is not None for state in then.values())
            total = self._count(low, high) + reappear - sum(path in self.objects for path in then)
        found = self._merge(then, low, high)
        return _build_page(found, total=total, limit=query.limit, revision=revision, matches=matches)

    def _merge(self, then: dict[str, Stored | None], low: str, high: str | None) -> Iterator[Stored]:
        unchanged = (path for path in self._iterate_paths(low, high) if path not in then)
        changed = sorted(path for path, state in then.items() if state is not None)
        for path in merge(unchanged, changed):
            state = then.get(path)
            yield self.objects[path] if state is None else state

    def _count(self, low: str, high: str | None) -> int:
        end = len(self._paths) if high is None else self._paths.bisect_left(high)
        return max(0, end - self._paths.bisect_left(low)) if low else end

    def _iterate_paths(self, low: str, high: str | None) -> Iterator[str]:
        """The paths from `low` on and before `high`, in order."""
        return self._paths.irange(low, high, inclusive=(True, False))


def _compute_bounds(namespace: str | None) -> tuple[str, str | None]:
    if not namespace:
        return "", None
    return f"{namespace}/", namespace + _AFTER_SLASH


def select_from(page: Page, matches: Matches, *, limit: int | None) -> Page:
    """What a list with a selector gives, made of all that a list without selector and limit gave."""
    return _build_page(iter(page.items), total=None, limit=limit, revision=page.revision, matches=matches)


def _build_page(
    found: Iterator[Stored], *, total: int | None, limit: int | None, revision: int, matches: Matches | None
) -> Page:
    wanted = filter(matches, found) if matches is not None else found
    items = tuple(islice(wanted, limit))
    # As Kubernetes does it: a page that is full ends where it became full, and whether anything after it matches is
    # not looked at.
    if limit is None or len(items) < limit or next(found, None) is None:
        return Page(items=items, revision=revision)
    remaining = None if total is None else total - len(items)
    following = items[-1].key.path + "\0" if items else ""
    return Page(items=items, revision=revision, next=following, remaining=remaining)
