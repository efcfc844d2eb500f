"""Region scheduling of the simulated PD: one region and one leader per step, at a constant speed. Pure.

As in PD, missing peers are created first, then those of leaving and lost stores are moved, then stores are
balanced. Stores for hot regions get a few of them and are never a place for anything else, so what leaves one must find
room on ordinary stores; where there is none it stays. An Offline store without regions becomes Tombstone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.core.durations import add_seconds
from plimsoll.local.tidb.pd.stores import OFFLINE, TOMBSTONE, UP

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.local.tidb.pd.stores import PdState, StoreState

MOVES_PER_SECOND: Final = 10.0
# One region in so many is hot, and moves to a store that is meant for hot ones.
_HOT_ONE_IN: Final = 10
_MOST_STEPS: Final = 100_000
_IMBALANCE: Final = 2


def advance(state: PdState, *, now: datetime, speed: float = MOVES_PER_SECOND) -> PdState:
    """The state at `now`."""
    due = min(_MOST_STEPS, int(max(0.0, (now - state.as_of).total_seconds()) * speed + 1e-9))
    counts = _RegionCounts(state, now=now)
    taken = 0
    while taken < due and counts.step():
        taken += 1
    # What has nothing to do does not save up time for later.
    as_of = add_seconds(state.as_of, taken / speed) if taken == due else now
    return _mark_tombstones(counts.build_state(), as_of=max(as_of, state.as_of))


def compute_seconds_to_settle(state: PdState, *, now: datetime, speed: float = MOVES_PER_SECOND) -> float:
    """How long until nothing moves any more, if nothing else happens. 0: it has settled."""
    counts = _RegionCounts(state, now=now)
    steps = 0
    while steps < _MOST_STEPS and counts.step():
        steps += 1
    return steps / speed


def _mark_tombstones(state: PdState, *, as_of: datetime) -> PdState:
    gone = {store_state.id for store_state in state.stores if store_state.state == OFFLINE and store_state.regions == 0}
    if not gone:
        return replace(state, as_of=as_of)
    stores = tuple(
        replace(store_state, state=TOMBSTONE, leaders=0) if store_state.id in gone else store_state
        for store_state in state.stores
    )
    return replace(state, stores=stores, as_of=as_of)


class _RegionCounts:
    """Counts by store, while they are moved."""

    def __init__(self, state: PdState, *, now: datetime) -> None:
        self._state = state
        self._now = now
        self._stores = [store_state for store_state in state.stores if store_state.state != TOMBSTONE]
        self._regions = {store_state.id: store_state.regions for store_state in self._stores}
        self._leaders = {store_state.id: store_state.leaders for store_state in self._stores}
        healthy = [store_state for store_state in self._stores if store_state.is_healthy(now)]
        self._normal = [store_state.id for store_state in healthy if not store_state.is_special]
        self._special = [store_state.id for store_state in healthy if store_state.is_special]
        self._leaving = [store_state.id for store_state in self._stores if self._is_leaving(store_state)]
        evicting = set(state.evicting)
        self._led = [store_id for store_id in (*self._normal, *self._special) if store_id not in evicting]
        self._unled = [store_state.id for store_state in self._stores if store_state.id not in self._led]

    def step(self) -> bool:
        """Move a peer and a leader, as far as there is something to move."""
        has_moved = (
            self._make_missing_peer() or self._move_from_leaving() or self._move_peer_to_special() or self._balance()
        )
        return self._move_leader() or has_moved

    def build_state(self) -> PdState:
        changed = tuple(
            replace(store_state, regions=self._regions[store_state.id], leaders=self._leaders[store_state.id])
            if store_state.id in self._regions
            else store_state
            for store_state in self._state.stores
        )
        return replace(self._state, stores=changed)

    def _is_leaving(self, store: StoreState) -> bool:
        return store.state == OFFLINE or (store.state == UP and store.get_state_name(self._now) == "Down")

    # ---- peers

    def _find_emptiest(self) -> int | None:
        """The ordinary store with the fewest regions that does not have them all."""
        open_ones = [store_id for store_id in self._normal if self._regions[store_id] < self._state.regions]
        return min(open_ones, key=lambda open_one: (self._regions[open_one], open_one), default=None)

    def _make_missing_peer(self) -> bool:
        target = self._find_emptiest()
        wanted = self._state.regions * self._state.max_replicas
        if target is None or sum(self._regions.values()) >= wanted:
            return False
        self._regions[target] += 1
        return True

    def _move_from_leaving(self) -> bool:
        source = next((store_id for store_id in self._leaving if self._regions[store_id]), None)
        target = self._find_emptiest()
        return source is not None and target is not None and self._move_peer(source, target)

    def _move_peer_to_special(self) -> bool:
        hot = max(1, self._state.regions // _HOT_ONE_IN)
        cold = next((store_id for store_id in self._special if self._regions[store_id] < hot), None)
        source = max(self._normal, key=lambda store_id: (self._regions[store_id], -store_id), default=None)
        if cold is None or source is None or self._regions[source] == 0:
            return False
        return self._move_peer(source, cold)

    def _balance(self) -> bool:
        target = self._find_emptiest()
        source = max(self._normal, key=lambda store_id: (self._regions[store_id], -store_id), default=None)
        if target is None or source is None or self._regions[source] - self._regions[target] < _IMBALANCE:
            return False
        return self._move_peer(source, target)

    def _move_peer(self, source: int, target: int) -> bool:
        self._regions[source] -= 1
        self._regions[target] += 1
        if self._leaders[source] > self._regions[source]:
            # It led the region that left.
            self._leaders[source] -= 1
            self._leaders[target] += 1
        return True

    # ---- leaders

    def _move_leader(self) -> bool:
        target = self._find_follower()
        source = self._find_misplaced_leader(target)
        if source is None or target is None or target == source:
            return False
        self._leaders[source] -= 1
        self._leaders[target] += 1
        return True

    def _find_misplaced_leader(self, target: int | None) -> int | None:
        """A store that must not lead and does; if there is none, one that leads more than its share."""
        must_not = next((store_id for store_id in self._unled if self._leaders[store_id]), None)
        if must_not is not None or target is None:
            return must_not
        ordinary = [store_id for store_id in self._normal if store_id in self._led]
        busiest = max(ordinary, key=lambda store_id: (self._leaders[store_id], -store_id), default=None)
        is_busy = busiest is not None and self._leaders[busiest] - self._leaders[target] >= _IMBALANCE
        return busiest if is_busy else None

    def _find_follower(self) -> int | None:
        """The store with the fewest leaders among those that may take one more."""
        able = [store_id for store_id in self._led if self._leaders[store_id] < self._regions[store_id]]
        return min(able, key=lambda store_id: (self._leaders[store_id], store_id), default=None)
