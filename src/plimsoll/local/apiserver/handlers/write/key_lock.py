"""Who may change an object next: one read-modify-write at a time per object, in the order of asking.

The store makes single writes wait for each other, but what is written is made before, of a state that may be old by
then. Under contention all but one would make it again, and again: here they wait first, so that every unconditional
change lands, and the work stays linear. Used by `writing` and `deleting`; nobody who holds the turn of a namespace or a
definition takes another one, so nobody waits in a circle. Writers who go to the store directly are not seen here: a
change still has to be ready to find that the object has moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.apiserver.storage.key_queue import Turns

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from plimsoll.local.apiserver.server import Server
    from plimsoll.local.apiserver.storage import Key


class KeyLock:
    """The turns of one server, and which of them are being used."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.in_use: set[Key] = set()


def turn(server: Server, key: Key) -> AbstractAsyncContextManager[None]:
    """While it lasts, no other request changes the object."""
    return _Turn(server.turns, key)


class _Turn:
    __slots__ = ("_book", "_key")

    def __init__(self, book: KeyLock, key: Key) -> None:
        self._book = book
        self._key = key

    async def __aenter__(self) -> None:
        await self._book.turns.take(self._key)
        self._book.in_use.add(self._key)

    async def __aexit__(self, *_error: object) -> None:
        self._book.in_use.discard(self._key)
        self._book.turns.give_back(self._key)


def is_changing(server: Server, key: Key) -> bool:
    """Whether a request is about to change the object."""
    return key in server.turns.in_use
