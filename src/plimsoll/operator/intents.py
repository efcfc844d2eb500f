"""Write-ahead intents: what a controller is about to do is stored before it acts, and cleared after.

    store the intent → act → clear the intent

An intent is needed where an action takes several calls and must not stay half done: growth of a node group for a
request, a store on its way out of a cluster. A crash at any point leaves either no trace, or an intent that the next
loop iteration finds: it looks at the real state, then goes on with the action or undoes it, and clears the intent.

Each subsystem decides what an intent says and where it is stored (a status field, an annotation). This module holds the
order of the steps. `tests/operator/test_intents.py` crashes a controller after every call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

I_contra = TypeVar("I_contra", contravariant=True)
I = TypeVar("I")  # noqa: E741 - an intent
H = TypeVar("H")
R = TypeVar("R")


class IntentStore(Protocol[I_contra]):
    """Stores the intent of one object where it outlives the process."""

    async def __call__(self, intent: I_contra | None, /) -> None:
        """Stores an intent, or clears it with None. Returns only when that is so, and raises otherwise."""
        ...


class StoredIntent(Generic[I]):
    """The intent of one object. `current` is the stored one; None: nothing has begun."""

    def __init__(self, store: IntentStore[I], current: I | None = None) -> None:
        self._store = store
        self.current = current

    async def write(self, intent: I | None) -> None:
        """Stores an intent before its action begins, or as the action goes on; None clears it."""
        await self._store(intent)
        self.current = intent

    async def carry_out(self, intent: I, act: Callable[[], Awaitable[R]]) -> R:
        """Stores the intent, acts and clears it. If the action fails or the process ends, the intent stays."""
        await self.write(intent)
        result = await act()
        await self.write(None)
        return result

    async def recover(self, finish: Callable[[I], Awaitable[bool]]) -> bool:
        """Finishes or undoes what an earlier iteration or process left. False: it is not done, the intent stays."""
        if self.current is None:
            return True
        if not await finish(self.current):
            return False
        await self.write(None)
        return True


@dataclass(frozen=True, slots=True)
class Recovered(Generic[H]):
    """The objects whose intents were carried to their end, to be cleared, and those whose intents stay."""

    finished: tuple[H, ...]
    unfinished: tuple[H, ...]


async def recover_all(holders: Iterable[H], finish: Callable[[H], Awaitable[bool]]) -> Recovered[H]:
    """Try to finish the intent of each object; one that fails does not stop the others."""
    finished: list[H] = []
    unfinished: list[H] = []
    for holder in holders:
        (finished if await finish(holder) else unfinished).append(holder)
    return Recovered(tuple(finished), tuple(unfinished))
