"""The paths of one resource in order, in chunks, so that a hundred thousand cost no more a write than a thousand.

A flat sorted list moves half its content on every insertion; here an insertion moves at most one chunk. Used by
`collections` only; the objects themselves are in a dict beside it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Large enough that a page of 500 crosses one border, small enough that moving a chunk is some hundred nanoseconds.
CHUNK = 512


class SortedPaths:
    """A sorted set of texts. `_lasts[i]` is the greatest of `_chunks[i]`; no chunk is empty."""

    __slots__ = ("_chunks", "_lasts", "_size")

    def __init__(self) -> None:
        self._chunks: list[list[str]] = []
        self._lasts: list[str] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, path: str) -> None:
        """Put in a path that is not there yet."""
        self._size += 1
        if not self._chunks:
            self._chunks.append([path])
            self._lasts.append(path)
            return
        at = min(bisect_left(self._lasts, path), len(self._lasts) - 1)
        chunk = self._chunks[at]
        insort(chunk, path)
        self._lasts[at] = chunk[-1]
        if len(chunk) > 2 * CHUNK:
            self._chunks[at : at + 1] = chunk[:CHUNK], chunk[CHUNK:]
            self._lasts[at : at + 1] = chunk[CHUNK - 1], chunk[-1]

    def remove(self, path: str) -> None:
        """Take out a path that is there."""
        at = bisect_left(self._lasts, path)
        chunk = self._chunks[at]
        chunk.pop(bisect_left(chunk, path))
        self._size -= 1
        if chunk:
            self._lasts[at] = chunk[-1]
        else:
            del self._chunks[at], self._lasts[at]

    def before(self, path: str) -> int:
        """How many stand before `path`."""
        at = bisect_left(self._lasts, path)
        if at == len(self._chunks):
            return self._size
        inside = bisect_left(self._chunks[at], path)
        if 2 * at < len(self._chunks):
            return sum(map(len, self._chunks[:at])) + inside
        return self._size - sum(map(len, self._chunks[at:])) + inside

    def between(self, first: str, end: str | None) -> Iterator[str]:
        """From `first` on, and before `end`, in order."""
        at = bisect_left(self._lasts, first)
        for index in range(at, len(self._chunks)):
            chunk = self._chunks[index]
            low = bisect_left(chunk, first) if index == at else 0
            if end is not None and self._lasts[index] >= end:
                yield from chunk[low : bisect_left(chunk, end)]
                return
            yield from chunk[low:] if low else chunk
