"""What is done next about a TiKV store that is leaving, or that is wanted after all. Pure.

The drainer looks at PD, asks here, does that one thing and looks again, so that every rule about the order of things is
in this module and none of it waits. Two orders hold throughout. A mark is written before PD is told anything, and it is
cleared only after the eviction it tells of has ended: whoever finds no mark has nothing to clean up. And a pod goes
only after its store is buried.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from plimsoll.core.plans import Reason
from plimsoll.tidb.model.reconcile_types import DrainMark
from plimsoll.tidb.planning.drain.store_health import OFFLINE, may_leave
from plimsoll.tidb.planning.drain.types import (
    NOT_REGISTERED,
    Blocked,
    Drained,
    DrainInProgress,
    Evict,
    PutBack,
    Remember,
    StopEvicting,
    TakeOffline,
    leaving_store,
)

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.tidb.planning.drain.store_health import StoreSeen
    from plimsoll.tidb.planning.drain.types import DrainSeen, DrainSettings, ReturningStep, Step, StoreDrain


def next_step(leaving: StoreDrain, seen: DrainSeen, *, settings: DrainSettings, now: datetime) -> Step:
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


def next_guarding_step(leaving: StoreDrain, seen: DrainSeen, *, settings: DrainSettings) -> Step:
    """The same where an operator takes stores out as soon as `replicas` falls: only whether it may fall.

    Nothing is begun here; what a drainer of the other kind began before is ended.
    """
    if leaving.mark is not None:
        return _end_of_eviction(leaving.mark, seen)
    store = leaving_store(leaving, seen.stores)
    if store is None:
        return Drained(store_id=None, said="it has no store there", is_disk_free=False)
    if store.state == OFFLINE or leaving.ordinal_of(store) not in leaving.ordinals(leaving.replicas):
        return DrainInProgress(mark=None, reason=_leaving_reason(store, "the operator is taking it out"))
    blocked = _why_not(leaving, store, seen, settings)
    if blocked:
        return Blocked(reason=blocked)
    return Drained(store_id=store.id, said=f"store {store.id} may leave", is_disk_free=False)


def next_returning_step(leaving: StoreDrain, seen: DrainSeen, *, wanted: int, is_active: bool) -> ReturningStep | None:
    """Undo what was begun, so that there may be `wanted` replicas; None: it is undone.

    `Drained` says that it came too late: a pod whose store is buried cannot go on, so it leaves before another comes.
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
        return Drained(store_id=mark.store_id, said=f"store {mark.store_id} is buried already")
    return step


# ---- the states of a store on its way out


def _end_of_another(leaving: StoreDrain, mark: DrainMark, seen: DrainSeen, *, is_last: bool) -> Step:
    """The marked store is not, or no longer, the one to leave: it is buried, or somebody changed `replicas`."""
    marked = seen.store(mark.store_id)
    if marked is not None and marked.state == OFFLINE and leaving.ordinal_of(marked) is not None:
        return PutBack(store_id=marked.id)
    step = _end_of_eviction(mark, seen)
    if isinstance(step, Remember) and marked is None and is_last:
        return Drained(store_id=mark.store_id, said=f"store {mark.store_id} is buried")
    return step


def _end_of_eviction(mark: DrainMark, seen: DrainSeen) -> StopEvicting | Remember:
    """In this order: whoever finds no mark has nothing to clean up."""
    is_ended = mark.store_id in seen.ended or mark.store_id == NOT_REGISTERED
    return Remember(mark=None) if is_ended else StopEvicting(store_id=mark.store_id)


def _without_store(leaving: StoreDrain, seen: DrainSeen, *, settings: DrainSettings, now: datetime) -> Step:
    if nameless := sorted(
        store_seen.id for store_seen in seen.stores if not store_seen.pod and not store_seen.is_tiflash
    ):
        text = f"store {nameless[0]} has an address that does not tell its pod: it may be the one to leave"
        return Blocked(reason=Reason(code="StoreNotKnown", message=text, facts={"stores": nameless}), mark=leaving.mark)
    if leaving.replicas == 0:
        return Drained(store_id=None, said="it has no store left")
    if leaving.mark is None:
        return Remember(mark=_mark(NOT_REGISTERED, regions=0, now=now))
    if _passed(leaving.mark.evicting_since, settings.unregistered_for_s, now):
        return Drained(store_id=None, said=f"its pod has had no store for {settings.unregistered_for_s:g} s")
    text = f"its pod has no store yet; it goes if it has none within {settings.unregistered_for_s:g} s"
    return DrainInProgress(mark=leaving.mark, reason=Reason(code="NotRegistered", message=text))


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
        return DrainInProgress(mark=mark, reason=_leaving_reason(store, f"{store.leaders} leaders have to move first"))
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
    if any(store_seen.state == OFFLINE and store_seen.id < store.id for store_seen in seen.stores):
        # Two were told to go at once. Whoever looks, the same one of them steps back.
        return PutBack(store_id=store.id)
    if store.regions < mark.region_count:
        return Remember(mark=msgspec.structs.replace(mark, region_count=store.regions, regions_moved_at=now))
    if _passed(mark.regions_moved_at, settings.stalled_after_s, now):
        text = f"store {store.id} has kept its {store.regions} regions since {mark.regions_moved_at:%Y-%m-%dT%H:%M:%SZ}"
        return Blocked(reason=Reason(code="Stalled", message=text, facts=_facts(store)), mark=mark)
    return DrainInProgress(mark=mark, reason=_leaving_reason(store, f"{store.regions} regions have to move"))


def _why_not(leaving: StoreDrain, store: StoreSeen, seen: DrainSeen, settings: DrainSettings) -> Reason | None:
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
    others = sorted(
        store_seen.id for store_seen in seen.stores if store_seen.id in seen.evicting and store_seen.id != store.id
    )
    if not others:
        return None
    text = f"leaders are being moved away from store {others[0]}; one store leaves at a time"
    known = seen.health.facts(store, seen.stores) if seen.health else {}
    return Reason(code="AnotherLeaves", message=text, facts={**known, "stores": others})


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
