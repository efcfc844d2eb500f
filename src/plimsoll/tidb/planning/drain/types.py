"""Types of store removals: the TidbCluster that loses a store, the outcomes and the steps.

The actuator gives the drainer a `StoreDrain` and gets `Drained`, `DrainInProgress`, `Blocked` or `Unknown`. Ordinals
decide which store is removed, never a record; a record only says what was started.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

import msgspec

from plimsoll.core.plans import Reason  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.core.values import Value
from plimsoll.tidb.model.reconcile_types import DrainRecord  # noqa: TC001 - as above
from plimsoll.tidb.planning.drain.store_health import (
    ObservedStore,  # noqa: TC001
    RegionHealth,  # noqa: TC001
)

NOT_REGISTERED: Final = 0
"""The store id of a record that says: since then the pod has had no store."""
LOW_SPACE: Final = Fraction(4, 5)
"""PD's default `low-space-ratio`."""


class DrainSettings(Value):
    """Settings of the drainer."""

    peer_tolerance: int = 0
    """How many regions may have a missing, pending or down peer."""
    leaders_within_s: float = 600.0
    """How long to wait for leaders to move before the store is removed with those it still has."""
    stalled_after_s: float = 1800.0
    """If no region moves for this long, the removal is reported as blocked. It continues nevertheless."""
    unregistered_for_s: float = 150.0
    """How long a pod must be without a store before it counts as one that never had any."""


class StoreDrain(Value):
    """A TidbCluster of TiKV that is to lose a store. `replicas` is the present value of its spec."""

    namespace: str
    cluster: str
    replicas: int
    record: DrainRecord | None = None
    highest_usage: Fraction = LOW_SPACE
    """`max_threshold` of the storage rule, if there is one."""
    delete_slots: frozenset[int] = frozenset()
    """Ordinals that an Advanced StatefulSet omits (`read_delete_slots`)."""
    known_stores: frozenset[int] = frozenset()
    """Stores in the status of any TidbCluster of this PD: a list of PD that lacks one of them is verified."""
    ready_pods: frozenset[str] = frozenset()
    """Its pods that are Ready, and so have a store, whatever PD lists."""

    @property
    def leaving_pods(self) -> frozenset[str]:
        """The pods that are removed when `replicas` is lowered by one; without replicas, all that are left."""
        if not self.replicas:
            return self.ready_pods
        return frozenset(
            f"{self.cluster}-tikv-{ordinal}" for ordinal in self.list_ordinals(self.replicas) - self.staying
        )

    @property
    def staying(self) -> frozenset[int]:
        """The ordinals that remain when `replicas` is lowered by one."""
        return self.list_ordinals(self.replicas - 1)

    def list_ordinals(self, replicas: int) -> frozenset[int]:
        """The ordinals of the pods of that many replicas."""
        numbers = (
            ordinal for ordinal in range(max(0, replicas) + len(self.delete_slots)) if ordinal not in self.delete_slots
        )
        return frozenset(number for number, _ in zip(numbers, range(max(0, replicas)), strict=False))

    def get_ordinal(self, store: ObservedStore) -> int | None:
        """The ordinal of a store; None: it is not a store of this cluster."""
        prefix, _, ordinal = store.pod.rpartition("-")
        is_its = store.namespace == self.namespace and prefix == f"{self.cluster}-tikv"
        return int(ordinal) if is_its and re.fullmatch("0|[1-9][0-9]{0,8}", ordinal) else None


def read_delete_slots(annotation: str | None) -> frozenset[int]:
    """The ordinals in `tikv.tidb.pingcap.com/delete-slots`; an unreadable value counts as none, as in TiDB Operator."""
    try:
        return frozenset(ordinal for ordinal in msgspec.json.decode(annotation or "[]", type=list[int]) if ordinal >= 0)
    except msgspec.DecodeError:
        return frozenset()


# ---- outcomes


class Drained(Value):
    """The store is a Tombstone; None: there never was one.

    `replicas` may be lowered by one now, and the record cleared.
    """

    store_id: int | None
    message: str
    is_disk_free: bool = True
    """False where an operator removes the store when `replicas` falls: until then its disk is in use."""


class DrainInProgress(Value):
    """The removal continues: check again in ten seconds. `record` is the stored one."""

    record: DrainRecord | None
    reason: Reason


class Blocked(Value):
    """The store must not be removed, or its removal is stuck: `ScaleInBlocked`. `record` is the stored one."""

    reason: Reason
    record: DrainRecord | None = None


class Unknown(Value):
    """PD does not answer or has no stores yet: nothing is concluded and nothing is done."""

    problem: str


# ---- steps


class WriteRecord(Value):
    """Write this record, or clear it."""

    record: DrainRecord | None


class Evict(Value):
    """Evict the leaders of a store."""

    store_id: int


class TakeOffline(Value):
    """Ask PD to remove the store."""

    store_id: int
    record: DrainRecord
    """The record to write once PD has agreed."""
    blocked: Reason
    """The reason to report if PD refuses; PD's own message is added."""


class StopEvicting(Value):
    """Stop evicting leaders: the store stays, or it is gone."""

    store_id: int


class PutBack(Value):
    """Set an Offline store to Up again."""

    store_id: int


DrainStep = WriteRecord | Evict | TakeOffline | StopEvicting | PutBack | Drained | DrainInProgress | Blocked
CancelStep = WriteRecord | StopEvicting | PutBack | Drained


class ObservedStores(Value):
    """The state of PD.

    `stores` are those that are not Tombstone, and the recorded one unless PD says that it is gone.
    """

    stores: tuple[ObservedStore, ...]
    evicting: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    """Evictions that were just ended: PD's list may lag behind or be unreadable."""
    health: RegionHealth | None = None
    """None: not requested, because no store is about to be removed."""
    eviction_refused: bool = False
    unlisted: tuple[int, ...] = ()
    """Stores that PD has and that its list lacks: the list is incomplete."""

    def store(self, store_id: int) -> ObservedStore | None:
        return next((store for store in self.stores if store.id == store_id), None)


def find_store_to_drain(drain: StoreDrain, stores: tuple[ObservedStore, ...]) -> ObservedStore | None:
    """The store with the highest ordinal among those that must not stay; None: all of those are Tombstone.

    There is more than one if `replicas` was lowered by hand, or if a pod registered unexpectedly.
    """
    ordinals = [(ordinal, store) for store in stores if (ordinal := drain.get_ordinal(store)) is not None]
    candidates = [(ordinal, store.id, store) for ordinal, store in ordinals if ordinal not in drain.staying]
    return max(candidates, key=lambda found: found[:2])[2] if candidates else None
