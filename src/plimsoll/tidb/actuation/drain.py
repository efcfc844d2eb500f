"""Removes TiKV stores from a cluster, one at a time, and cancels removals of stores that are needed again.

Every intention is first written to the TidbCluster, by the given `IntentStore`, so that after a crash a record
exists for whatever was done in PD; the drainer keeps no state. It goes as far as possible without waiting: read PD, ask
`planning.drain.steps` for one step, take it, read again. A store is never removed by force.

An active drainer does everything. A guarding one (an operator removes stores when `replicas` falls) removes none and
only says whether `replicas` may fall. Cancelling writes to PD in both modes, because no operator does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from plimsoll.core.plans import Reason
from plimsoll.operator.intents import StoredIntent
from plimsoll.tidb.pd.client import EvictionExisted, PdFailed
from plimsoll.tidb.pd.members import parse_pod_address
from plimsoll.tidb.pd.types import TOMBSTONE, count_needed_replicas
from plimsoll.tidb.planning.drain.steps import choose_next_cancel_step, choose_next_guarding_step, choose_next_step
from plimsoll.tidb.planning.drain.store_health import OFFLINE, ObservedStore, RegionHealth
from plimsoll.tidb.planning.drain.types import (
    NOT_REGISTERED,
    Blocked,
    Drained,
    DrainInProgress,
    DrainSettings,
    Evict,
    ObservedStores,
    PutBack,
    StopEvicting,
    StoreDrain,
    TakeOffline,
    Unknown,
    WriteRecord,
    find_store_to_drain,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from plimsoll.operator.intents import IntentStore
    from plimsoll.tidb.model.reconcile_types import DrainRecord
    from plimsoll.tidb.pd.client import PdClient, RegionCheck
    from plimsoll.tidb.pd.types import Store
    from plimsoll.tidb.planning.drain.types import DrainStep

_log = structlog.get_logger(__name__)

STEPS_AT_MOST: Final = 40
"""Per call. A store needs about eight steps; unfinished work continues in the next reconcile."""
STORES_VERIFIED_AT_MOST: Final = 50
"""How many stores that PD does not list are read one by one. Where more are missing, the list is not believed."""
_CHECKS: Final[Sequence[RegionCheck]] = ("miss-peer", "pending-peer", "down-peer")


class Drainer:
    """The drainer of one PD, whose stores may belong to several TidbClusters.

    A `StoreDrain` is built from the TidbCluster as just read. On `Drained` the caller lowers `replicas` by one and
    clears the record, in one write with the `resourceVersion` that was read: a concurrent change of `replicas` would
    otherwise lose a store. Only the drainer writes records.
    """

    def __init__(self, pd: PdClient, *, is_active: bool, settings: DrainSettings | None = None) -> None:
        self._pd = pd
        self._is_active = is_active
        self._settings = settings or DrainSettings()

    async def take_out(
        self, drain: StoreDrain, *, now: datetime, write_record: IntentStore[DrainRecord]
    ) -> Drained | DrainInProgress | Blocked | Unknown:
        """Work towards one replica fewer. The record in the result is the stored one."""
        call = _Call(self._pd, drain, write_record=write_record)
        for _ in range(STEPS_AT_MOST):
            observed = await call.look(with_health=True, is_active=self._is_active)
            if isinstance(observed, PdFailed):
                return Unknown(problem=observed.problem)
            step = self._choose_next(call.drain, observed, now)
            if isinstance(step, Drained | DrainInProgress | Blocked):
                return step
            ended = await call.take(step, now)
            if ended is not None:
                return ended
        text = f"{drain.cluster} needs more steps than one reconcile takes"
        return DrainInProgress(record=call.drain.record, reason=Reason(code="Draining", message=text))

    async def drain_all(
        self, drain: StoreDrain, *, now: datetime, write_record: IntentStore[DrainRecord]
    ) -> Drained | DrainInProgress | Blocked | Unknown:
        """Work towards no store at all, before a TidbCluster is deleted. `Drained`: it may be deleted."""
        return await self.take_out(msgspec.structs.replace(drain, replicas=0), now=now, write_record=write_record)

    async def bring_back(
        self, drain: StoreDrain, *, wanted: int, write_record: IntentStore[DrainRecord]
    ) -> Drained | PdFailed | None:
        """Undo what was started, so that there may be `wanted` replicas; None: done, and the record is cleared.

        `Drained`: too late, the store is a Tombstone. Its pod must be removed, as after `take_out`, before another is
        added.
        """
        call = _Call(self._pd, drain, write_record=write_record)
        for _ in range(STEPS_AT_MOST):
            observed = await call.look(with_health=False, is_active=self._is_active)
            if isinstance(observed, PdFailed):
                return observed
            step = choose_next_cancel_step(call.drain, observed, wanted=wanted, is_active=self._is_active)
            if step is None or isinstance(step, Drained):
                return step
            failed = await call.undo(step)
            if failed is not None:
                return failed
        return PdFailed(problem=f"{drain.cluster} needs more steps to undo than one reconcile takes", status=200)

    def _choose_next(self, drain: StoreDrain, observed: ObservedStores, now: datetime) -> DrainStep:
        if not self._is_active:
            return choose_next_guarding_step(drain, observed, settings=self._settings, now=now)
        return choose_next_step(drain, observed, settings=self._settings, now=now)


class _Call:
    """One call of the drainer: the state of PD and of the record, and what was requested from PD meanwhile."""

    def __init__(self, pd: PdClient, drain: StoreDrain, *, write_record: IntentStore[DrainRecord]) -> None:
        self.drain = drain
        self._pd = pd
        self._record = StoredIntent(write_record, drain.record)
        self._evicting: set[int] = set()
        self._ended: set[int] = set()
        self._is_refused = False
        self._is_confirmed = False
        self._claimed: set[int] = set()
        self._unlisted: tuple[int, ...] = ()

    # ---- reading

    async def look(self, *, with_health: bool, is_active: bool) -> ObservedStores | PdFailed:
        stores = await self._read_stores()
        if isinstance(stores, PdFailed):
            return stores
        evicting = await self._list_evictions() if is_active else frozenset[int]()
        if isinstance(evicting, PdFailed):
            return evicting
        store = find_store_to_drain(self.drain, stores)
        needs_health = with_health and store is not None and store.state != OFFLINE
        health = await self._read_health() if needs_health else None
        if isinstance(health, PdFailed):
            return health
        return ObservedStores(
            stores=stores,
            evicting=(evicting | self._evicting) - self._ended,
            ended=frozenset(self._ended),
            health=health,
            eviction_refused=self._is_refused,
            unlisted=self._unlisted,
        )

    async def _read_stores(self) -> tuple[ObservedStore, ...] | PdFailed:
        listed = await self._pd.get_stores()
        if isinstance(listed, PdFailed):
            return listed
        alive = {store.id: _observe_store(store) for store in listed if store.state != TOMBSTONE}
        unlisted = await self._read_unlisted(frozenset(store.id for store in listed))
        if isinstance(unlisted, PdFailed):
            return unlisted
        self._unlisted = tuple(store.id for store in unlisted)
        alive |= {store.id: store for store in unlisted}
        return tuple(alive[store_id] for store_id in sorted(alive))

    async def _read_unlisted(self, listed: frozenset[int]) -> list[ObservedStore] | PdFailed:
        """Stores that are known and not listed, and that PD has: a missing list entry proves nothing."""
        record = self.drain.record
        recorded = frozenset({record.store_id} if record is not None else ()) - {NOT_REGISTERED}
        missing = (self.drain.known_stores | recorded) - listed
        if len(missing) > STORES_VERIFIED_AT_MOST:
            return PdFailed(problem=f"PD's list of stores lacks {len(missing)} known stores", status=200)
        found = []
        for store_id in sorted(missing):
            store = await self._pd.get_store(store_id)
            if isinstance(store, PdFailed) and not store.is_gone:
                return store
            if not isinstance(store, PdFailed) and store.state != TOMBSTONE:
                found.append(_observe_store(store))
        return found

    async def _list_evictions(self) -> frozenset[int] | PdFailed:
        """Evictions in PD. Unless they are known, it is not known whether one would be ours.

        A PD without schedulers has none.
        """
        listed = await self._pd.list_evicting()
        return frozenset() if isinstance(listed, PdFailed) and listed.is_gone else listed

    async def _read_health(self) -> RegionHealth | PdFailed:
        """Region health.

        A PD too old for placement rules or for a check has no such page; other errors are reported.
        """
        replication = await self._pd.get_replication()
        if isinstance(replication, PdFailed):
            return replication
        rules = await self._pd.get_placement_rules() if replication.has_placement_rules else ()
        if isinstance(rules, PdFailed) and not rules.is_gone:
            return rules
        wrong: dict[str, int] = {}
        for check in _CHECKS:
            count = await self._pd.count_regions(check)
            if not isinstance(count, PdFailed):
                wrong[check] = count
            elif not count.is_gone:
                return count
        rules = () if isinstance(rules, PdFailed) else rules
        return RegionHealth(needed=count_needed_replicas(replication, rules), unhealthy=wrong)

    # ---- acting

    async def take(
        self, step: WriteRecord | Evict | TakeOffline | StopEvicting | PutBack, now: datetime
    ) -> Blocked | Unknown | None:
        """Take a step; None: read again."""
        match step:
            case Evict(store_id=store_id):
                return await self._evict(store_id)
            case TakeOffline():
                return await self._take_offline(step, now)
            case _:
                failed = await self.undo(step)
                return None if failed is None else Unknown(problem=failed.problem)

    async def undo(self, step: WriteRecord | StopEvicting | PutBack) -> PdFailed | None:
        """Take a step that leads back, or write the record."""
        match step:
            case WriteRecord(record=record):
                await self._write(record)
                return None
            case StopEvicting(store_id=store_id):
                return await self._stop_evicting(store_id)
            case PutBack(store_id=store_id):
                _log.info("store.put_back", cluster=self.drain.cluster, store=store_id)
                failed = await self._pd.set_store_state(store_id, "Up")
                # It became a Tombstone meanwhile: the next read shows it.
                return None if failed is not None and failed.is_gone else failed

    async def _write(self, record: DrainRecord | None) -> None:
        if record is not None and record.owns_eviction and not self._owns(record.store_id):
            self._claimed.add(record.store_id)
        await self._record.write(record)
        self._is_confirmed = True
        self.drain = msgspec.structs.replace(self.drain, record=record)

    def _owns(self, store_id: int) -> bool:
        record = self.drain.record
        return record is not None and record.store_id == store_id and record.owns_eviction

    async def _confirm(self) -> None:
        """Write the record again before PD is changed, if this call has not written it yet.

        The write carries the version of the TidbCluster that was read, so it fails if that was outdated: if another
        process has become the leader and wrote it, for example. PD does not check that.
        """
        if not self._is_confirmed:
            await self._write(self.drain.record)

    async def _evict(self, store_id: int) -> Unknown | None:
        await self._confirm()
        _log.info("store.leaders_evicted", cluster=self.drain.cluster, store=store_id)
        failed = await self._pd.evict_leaders(store_id)
        if isinstance(failed, EvictionExisted) or (isinstance(failed, PdFailed) and failed.has_existed):
            await self._record_foreign_eviction(store_id)
        if not isinstance(failed, PdFailed):
            self._evicting.add(store_id)
            self._ended.discard(store_id)
        elif failed.is_unreachable:
            return Unknown(problem=failed.problem)
        else:
            # Evicting leaders first spares clients errors. Without it the store waits as long and is then removed.
            _log.warning("store.eviction_refused", store=store_id, problem=failed.problem)
            self._is_refused = True
        return None

    async def _record_foreign_eviction(self, store_id: int) -> None:
        """Record that an eviction is not ours: it was there before this call recorded it, and PD did not list it."""
        record = self.drain.record
        if store_id in self._claimed and record is not None:
            await self._write(msgspec.structs.replace(record, owns_eviction=False))

    async def _take_offline(self, step: TakeOffline, now: datetime) -> Blocked | Unknown | None:
        await self._confirm()
        _log.info("store.taken_offline", cluster=self.drain.cluster, store=step.store_id)
        failed = await self._pd.delete_store(step.store_id)
        if failed is None:
            await self._write(msgspec.structs.replace(step.record, regions_moved_at=now))
        elif failed.is_refused:
            message = f"{step.blocked.message}: {failed.problem}"
            return Blocked(reason=msgspec.structs.replace(step.blocked, message=message), record=self.drain.record)
        elif not failed.is_gone:
            return Unknown(problem=failed.problem)
        return None

    async def _stop_evicting(self, store_id: int) -> PdFailed | None:
        failed = await self._pd.stop_evicting_leaders(store_id)
        if failed is not None and not failed.is_unreachable:
            # Older PDs report a missing scheduler with another message.
            left = await self._pd.list_evicting()
            failed = failed if isinstance(left, PdFailed) or store_id in left else None
        if failed is None:
            self._evicting.discard(store_id)
            self._ended.add(store_id)
        return failed


def _observe_store(store: Store) -> ObservedStore:
    pod = parse_pod_address(store.store.address)
    return ObservedStore(
        id=store.id,
        pod=pod.name if pod else "",
        namespace=pod.namespace if pod else "",
        state=store.state,
        leaders=store.status.leader_count,
        regions=store.status.region_count,
        capacity_bytes=store.capacity_bytes,
        used_bytes=store.used_bytes,
        is_special=any(key.lower() == "specialuse" and value for key, value in store.labels.items()),
        is_tiflash=store.is_tiflash,
        last_heartbeat=store.last_heartbeat,
    )
