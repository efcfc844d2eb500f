"""The next step of a store removal, or of its cancellation. Pure.

The drainer reads PD, asks for one step, takes it and reads again. All rules about the order of steps are in this
module, and none of it waits. Two orders always hold. A drain record is written before PD is called, and it is cleared
only after the eviction that it records has ended, so that without a record there is nothing to clean up. And a pod is
removed only after its store is a Tombstone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from plimsoll.core.durations import add_seconds
from plimsoll.core.plans import Reason
from plimsoll.objects.api.meta import format_time
from plimsoll.tidb.model.limits import HEARD_WITHIN_S
from plimsoll.tidb.model.reconcile_types import DrainRecord
from plimsoll.tidb.planning.drain.store_health import OFFLINE, UP, find_blocker
from plimsoll.tidb.planning.drain.types import (
    NOT_REGISTERED,
    Blocked,
    Drained,
    DrainInProgress,
    Evict,
    PutBack,
    StopEvicting,
    TakeOffline,
    WriteRecord,
    find_store_to_drain,
)

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.tidb.planning.drain.store_health import ObservedStore
    from plimsoll.tidb.planning.drain.types import CancelStep, DrainSettings, DrainStep, ObservedStores, StoreDrain


def choose_next_step(
    drain: StoreDrain, observed: ObservedStores, *, settings: DrainSettings, now: datetime
) -> DrainStep:
    """One step to take, or the current state of the removal."""
    store, record = find_store_to_drain(drain, observed.stores), drain.record
    if record is not None and record.store_id != NOT_REGISTERED and (store is None or record.store_id != store.id):
        return _end_other_drain(drain, record, observed, is_last=store is None)
    if store is None:
        return _step_without_store(drain, observed, settings=settings, now=now)
    if store.state == OFFLINE:
        return _step_while_offline(store, record, observed, settings=settings, now=now)
    blocked = _find_blocker(drain, store, observed, settings=settings, now=now)
    if record is None or record.store_id != store.id:
        blocked = blocked or _find_other_eviction(store, observed)
        new = _start_record(store, now, owns_eviction=store.id not in observed.evicting)
        return Blocked(reason=blocked, record=record) if blocked else WriteRecord(record=new)
    return _step_while_up(
        store,
        record,
        observed,
        blocked=blocked,
        is_due=_has_passed(record.evicting_since, settings.leaders_within_s, now),
    )


def choose_next_guarding_step(
    drain: StoreDrain, observed: ObservedStores, *, settings: DrainSettings, now: datetime
) -> DrainStep:
    """The same where an operator removes stores as soon as `replicas` falls: decides only whether it may fall.

    Nothing is started in PD. What an active drainer started before is ended. A pod without a store is held as long as
    by an active drainer.
    """
    store = find_store_to_drain(drain, observed.stores)
    is_of_store = drain.record is not None and drain.record.store_id != NOT_REGISTERED
    if drain.record is not None and (is_of_store or store is not None):
        return _end_eviction(drain.record, observed)
    if store is None:
        step = _step_without_store(drain, observed, settings=settings, now=now)
        return msgspec.structs.replace(step, is_disk_free=False) if isinstance(step, Drained) else step
    if store.state == OFFLINE or drain.get_ordinal(store) not in drain.list_ordinals(drain.replicas):
        return DrainInProgress(record=None, reason=_build_draining_reason(store, "the operator is removing it"))
    blocked = _find_blocker(drain, store, observed, settings=settings, now=now)
    if blocked:
        return Blocked(reason=blocked)
    return Drained(store_id=store.id, message=f"store {store.id} may be removed", is_disk_free=False)


def choose_next_cancel_step(
    drain: StoreDrain, observed: ObservedStores, *, wanted: int, is_active: bool
) -> CancelStep | None:
    """One step to undo a removal, so that there may be `wanted` replicas; None: it is undone.

    `Drained` means that it is too late: a pod whose store is a Tombstone cannot continue, so it is removed before
    another is added.
    """
    record, stays = drain.record, drain.list_ordinals(max(wanted, drain.replicas))
    for store in observed.stores:
        if store.state == OFFLINE and drain.get_ordinal(store) in stays:
            return PutBack(store_id=store.id)
    if record is None:
        return None
    step = _end_eviction(record, observed)
    was_begun = record.store_id != NOT_REGISTERED and observed.store(record.store_id) is None
    if (
        isinstance(step, WriteRecord)
        and was_begun
        and is_active
        and find_store_to_drain(drain, observed.stores) is None
    ):
        return Drained(store_id=record.store_id, message=f"store {record.store_id} is a Tombstone already")
    return step


# ---- the states of a store that is drained


def _end_other_drain(drain: StoreDrain, record: DrainRecord, observed: ObservedStores, *, is_last: bool) -> DrainStep:
    """The recorded store is not, or no longer, the one to drain: it is a Tombstone, or `replicas` was changed."""
    recorded_store = observed.store(record.store_id)
    if recorded_store is not None and recorded_store.state == OFFLINE and drain.get_ordinal(recorded_store) is not None:
        return PutBack(store_id=recorded_store.id)
    step = _end_eviction(record, observed)
    if isinstance(step, WriteRecord) and recorded_store is None and is_last:
        return Drained(store_id=record.store_id, message=f"store {record.store_id} is a Tombstone")
    return step


def _end_eviction(record: DrainRecord, observed: ObservedStores) -> StopEvicting | WriteRecord:
    """End our eviction, then clear the record. In this order there is nothing to clean up without a record.

    An eviction that is not ours stays as long as its store does.
    """
    is_kept = not record.owns_eviction and observed.store(record.store_id) is not None
    is_ended = is_kept or record.store_id in observed.ended or record.store_id == NOT_REGISTERED
    return WriteRecord(record=None) if is_ended else StopEvicting(store_id=record.store_id)


def _step_without_store(
    drain: StoreDrain, observed: ObservedStores, *, settings: DrainSettings, now: datetime
) -> DrainStep:
    if reason := _find_doubt(drain, observed):
        return Blocked(reason=reason, record=drain.record)
    if unnamed := sorted(other.id for other in observed.stores if not other.pod and not other.is_tiflash):
        text = f"store {unnamed[0]} has an address that does not name its pod; it may be the store to remove"
        return Blocked(
            reason=Reason(code="StoreNotKnown", message=text, facts={"stores": unnamed}), record=drain.record
        )
    if drain.replicas == 0:
        return Drained(store_id=None, message="it has no stores left")
    if drain.record is None:
        return WriteRecord(record=_build_record(NOT_REGISTERED, regions=0, now=now))
    if _has_passed(drain.record.evicting_since, settings.unregistered_for_s, now):
        return Drained(store_id=None, message=f"its pod has had no store for {settings.unregistered_for_s:g} s")
    text = f"its pod has no store yet; it is removed if it has none within {settings.unregistered_for_s:g} s"
    return DrainInProgress(record=drain.record, reason=Reason(code="NotRegistered", message=text))


def _step_while_up(
    store: ObservedStore, record: DrainRecord, observed: ObservedStores, *, blocked: Reason | None, is_due: bool
) -> DrainStep:
    """The store has a record, and PD does not know yet that it is removed."""
    if blocked and is_due:
        # A lasting blocker must not keep its leaders away forever.
        return _end_eviction(record, observed)
    if blocked:
        return Blocked(reason=blocked, record=record)
    if store.id not in observed.evicting and not observed.eviction_refused:
        if not record.owns_eviction:
            # Another eviction has ended. Ours is recorded before it begins.
            return WriteRecord(record=msgspec.structs.replace(record, owns_eviction=True))
        return Evict(store_id=store.id)
    if store.leaders and not is_due:
        return DrainInProgress(
            record=record, reason=_build_draining_reason(store, f"{store.leaders} leaders must move first")
        )
    return _take_offline(store, record, observed)


def _take_offline(store: ObservedStore, record: DrainRecord, observed: ObservedStores) -> TakeOffline:
    facts = _collect_facts(store) | (observed.health.build_facts(store, observed.stores) if observed.health else {})
    return TakeOffline(
        store_id=store.id,
        record=msgspec.structs.replace(record, region_count=store.regions),
        blocked=Reason(code="PdRefuses", message=f"PD does not release store {store.id}", facts=facts),
    )


def _step_while_offline(
    store: ObservedStore,
    record: DrainRecord | None,
    observed: ObservedStores,
    *,
    settings: DrainSettings,
    now: datetime,
) -> DrainStep:
    if record is None or record.store_id != store.id:
        return WriteRecord(record=_start_record(store, now, owns_eviction=False))
    if any(other.state == OFFLINE and other.id < store.id for other in observed.stores):
        # Two stores are Offline at once. Every observer puts back the same one.
        return PutBack(store_id=store.id)
    if store.regions < record.region_count:
        return WriteRecord(record=msgspec.structs.replace(record, region_count=store.regions, regions_moved_at=now))
    if _has_passed(record.regions_moved_at, settings.stalled_after_s, now):
        text = f"store {store.id} has had {store.regions} regions since {record.regions_moved_at:%Y-%m-%dT%H:%M:%SZ}"
        return Blocked(reason=Reason(code="Stalled", message=text, facts=_collect_facts(store)), record=record)
    return DrainInProgress(record=record, reason=_build_draining_reason(store, f"{store.regions} regions must move"))


def _find_doubt(drain: StoreDrain, observed: ObservedStores) -> Reason | None:
    """Why it is not believed that a pod has no store."""
    if not observed.stores:
        return Reason(code="NoStores", message="PD lists no stores at all, so nothing is known about its stores")
    if observed.unlisted:
        return _build_unlisted_reason(observed)
    if ready := sorted(drain.leaving_pods & drain.ready_pods):
        text = f"pod {ready[0]} is Ready, so it has a store, and PD lists none for it"
        return Reason(code="StoreNotListed", message=text, facts={"pods": ready})
    return None


def _build_unlisted_reason(observed: ObservedStores) -> Reason:
    text = f"PD's list of stores lacks store {observed.unlisted[0]}, which PD has"
    return Reason(code="StoresIncomplete", message=text, facts={"stores": list(observed.unlisted)})


def _find_silence(observed: ObservedStores, now: datetime) -> Reason | None:
    """A store that is Up and was not heard from lately, or later than now: an old answer, or clocks that differ."""
    for store in observed.stores:
        if store.state == UP and store.last_heartbeat is not None:
            ago_s = (now - store.last_heartbeat).total_seconds()
            if abs(ago_s) > HEARD_WITHIN_S:
                text = (
                    f"store {store.id} is Up and was last heard at {format_time(store.last_heartbeat)}: "
                    "PD's answer is old, or its clock differs from ours"
                )
                return Reason(code="StoresOutdated", message=text, facts={"stores": [store.id]})
    return None


def _find_blocker(
    drain: StoreDrain, store: ObservedStore, observed: ObservedStores, *, settings: DrainSettings, now: datetime
) -> Reason | None:
    if observed.unlisted:
        return _build_unlisted_reason(observed)
    if silence := _find_silence(observed, now):
        return silence
    if observed.health is None:
        return Reason(code="HealthNotKnown", message=f"the health of regions is unknown, so store {store.id} must stay")
    return find_blocker(
        store,
        observed.stores,
        health=observed.health,
        highest_usage=drain.highest_usage,
        peer_tolerance=settings.peer_tolerance,
    )


def _find_other_eviction(store: ObservedStore, observed: ObservedStores) -> Reason | None:
    others = sorted(other.id for other in observed.stores if other.id in observed.evicting and other.id != store.id)
    if not others:
        return None
    text = f"leaders are being evicted from store {others[0]}; one store is removed at a time"
    known = observed.health.build_facts(store, observed.stores) if observed.health else {}
    return Reason(code="AnotherLeaves", message=text, facts={**known, "stores": others})


def _start_record(store: ObservedStore, now: datetime, *, owns_eviction: bool) -> DrainRecord:
    """The record of a store. An eviction that exists before the record is not ours."""
    return _build_record(store.id, regions=store.regions, now=now, owns_eviction=owns_eviction)


def _build_record(store_id: int, *, regions: int, now: datetime, owns_eviction: bool = False) -> DrainRecord:
    return DrainRecord(
        store_id=store_id,
        evicting_since=now,
        region_count=regions,
        regions_moved_at=now,
        owns_eviction=owns_eviction,
    )


def _build_draining_reason(store: ObservedStore, how: str) -> Reason:
    return Reason(code="Draining", message=f"store {store.id} is being removed: {how}", facts=_collect_facts(store))


def _collect_facts(store: ObservedStore) -> dict[str, int]:
    return {"store": store.id, "leaders": store.leaders, "regions": store.regions}


def _has_passed(since: datetime, seconds: float, now: datetime) -> bool:
    return add_seconds(since, seconds) <= now
