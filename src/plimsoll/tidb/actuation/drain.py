"""Taking TiKV stores out of a cluster, one at a time, and bringing back those that are wanted after all.

The acting half calls it in every pass. What it is about to do is written on the TidbCluster first, through `Remember`
that its caller gives it, so a crash at any point leaves a mark for whatever stands in PD; it keeps nothing itself. It
goes as far as it can without waiting: look, ask `drain_steps` for one step, take it, look again. A store is never
removed by force.

Active, it does all of it. Guarding (an operator is there that takes stores out when `replicas` falls), it takes none
out and only says whether `replicas` may fall; bringing back writes to PD in either mode, because nobody else does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from plimsoll.core.plans import Reason
from plimsoll.operator.intents import StoredIntent
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.tidb.pd.members import pod_of
from plimsoll.tidb.pd.types import TOMBSTONE, replicas_needed
from plimsoll.tidb.planning.drain.steps import next_guarding_step, next_returning_step, next_step
from plimsoll.tidb.planning.drain.store_health import OFFLINE, Health, StoreSeen
from plimsoll.tidb.planning.drain.types import (
    Blocked,
    Drained,
    DrainInProgress,
    DrainSeen,
    DrainSettings,
    Evict,
    PutBack,
    Remember,
    StopEvicting,
    StoreDrain,
    TakeOffline,
    Unknown,
    leaving_store,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from plimsoll.operator.intents import IntentStore
    from plimsoll.tidb.model.reconcile_types import DrainMark
    from plimsoll.tidb.pd.client import Pd, RegionCheck
    from plimsoll.tidb.pd.types import Store
    from plimsoll.tidb.planning.drain.types import Step

_log = structlog.get_logger(__name__)

STEPS_AT_MOST: Final = 40
"""In one call; a store needs about eight. Whoever is not done goes on in the next pass."""
_CHECKS: Final[Sequence[RegionCheck]] = ("miss-peer", "pending-peer", "down-peer")


class Drainer:
    """Of one PD, whose stores may be those of several TidbClusters.

    `StoreDrain` is made from the TidbCluster as just read. On `Drained` its `replicas` are lowered by one and its mark
    is cleared, in one write that carries the `resourceVersion` it was read at: somebody who changed `replicas` in
    between would lose a store otherwise. Marks are written by the drainer, through `remember`, and by nobody else.
    """

    def __init__(self, pd: Pd, *, is_active: bool, settings: DrainSettings | None = None) -> None:
        self._pd = pd
        self._is_active = is_active
        self._settings = settings or DrainSettings()

    async def take_out(
        self, leaving: StoreDrain, *, now: datetime, remember: IntentStore[DrainMark]
    ) -> Drained | DrainInProgress | Blocked | Unknown:
        """Towards one replica less. A mark in the answer is the one that stands on the TidbCluster."""
        call = _Call(self._pd, leaving, remember=remember)
        for _ in range(STEPS_AT_MOST):
            seen = await call.look(with_health=True, is_active=self._is_active)
            if isinstance(seen, PdFailed):
                return Unknown(problem=seen.problem)
            step = self._next(call.leaving, seen, now)
            if isinstance(step, Drained | DrainInProgress | Blocked):
                return step
            ended = await call.take(step, now)
            if ended is not None:
                return ended
        text = f"{leaving.cluster} has more to be done than one pass does"
        return DrainInProgress(mark=call.leaving.mark, reason=Reason(code="Draining", message=text))

    async def clear(
        self, leaving: StoreDrain, *, now: datetime, remember: IntentStore[DrainMark]
    ) -> Drained | DrainInProgress | Blocked | Unknown:
        """Towards no store at all, before a TidbCluster is deleted; `Drained`: it may be deleted."""
        return await self.take_out(msgspec.structs.replace(leaving, replicas=0), now=now, remember=remember)

    async def bring_back(
        self, leaving: StoreDrain, *, wanted: int, remember: IntentStore[DrainMark]
    ) -> Drained | PdFailed | None:
        """Undo what was begun, so that there may be `wanted` replicas; None: it is undone and the mark is cleared.

        `Drained`: too late, the store is buried. Its pod has to go, as after `take_out`, before another can come.
        """
        call = _Call(self._pd, leaving, remember=remember)
        for _ in range(STEPS_AT_MOST):
            seen = await call.look(with_health=False, is_active=self._is_active)
            if isinstance(seen, PdFailed):
                return seen
            step = next_returning_step(call.leaving, seen, wanted=wanted, is_active=self._is_active)
            if step is None or isinstance(step, Drained):
                return step
            failed = await call.undo(step)
            if failed is not None:
                return failed
        return PdFailed(problem=f"{leaving.cluster} has more to be undone than one pass does", status=200)

    def _next(self, leaving: StoreDrain, seen: DrainSeen, now: datetime) -> Step:
        if not self._is_active:
            return next_guarding_step(leaving, seen, settings=self._settings)
        return next_step(leaving, seen, settings=self._settings, now=now)


class _Call:
    """One call of the drainer: what PD and the mark say now, and what was told to PD on the way."""

    def __init__(self, pd: Pd, leaving: StoreDrain, *, remember: IntentStore[DrainMark]) -> None:
        self.leaving = leaving
        self._pd = pd
        self._mark = StoredIntent(remember, leaving.mark)
        self._evicting: set[int] = set()
        self._ended: set[int] = set()
        self._is_refused = False

    # ---- looking

    async def look(self, *, with_health: bool, is_active: bool) -> DrainSeen | PdFailed:
        stores = await self._stores()
        if isinstance(stores, PdFailed):
            return stores
        evicting = await self._listed_evictions() if is_active else frozenset[int]()
        if isinstance(evicting, PdFailed):
            return evicting
        store = leaving_store(self.leaving, stores)
        is_asked = with_health and store is not None and store.state != OFFLINE
        health = await self._health() if is_asked else None
        if isinstance(health, PdFailed):
            return health
        return DrainSeen(
            stores=stores,
            evicting=(evicting | self._evicting) - self._ended,
            ended=frozenset(self._ended),
            health=health,
            eviction_refused=self._is_refused,
        )

    async def _stores(self) -> tuple[StoreSeen, ...] | PdFailed:
        listed = await self._pd.stores()
        if isinstance(listed, PdFailed):
            return listed
        alive = {store.id: _seen(store) for store in listed if store.state != TOMBSTONE}
        mark = self.leaving.mark
        if mark is not None and mark.store_id and mark.store_id not in alive:
            # That a list lacks it is not enough to let its pod go.
            marked = await self._pd.store(mark.store_id)
            if isinstance(marked, PdFailed) and not marked.is_gone:
                return marked
            if not isinstance(marked, PdFailed) and marked.state != TOMBSTONE:
                alive[marked.id] = _seen(marked)
        return tuple(alive[store_id] for store_id in sorted(alive))

    async def _listed_evictions(self) -> frozenset[int] | PdFailed:
        """None of them if PD answers and cannot tell: then it is told again, which does no harm."""
        listed = await self._pd.evicting()
        if isinstance(listed, PdFailed):
            return listed if listed.is_unreachable else frozenset()
        return listed

    async def _health(self) -> Health | PdFailed:
        """A PD too old for placement rules, or for one of the checks, has no such page; nothing else is passed over."""
        replication = await self._pd.replication()
        if isinstance(replication, PdFailed):
            return replication
        rules = await self._pd.placement_rules() if replication.has_placement_rules else ()
        if isinstance(rules, PdFailed) and not rules.is_gone:
            return rules
        wrong: dict[str, int] = {}
        for check in _CHECKS:
            count = await self._pd.regions_with(check)
            if not isinstance(count, PdFailed):
                wrong[check] = count
            elif not count.is_gone:
                return count
        rules = () if isinstance(rules, PdFailed) else rules
        return Health(needed=replicas_needed(replication, rules), wrong=wrong)

    # ---- acting

    async def take(
        self, step: Remember | Evict | TakeOffline | StopEvicting | PutBack, now: datetime
    ) -> Blocked | Unknown | None:
        """None: look again."""
        match step:
            case Evict(store_id=store_id):
                return await self._evict(store_id)
            case TakeOffline():
                return await self._take_offline(step, now)
            case _:
                failed = await self.undo(step)
                return None if failed is None else Unknown(problem=failed.problem)

    async def undo(self, step: Remember | StopEvicting | PutBack) -> PdFailed | None:
        """The steps that lead back, and the mark."""
        match step:
            case Remember(mark=mark):
                await self._write(mark)
                return None
            case StopEvicting(store_id=store_id):
                return await self._stop_evicting(store_id)
            case PutBack(store_id=store_id):
                _log.info("store.put_back", cluster=self.leaving.cluster, store=store_id)
                failed = await self._pd.set_store_state(store_id, "Up")
                # Buried in the meantime: the next look shows it.
                return None if failed is not None and failed.is_gone else failed

    async def _write(self, mark: DrainMark | None) -> None:
        await self._mark.write(mark)
        self.leaving = msgspec.structs.replace(self.leaving, mark=mark)

    async def _evict(self, store_id: int) -> Unknown | None:
        _log.info("store.leaders_evicted", cluster=self.leaving.cluster, store=store_id)
        failed = await self._pd.evict_leaders(store_id)
        if failed is None:
            self._evicting.add(store_id)
            self._ended.discard(store_id)
        elif failed.is_unreachable:
            return Unknown(problem=failed.problem)
        else:
            # Moving leaders first is a courtesy to clients: without it the store waits as long, then goes.
            _log.warning("store.eviction_refused", store=store_id, problem=failed.problem)
            self._is_refused = True
        return None

    async def _take_offline(self, step: TakeOffline, now: datetime) -> Blocked | Unknown | None:
        _log.info("store.taken_offline", cluster=self.leaving.cluster, store=step.store_id)
        failed = await self._pd.delete_store(step.store_id)
        if failed is None:
            await self._write(msgspec.structs.replace(step.mark, regions_moved_at=now))
        elif failed.is_refused:
            message = f"{step.blocked.message}: {failed.problem}"
            return Blocked(reason=msgspec.structs.replace(step.blocked, message=message), mark=self.leaving.mark)
        elif not failed.is_gone:
            return Unknown(problem=failed.problem)
        return None

    async def _stop_evicting(self, store_id: int) -> PdFailed | None:
        failed = await self._pd.stop_evicting_leaders(store_id)
        if failed is not None and not failed.is_unreachable:
            # Old ones have other words for a scheduler that is not there.
            left = await self._pd.evicting()
            failed = failed if isinstance(left, PdFailed) or store_id in left else None
        if failed is None:
            self._evicting.discard(store_id)
            self._ended.add(store_id)
        return failed


def _seen(store: Store) -> StoreSeen:
    pod = pod_of(store.store.address)
    return StoreSeen(
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
    )
