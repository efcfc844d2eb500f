"""The state of a simulated PD: its stores, their counts of regions and leaders, and its leader evictions. Pure.

The state is a value, stored in a ConfigMap, of one moment, `as_of`; `scheduling.advance` moves it to another. Regions
are counted, not identified: a store has a peer of a region or not, and never two peers of one region.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.core.values import Value
from plimsoll.local.tidb.instances import SPECIAL_USE, TIKV

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from plimsoll.local.tidb.instances import TidbInstance

UP: Final = 0
OFFLINE: Final = 1
TOMBSTONE: Final = 2
_NAMES: Final = {OFFLINE: "Offline", TOMBSTONE: "Tombstone"}
DISCONNECTED_AFTER: Final = timedelta(seconds=20)
DOWN_AFTER: Final = timedelta(minutes=30)
DEFAULT_REGIONS: Final = 90
DEFAULT_MAX_REPLICAS: Final = 3


class StoreState(Value):
    """A store. `silent_since` None: it is heard of. `pod_uid` is the life of the pod that it was last heard from."""

    id: int
    address: str
    namespace: str
    cluster: str
    pod: str
    pod_uid: str
    started: datetime
    labels: dict[str, str] = {}
    capacity_bytes: int = 0
    state: int = UP
    regions: int = 0
    leaders: int = 0
    silent_since: datetime | None = None

    @property
    def is_special(self) -> bool:
        """For hot regions only: nothing else is put there."""
        return any(key.lower() == SPECIAL_USE.lower() and value for key, value in self.labels.items())

    def get_state_name(self, now: datetime) -> str:
        if self.state != UP:
            return _NAMES[self.state]
        silent = timedelta() if self.silent_since is None else now - self.silent_since
        if silent > DOWN_AFTER:
            return "Down"
        return "Disconnected" if silent > DISCONNECTED_AFTER else "Up"

    def is_healthy(self, now: datetime) -> bool:
        return self.get_state_name(now) == "Up"

    def get_last_heartbeat(self, now: datetime) -> datetime:
        return self.silent_since or now


class PdState(Value):
    """All of it. `cluster_uid` is the life of the TidbCluster: another one of the same name starts over."""

    cluster_uid: str
    as_of: datetime
    stores: tuple[StoreState, ...] = ()
    evicting: tuple[int, ...] = ()
    next_id: int = 1
    regions: int = DEFAULT_REGIONS
    max_replicas: int = DEFAULT_MAX_REPLICAS

    @property
    def is_bootstrapped(self) -> bool:
        return bool(self.stores)

    def store(self, store_id: int) -> StoreState | None:
        return next((store_state for store_state in self.stores if store_state.id == store_id), None)

    def find_store_of_pod(self, namespace: str, pod: str) -> StoreState | None:
        """The store of a pod; of several, the one that registered last."""
        found = [
            store_state for store_state in self.stores if (store_state.namespace, store_state.pod) == (namespace, pod)
        ]
        return found[-1] if found else None

    def list_stores_of_cluster(self, namespace: str, cluster: str) -> tuple[StoreState, ...]:
        return tuple(
            store_state
            for store_state in self.stores
            if (store_state.namespace, store_state.cluster) == (namespace, cluster)
        )

    @property
    def peers_missing(self) -> int:
        there = sum(store_state.regions for store_state in self.stores)
        return max(0, self.regions * self.max_replicas - there) if self.is_bootstrapped else 0

    def with_store(self, changed: StoreState) -> PdState:
        return replace(
            self, stores=tuple(changed if store_state.id == changed.id else store_state for store_state in self.stores)
        )


def apply_heartbeats(state: PdState, instances: Iterable[TidbInstance], *, now: datetime) -> PdState:
    """After the pods of the cluster were looked at: new ones register, those that are gone fall silent.

    A store is the disk of a pod. A pod that is recreated under its name is the same store, unless that was buried; and
    the process of a buried store does not register again, however long its pod lives.
    """
    running = [instance for instance in instances if instance.component == TIKV and instance.is_ready]
    for instance in running:
        state = _register(state, instance, now=now)
    present = {(instance.namespace, instance.pod): instance for instance in running}

    def update_store(store: StoreState) -> StoreState:
        instance = present.get((store.namespace, store.pod))
        if store.state == TOMBSTONE:
            return store
        if instance is None:
            return store if store.silent_since else replace(store, silent_since=now)
        return replace(store, silent_since=None, capacity_bytes=instance.capacity_bytes)

    return _map_stores(state, update_store)


def _register(state: PdState, instance: TidbInstance, *, now: datetime) -> PdState:
    known = state.find_store_of_pod(instance.namespace, instance.pod)
    if known is not None and known.pod_uid == instance.uid:
        return state
    if known is not None and known.state != TOMBSTONE:
        return state.with_store(replace(known, pod_uid=instance.uid, started=now))
    # The first store bootstraps the cluster: all regions begin there, with one peer.
    first = state.regions if not state.is_bootstrapped else 0
    new = StoreState(
        id=state.next_id,
        address=instance.address,
        namespace=instance.namespace,
        cluster=instance.cluster,
        pod=instance.pod,
        pod_uid=instance.uid,
        started=now,
        labels=instance.labels,
        capacity_bytes=instance.capacity_bytes,
        regions=first,
        leaders=first,
    )
    return replace(state, stores=(*state.stores, new), next_id=state.next_id + 1)


def _map_stores(state: PdState, change: Callable[[StoreState], StoreState]) -> PdState:
    return replace(state, stores=tuple(change(store_state) for store_state in state.stores))
