"""Who may change an object next: one read-modify-write at a time per object, in the order of asking.

The store makes single writes wait for each other, but what is written is made before, of a state that may be old by
then. Under contention all but one would make it again, and again: here they wait first, so that every unconditional
change lands, and the work stays linear. Used by `writing` and `deleting`; nobody who holds the turn of a namespace or a
definition takes another one, so nobody waits in a circle. Writers who go to the store directly are not seen here: a
change still has to be ready to find that the object has moved.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from plimsoll.local.apiserver.storage.turns import Turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from plimsoll.local.apiserver.server import Server
    from plimsoll.local.apiserver.storage import Key


class ObjectTurns:
    """The turns of one server, and which of them are being used."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.in_use: set[Key] = set()


@asynccontextmanager
async def turn(server: Server, key: Key) -> AsyncIterator[None]:
    """While it lasts, no other request changes the object."""
    book = server.turns
    await book.turns.take(key)
    book.in_use.add(key)
    try:
        yield
    finally:
        book.in_use.discard(key)
        book.turns.give_back(key)


def is_changing(server: Server, key: Key) -> bool:
    """Whether a request is about to change the object."""
    return key in server.turns.in_use
