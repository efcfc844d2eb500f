"""The recent changes of one resource, for resumed watches and for lists at an earlier revision.

It is the watchers' queue as well: each watcher is a position in it, so a change is kept once however many watchers
there are, and a slow watcher costs nothing and slows no other; when changes it has not read are dropped, it expires.
Every change has a place, counted from the start of the process and never reused.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.local.apiserver.storage.errors import Compacted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plimsoll.local.apiserver.storage.objects import Stored
    from plimsoll.local.apiserver.storage.watch_cache.events import Change

_revision: Final = attrgetter("revision")
_at_s: Final = attrgetter("at_s")

# When a limit is passed, history shrinks to this share of it, so that forgetting comes in lots and not at every write.
_KEPT_SHARE: Final = 7 / 8


class HistoryLimits(Value, frozen=True):
    """How much is kept. Whatever is passed first makes the oldest changes go.

    A real server's etcd is compacted every 5 minutes, hence the age; it is looked at on writes, of whatever resource,
    and a change stays at least `age_s` and at most twice that while writes come. The bytes are those of superseded
    states, which only history keeps alive; `bytes_in_all` bounds them over all resources together.
    """

    changes_per_resource: int = 10_000
    bytes_per_resource: int = 32 * 1024 * 1024
    bytes_in_all: int = 128 * 1024 * 1024
    age_s: float = 300.0


class History:
    """Changes after `floor`, oldest first."""

    __slots__ = ("_changes", "first_place", "floor", "superseded_bytes")

    def __init__(self, floor: int) -> None:
        self.floor = floor
        """The least revision a watcher may start from: everything after it is here."""
        self.first_place = 0
        self.superseded_bytes = 0
        self._changes: list[Change] = []

    def __len__(self) -> int:
        return len(self._changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self._changes)

    @property
    def end_place(self) -> int:
        """Where the next change will be."""
        return self.first_place + len(self._changes)

    def append(self, change: Change) -> None:
        self._changes.append(change)
        self.superseded_bytes += change.superseded_bytes

    def find_place_after(self, revision: int) -> int:
        """Where the first change after `revision` is, or will be."""
        if revision < self.floor:
            raise Compacted(revision, self.floor)
        return self.first_place + self.count_until(revision)

    def read_slice(self, place: int, count: int) -> list[Change]:
        start = place - self.first_place
        return self._changes[start : start + count]

    def compute_states_at(self, revision: int) -> dict[str, Stored | None]:
        """By path, how the objects that changed since `revision` were then (none: not there)."""
        states: dict[str, Stored | None] = {}
        for change in self._changes[self.find_place_after(revision) - self.first_place :]:
            states.setdefault(change.path, change.previous)
        return states

    def count_surplus(self, limits: HistoryLimits) -> int:
        """How many of the oldest changes have to go to keep to the limits of one resource, but for that of age."""
        if not self._changes:
            return 0
        too_many = len(self._changes) > limits.changes_per_resource
        too_large = self.superseded_bytes > limits.bytes_per_resource
        if not (too_many or too_large):
            return 0
        most = int(limits.changes_per_resource * (_KEPT_SHARE if too_many else 1))
        most_bytes = int(limits.bytes_per_resource * (_KEPT_SHARE if too_large else 1))
        count, held = len(self._changes), self.superseded_bytes
        for index, change in enumerate(self._changes):
            if count - index <= most and held <= most_bytes:
                return index
            held -= change.superseded_bytes
        return count

    def count_until(self, revision: int) -> int:
        """How many changes a watcher that stands at `revision` has seen."""
        return bisect_right(self._changes, revision, key=_revision)

    def count_before(self, moment_s: float) -> int:
        """How many changes were applied before a moment of the clock that never goes back."""
        return bisect_left(self._changes, moment_s, key=_at_s)

    def forget(self, count: int) -> list[int]:
        """Drop the oldest `count`; returns the revisions whose bytes are no longer needed."""
        unneeded: list[int] = []
        for change in self._changes[:count]:
            previous = change.previous
            if previous is not None:
                unneeded.append(previous.revision)
                self.superseded_bytes -= len(previous.data)
            if change.current is None:
                unneeded.append(change.revision)
        if count:
            # Revisions only grow: the last one forgotten is the greatest.
            self.floor = max(self.floor, self._changes[min(count, len(self._changes)) - 1].revision)
        del self._changes[:count]
        self.first_place += count
        return unneeded


def choose_revision_to_forget(histories: Iterable[History], *, held: int, most: int) -> int:
    """The revision up to which the changes of all histories have to go to get from `held` bytes to less than `most`.

    The oldest go first, whosever they are: that is what a compaction would do. 0: none has to go.
    """
    if held <= most:
        return 0
    revision = 0
    for change in merge(*histories, key=_revision):
        held -= change.superseded_bytes
        revision = change.revision
        if held <= most * _KEPT_SHARE:
            break
    return revision
