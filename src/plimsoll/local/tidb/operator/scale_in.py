"""The steps of the operator before it removes the last pod of a TiKV set. Pure.

If the store is already drained, it is Tombstone, and the pod is removed at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.local.tidb.pd.stores import TOMBSTONE, UP

if TYPE_CHECKING:
    from plimsoll.local.tidb.pd.stores import StoreState


class Shrink(Value):
    """The pod holds no data: the set may shrink."""


class TakeOffline(Value):
    """PD must move everything away from the store."""

    store_id: int


class Wait(Value):
    """The store is being drained, or its state is unknown."""


def plan_next_step(store: StoreState | None, *, knows_pd: bool, is_running: bool) -> Shrink | TakeOffline | Wait:
    """`store` is that of the last pod, None if it never registered."""
    if not knows_pd:
        return Wait()
    if store is None:
        # One that runs is about to register.
        return Wait() if is_running else Shrink()
    if store.state == TOMBSTONE:
        return Shrink()
    return TakeOffline(store_id=store.id) if store.state == UP else Wait()
