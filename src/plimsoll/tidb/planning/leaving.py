"""When a TiKV store may leave its cluster, and what is to be done next about one that is leaving.

The drainer looks at PD, asks `next_step` here, does that one thing and looks again, so that every rule about the order
of things is in this module and none of it waits. Which store leaves is always told by ordinals, never by a mark: a mark
only remembers what was begun. Two orders hold throughout. A mark is written before PD is told anything, and it is
cleared only after the eviction it tells of has ended: whoever finds no mark has nothing to clean up. And a pod goes
only after its store is buried.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

import msgspec

from plimsoll.core.plans import Reason
from plimsoll.core.values import Value
from plimsoll.tidb.planning.passes import DrainMark
from plimsoll.tidb.planning.store_health import OFFLINE, Health, StoreSeen, may_leave

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


class Leaving(Value):
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


class Left(Value):
    """The store is buried (None: there never was one): `replicas` may be lowered by one now, and the mark cleared."""

    store_id: int | None
    said: str
    is_disk_free: bool = True
    """False where an operator takes the store out when it sees `replicas` fall: until then its disk is in use."""


class Underway(Value):
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


Step = Remember | Evict | TakeOffline | StopEvicting | PutBack | Left | Underway | Blocked
ReturningStep = Remember | StopEvicting | PutBack | Left


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
        return next((one for one in self.stores if one.id == store_id), None)


def leaving_store(leaving: Leaving, stores: tuple[StoreSeen, ...]) -> StoreSeen | None:
    """Of those not buried that may not stay, the one of the highest ordinal; None: all of them are buried.

    More than one is there if somebody lowered `replicas` by hand, or if a pod registered when nobody expected it.
    """
    ordinals = [(ordinal, one) for one in stores if (ordinal := leaving.ordinal_of(one)) is not None]
    candidates = [(ordinal, one.id, one) for ordinal, one in ordinals if ordinal not in leaving.staying]
    return max(candidates, key=lambda found: found[:2])[2] if candidates else None


def next_step(leaving: Leaving, seen: DrainSeen, *, settings: DrainSettings, now: datetime) -> Step:
    """One thing to do, or how it stands."""
    store, mark = leaving_store(leaving, seen.stores), leaving.mark
    if mark is not None and mark.store_id != NOT_REGISTERED and (store is None or mark.store_id != store.id):
        return _end_of_another(leaving, mark, seen, is_last=store is None)
    if store is None:
        return _without_store(leaving, seen, settings=settings, now=now)
    if store.state == OFFLINE:
        return _offline(store, mark, seen, settings=settings, now=now)
    blocked = _why_not(leaving, store, seen, settings)
    if mark is None or mark.store_id != store.id:
        blocked = blocked or _evicted_others(store, seen)
        return Blocked(reason=blocked, mark=mark) if blocked else Remember(mark=_new(store, now))
    return _up(store, mark, seen, blocked=blocked, is_due=_passed(mark.evicting_since, settings.leaders_within_s, now))


def next_guarding_step(leaving: Leaving, seen: DrainSeen, *, settings: DrainSettings) -> Step:
    """The same where an operator takes stores out as soon as `replicas` falls: only whether it may fall.

    Nothing is begun here; what a drainer of the other kind began before is ended.
    """
    if leaving.mark is not None:
        return _end_of_eviction(leaving.mark, seen)
    store = leaving_store(leaving, seen.stores)
    if store is None:
        return Left(store_id=None, said="it has no store there", is_disk_free=False)
    if store.state == OFFLINE or leaving.ordinal_of(store) not in leaving.ordinals(leaving.replicas):
        return Underway(mark=None, reason=_leaving_reason(store, "the operator is taking it out"))
    blocked = _why_not(leaving, store, seen, settings)
    if blocked:
        return Blocked(reason=blocked)
    return Left(store_id=store.id, said=f"store {store.id} may leave", is_disk_free=False)


def next_returning_step(leaving: Leaving, seen: DrainSeen, *, wanted: int, is_active: bool) -> ReturningStep | None:
    """Undo what was begun, so that there may be `wanted` replicas; None: it is undone.

    `Left` says that it came too late: a pod whose store is buried cannot go on, so it leaves before another comes.
    """
    mark, stays = leaving.mark, leaving.ordinals(max(wanted, leaving.replicas))
    for store in seen.stores:
        if store.state == OFFLINE and leaving.ordinal_of(store) in stays:
            return PutBack(store_id=store.id)
    if mark is None:
        return None
    step = _end_of_eviction(mark, seen)
    was_begun = mark.store_id != NOT_REGISTERED and seen.store(mark.store_id) is None
    if isinstance(step, Remember) and was_begun and is_active and leaving_store(leaving, seen.stores) is None:
        return Left(store_id=mark.store_id, said=f"store {mark.store_id} is buried already")
    return step


# ---- the states of a store on its way out


def _end_of_another(leaving: Leaving, mark: DrainMark, seen: DrainSeen, *, is_last: bool) -> Step:
    """The marked store is not, or no longer, the one to leave: it is buried, or somebody changed `replicas`."""
    marked = seen.store(mark.store_id)
    if marked is not None and marked.state == OFFLINE and leaving.ordinal_of(marked) is not None:
        return PutBack(store_id=marked.id)
    step = _end_of_eviction(mark, seen)
    if isinstance(step, Remember) and marked is None and is_last:
        return Left(store_id=mark.store_id, said=f"store {mark.store_id} is buried")
    return step


def _end_of_eviction(mark: DrainMark, seen: DrainSeen) -> StopEvicting | Remember:
    """In this order: whoever finds no mark has nothing to clean up."""
    is_ended = mark.store_id in seen.ended or mark.store_id == NOT_REGISTERED
    return Remember(mark=None) if is_ended else StopEvicting(store_id=mark.store_id)


def _without_store(leaving: Leaving, seen: DrainSeen, *, settings: DrainSettings, now: datetime) -> Step:
    if nameless := sorted(one.id for one in seen.stores if not one.pod and not one.is_tiflash):
        text = f"store {nameless[0]} has an address that does not tell its pod: it may be the one to leave"
        return Blocked(reason=Reason(code="StoreNotKnown", message=text, facts={"stores": nameless}), mark=leaving.mark)
    if leaving.replicas == 0:
        return Left(store_id=None, said="it has no store left")
    if leaving.mark is None:
        return Remember(mark=_mark(NOT_REGISTERED, regions=0, now=now))
    if _passed(leaving.mark.evicting_since, settings.unregistered_for_s, now):
        return Left(store_id=None, said=f"its pod has had no store for {settings.unregistered_for_s:g} s")
    text = f"its pod has no store yet; it goes if it has none within {settings.unregistered_for_s:g} s"
    return Underway(mark=leaving.mark, reason=Reason(code="NotRegistered", message=text))


def _up(store: StoreSeen, mark: DrainMark, seen: DrainSeen, *, blocked: Reason | None, is_due: bool) -> Step:
    """Marked, and PD does not know yet that it goes."""
    if blocked and is_due:
        # Its leaders are not kept away for ever by what does not pass.
        return _end_of_eviction(mark, seen)
    if blocked:
        return Blocked(reason=blocked, mark=mark)
    if store.id not in seen.evicting and not seen.eviction_refused:
        return Evict(store_id=store.id)
    if store.leaders and not is_due:
        return Underway(mark=mark, reason=_leaving_reason(store, f"{store.leaders} leaders have to move first"))
    return _take_offline(store, mark, seen)


def _take_offline(store: StoreSeen, mark: DrainMark, seen: DrainSeen) -> TakeOffline:
    facts = _facts(store) | (seen.health.facts(store, seen.stores) if seen.health else {})
    return TakeOffline(
        store_id=store.id,
        mark=msgspec.structs.replace(mark, region_count=store.regions),
        blocked=Reason(code="PdRefuses", message=f"store {store.id} is not let go", facts=facts),
    )


def _offline(
    store: StoreSeen, mark: DrainMark | None, seen: DrainSeen, *, settings: DrainSettings, now: datetime
) -> Step:
    if mark is None or mark.store_id != store.id:
        return Remember(mark=_new(store, now))
    if any(one.state == OFFLINE and one.id < store.id for one in seen.stores):
        # Two were told to go at once. Whoever looks, the same one of them steps back.
        return PutBack(store_id=store.id)
    if store.regions < mark.region_count:
        return Remember(mark=msgspec.structs.replace(mark, region_count=store.regions, regions_moved_at=now))
    if _passed(mark.regions_moved_at, settings.stalled_after_s, now):
        text = f"store {store.id} has kept its {store.regions} regions since {mark.regions_moved_at:%Y-%m-%dT%H:%M:%SZ}"
        return Blocked(reason=Reason(code="Stalled", message=text, facts=_facts(store)), mark=mark)
    return Underway(mark=mark, reason=_leaving_reason(store, f"{store.regions} regions have to move"))


def _why_not(leaving: Leaving, store: StoreSeen, seen: DrainSeen, settings: DrainSettings) -> Reason | None:
    if seen.health is None:
        return Reason(code="HealthNotKnown", message=f"nobody asked whether store {store.id} may leave")
    return may_leave(
        store,
        seen.stores,
        health=seen.health,
        highest_usage=leaving.highest_usage,
        peer_tolerance=settings.peer_tolerance,
    )


def _evicted_others(store: StoreSeen, seen: DrainSeen) -> Reason | None:
    others = sorted(one.id for one in seen.stores if one.id in seen.evicting and one.id != store.id)
    if not others:
        return None
    text = f"leaders are being moved away from store {others[0]}; one store leaves at a time"
    return Reason(code="AnotherLeaves", message=text, facts={"stores": others})


def _new(store: StoreSeen, now: datetime) -> DrainMark:
    return _mark(store.id, regions=store.regions, now=now)


def _mark(store_id: int, *, regions: int, now: datetime) -> DrainMark:
    return DrainMark(store_id=store_id, evicting_since=now, region_count=regions, regions_moved_at=now)


def _leaving_reason(store: StoreSeen, how: str) -> Reason:
    return Reason(code="Draining", message=f"store {store.id} is leaving: {how}", facts=_facts(store))


def _facts(store: StoreSeen) -> dict[str, int]:
    return {"store": store.id, "leaders": store.leaders, "regions": store.regions}


def _passed(since: datetime, seconds: float, now: datetime) -> bool:
    return now - since >= timedelta(seconds=seconds)
