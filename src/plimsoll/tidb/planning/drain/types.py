"""Words about TiKV stores that leave their cluster: which TidbCluster is to have one less, and how that stands.

The acting half hands a `StoreDrain` to the drainer and gets `Drained`, `DrainInProgress`, `Blocked` or `Unknown` back.
`drain_steps` decides one step after the other about what the drainer sees in PD. Which store leaves is always told by
ordinals, never by a mark: a mark only remembers what was begun.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

import msgspec

from plimsoll.core.plans import Reason  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.core.values import Value
from plimsoll.tidb.model.reconcile_types import DrainMark  # noqa: TC001 - as above
from plimsoll.tidb.planning.drain.store_health import (
    Health,  # noqa: TC001
    StoreSeen,  # noqa: TC001
)

NOT_REGISTERED: Final = 0
"""The store of a mark that says: since then the pod has been without one."""
LOW_SPACE: Final = Fraction(4, 5)
"""PD's own `low-space-ratio`."""


class DrainSettings(Value):
    """What an operator of the drainer may choose."""

    peer_tolerance: int = 0
    """So many regions may miss a peer, have a pending or a down one."""
    leaders_within_s: float = 600.0
    """So long leaders are waited for before a store goes with those it still has."""
    stalled_after_s: float = 1800.0
    """Without a region less for so long, the removal is said to be blocked. It goes on all the same."""
    unregistered_for_s: float = 150.0
    """So long a pod must be without a store before it counts as one that never had any."""


class StoreDrain(Value):
    """A TidbCluster of TiKV that is to have one store less. `replicas` is what its spec says now."""

    namespace: str
    cluster: str
    replicas: int
    mark: DrainMark | None = None
    highest_usage: Fraction = LOW_SPACE
    """`max_threshold` of the storage rule, if there is one."""
    delete_slots: frozenset[int] = frozenset()
    """Ordinals that an Advanced StatefulSet leaves out (`delete_slots_of`)."""

    @property
    def staying(self) -> frozenset[int]:
        """The ordinals that are left when `replicas` is lowered by one."""
        return self.ordinals(self.replicas - 1)

    def ordinals(self, replicas: int) -> frozenset[int]:
        """The pods that so many replicas have."""
        numbers = (one for one in range(max(0, replicas) + len(self.delete_slots)) if one not in self.delete_slots)
        return frozenset(number for number, _ in zip(numbers, range(max(0, replicas)), strict=False))

    def ordinal_of(self, store: StoreSeen) -> int | None:
        """None: the store is not one of this cluster."""
        prefix, _, ordinal = store.pod.rpartition("-")
        is_its = store.namespace == self.namespace and prefix == f"{self.cluster}-tikv"
        return int(ordinal) if is_its and re.fullmatch("0|[1-9][0-9]{0,8}", ordinal) else None


def delete_slots_of(annotation: str | None) -> frozenset[int]:
    """What `tikv.tidb.pingcap.com/delete-slots` says; nothing if it cannot be read, as its operator takes it."""
    try:
        return frozenset(one for one in msgspec.json.decode(annotation or "[]", type=list[int]) if one >= 0)
    except msgspec.DecodeError:
        return frozenset()


# ---- how it ends, for now


class Drained(Value):
    """The store is buried (None: there never was one): `replicas` may be lowered by one now, and the mark cleared."""

    store_id: int | None
    said: str
    is_disk_free: bool = True
    """False where an operator takes the store out when it sees `replicas` fall: until then its disk is in use."""


class DrainInProgress(Value):
    """It goes on: look again in ten seconds. `mark` is the one that stands."""

    mark: DrainMark | None
    reason: Reason


class Blocked(Value):
    """It may not leave, or does not get on: `ScaleInBlocked`. `mark` is the one that stands."""

    reason: Reason
    mark: DrainMark | None = None


class Unknown(Value):
    """PD does not answer, or has no stores yet: nothing is concluded and nothing is done."""

    problem: str


# ---- what is done next


class Remember(Value):
    """Write this mark, or clear it."""

    mark: DrainMark | None


class Evict(Value):
    """Have the leaders of a store moved away."""

    store_id: int


class TakeOffline(Value):
    """Tell PD that the store goes."""

    store_id: int
    mark: DrainMark
    """The mark that stands once PD agreed."""
    blocked: Reason
    """What to say if PD refuses, but for its words."""


class StopEvicting(Value):
    """Leaders may come back to a store, or it is gone."""

    store_id: int


class PutBack(Value):
    """Make an Offline store Up again."""

    store_id: int


Step = Remember | Evict | TakeOffline | StopEvicting | PutBack | Drained | DrainInProgress | Blocked
ReturningStep = Remember | StopEvicting | PutBack | Drained


class DrainSeen(Value):
    """What PD says. `stores` are those not buried, and with them the marked one unless PD says that it is gone."""

    stores: tuple[StoreSeen, ...]
    evicting: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    """Evictions that PD was just told to end: what it lists may be behind, or unreadable."""
    health: Health | None = None
    """None: nobody asked, because no store is about to leave."""
    eviction_refused: bool = False

    def store(self, store_id: int) -> StoreSeen | None:
        return next((store_seen for store_seen in self.stores if store_seen.id == store_id), None)


def leaving_store(leaving: StoreDrain, stores: tuple[StoreSeen, ...]) -> StoreSeen | None:
    """Of those not buried that may not stay, the one of the highest ordinal; None: all of them are buried.

    More than one is there if somebody lowered `replicas` by hand, or if a pod registered when nobody expected it.
    """
    ordinals = [
        (ordinal, store_seen) for store_seen in stores if (ordinal := leaving.ordinal_of(store_seen)) is not None
    ]
    candidates = [
        (ordinal, store_seen.id, store_seen) for ordinal, store_seen in ordinals if ordinal not in leaving.staying
    ]
    return max(candidates, key=lambda found: found[:2])[2] if candidates else None
