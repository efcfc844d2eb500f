"""Locks per key: one read-modify-write at a time per object, granted in the order of the requests.

`KeyLock` serves the store: a lock outlives the task that acquired it, because the write may still be pending when that
task is cancelled. It is therefore acquired and released explicitly. `ObjectLocks` serves the request handlers: the
store serialises single writes, but a handler computes the new object before, from a state that may be outdated by then.
Under contention all but one writer would have to repeat that work again and again. With the lock they wait first, so
every unconditional change succeeds and the work stays linear. No holder of the lock of a namespace or a definition
acquires another one, so there is no deadlock. Writers that use the store directly do not take these locks: a change
must still be prepared to find that the object has changed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from plimsoll.local.apiserver.storage.objects import Key


class KeyLock:
    """The locked keys, with the requests that wait for each."""

    def __init__(self) -> None:
        self._locked: dict[Key, deque[asyncio.Future[None]] | None] = {}

    async def acquire(self, key: Key) -> None:
        if key not in self._locked:
            self._locked[key] = None
            return
        waiting = self._locked[key]
        if waiting is None:
            waiting = self._locked[key] = deque()
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(granted)
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():  # granted and cancelled in the same instant: the lock goes to the next
                self.release(key)
            raise

    def release(self, key: Key) -> None:
        waiting = self._locked[key]
        while waiting:
            granted = waiting.popleft()
            if not granted.done():
                granted.set_result(None)
                return
        del self._locked[key]


class ObjectLocks:
    """The locks of the request handlers of one server, and which of them are held."""

    def __init__(self) -> None:
        self._lock = KeyLock()
        self._held: set[Key] = set()

    def hold(self, key: Key) -> AbstractAsyncContextManager[None]:
        """While it lasts, no other request changes the object."""
        return _Held(self._lock, self._held, key)

    def is_held(self, key: Key) -> bool:
        """Whether a request is about to change the object."""
        return key in self._held


class _Held:
    __slots__ = ("_held", "_key", "_lock")

    def __init__(self, lock: KeyLock, held: set[Key], key: Key) -> None:
        self._lock = lock
        self._held = held
        self._key = key

    async def __aenter__(self) -> None:
        await self._lock.acquire(self._key)
        self._held.add(self._key)

    async def __aexit__(self, *_error: object) -> None:
        self._held.discard(self._key)
        self._lock.release(self._key)
