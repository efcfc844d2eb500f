"""What an operator does before the last pod of a TiKV set may go. Pure.

Whoever has drained the store already finds it buried, and the pod goes at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.local.tidb.pd.stores import TOMBSTONE, UP

if TYPE_CHECKING:
    from plimsoll.local.tidb.pd.stores import StoreState


class Shrink(Value):
    """The pod holds nothing: the set may lose it."""


class TakeOffline(Value):
    """PD is to move everything away from the store."""

    store_id: int


class Wait(Value):
    """It is on its way, or nobody knows."""


def next_step(store: StoreState | None, *, knows_pd: bool, is_running: bool) -> Shrink | TakeOffline | Wait:
    """`store` is that of the last pod, None if it never registered."""
    if not knows_pd:
        return Wait()
    if store is None:
        # One that runs is about to register.
        return Wait() if is_running else Shrink()
    if store.state == TOMBSTONE:
        return Shrink()
    return TakeOffline(store_id=store.id) if store.state == UP else Wait()
