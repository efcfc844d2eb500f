"""What the phases of one execution share: ports, tasks, options, throttles, and the record."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from plimsoll.kafka.executor import reasons
from plimsoll.kafka.executor.observing import ClusterObserver
from plimsoll.kafka.executor.pacing import CheckPace
from plimsoll.kafka.executor.record import RecordedState
from plimsoll.kafka.executor.strategies import needs_min_isr
from plimsoll.kafka.executor.tasks import build_tasks
from plimsoll.kafka.executor.throttles import Throttles
from plimsoll.operator.action_rate import ActionTimes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.core.plans import Reason
    from plimsoll.kafka.brokers.ports import KafkaAdmin
    from plimsoll.kafka.executor.record import ExecutionStore, RecordedPlan
    from plimsoll.kafka.model.description import TopicPartition
    from plimsoll.operator.pause import ActionGuard

    ReadGuard = Callable[[], Awaitable[ActionGuard]]


RECENTLY_REMOVED_S: Final = 14 * 86_400.0
"""How long a broker counts as recently removed, as Cruise Control has it."""


class ExecutionContext:
    """The state of an execution, and the dependencies that its phases share."""

    def __init__(
        self,
        *,
        admin: KafkaAdmin,
        clock: Clock,
        store: ExecutionStore,
        read_guard: ReadGuard,
        plan: RecordedPlan,
        state: RecordedState,
    ) -> None:
        self.admin = admin
        self.clock = clock
        self._store = store
        self.read_guard = read_guard
        self.plan = plan
        self.tasks = build_tasks(plan.proposals)
        self.options = state.options
        self.is_stopping = state.is_stopping
        self.cancel_foreign = False
        self.recorded_active = frozenset(state.active)
        self.observer = ClusterObserver(
            admin, clock, reads_min_isr=lambda: needs_min_isr(self.options.replica_movement_strategies)
        )
        self.foreign: set[TopicPartition] = set()
        """Partitions that other clients were seen to reassign."""
        self.throttles = Throttles(admin, self.save)
        self.throttles.replicas = set(state.throttled_replicas)
        self.throttles.rates = set(state.rates)
        self.started_bytes = read_started_bytes(state)
        self.removed_brokers = dict(state.removed_brokers)
        """When brokers were emptied lately, in unix seconds."""
        self.held: tuple[Reason, ...] = ()
        """What waits or goes slowly, by the last check."""
        self._held_now: dict[str, Reason] = {}
        self.pace = CheckPace(clock)
        self._wake = asyncio.Event()
        self._saving = asyncio.Lock()
        """Held by one write of the record at a time: an older state never replaces a newer one."""
        self._is_finished = False

    @property
    def now_s(self) -> float:
        return self.clock.monotonic_s()

    def hold(self, reason: Reason) -> None:
        """Name what waits or goes slowly, until the next check. One reason per code."""
        self._held_now[reason.code] = reason

    def keep_held(self) -> None:
        """Nothing new was learnt: what the last check named still holds."""
        self._held_now = {reason.code: reason for reason in self.held} | self._held_now

    def end_check(self) -> None:
        self.held = tuple(self._held_now.values())
        self._held_now = {}

    def describe_state(self, *, is_finished: bool = False) -> RecordedState:
        return RecordedState(
            execution_id="" if is_finished else self.plan.execution_id,
            options=self.options,
            is_stopping=self.is_stopping,
            active=tuple(sorted({task.key for task in self.tasks.inter_broker.under_way})),
            throttled_replicas=tuple(sorted(self.throttles.replicas)),
            rates=tuple(sorted(self.throttles.rates)),
            started_bytes=tuple((int(at.timestamp()), count) for at, count in self.started_bytes.started),
            removed_brokers=tuple(sorted(self.removed_brokers.items())),
        )

    async def save(self) -> None:
        """Write the record, unless the execution has ended: the plan that it names may be gone."""
        async with self._saving:
            if not self._is_finished:
                await self._store.write_state(self.describe_state())

    async def finish_record(self, *, is_completed: bool) -> None:
        """The execution has ended. Rates of brokers that are down, recent bytes and recent removals stay."""
        now_s = int(self.clock.now().timestamp())
        if is_completed:
            self.removed_brokers |= dict.fromkeys(self.plan.request.removed_brokers, now_s)
        self.removed_brokers = select_recent(self.removed_brokers, now_s)
        async with self._saving:
            self._is_finished = True
            await self._store.write_state(self.describe_state(is_finished=True))

    def wake(self) -> None:
        self._wake.set()

    async def wait(self) -> None:
        """Until the next check, or until there is something new to do."""
        try:
            await asyncio.wait_for(self._wake.wait(), self.pace.choose_wait(self.options.progress_check_interval_s))
        except TimeoutError:
            return
        finally:
            self.pace.begin_check()
        self._wake.clear()
        self.pace.reset()

    async def read_guard_reason(self) -> Reason | None:
        """The reason of the action guard why nothing new may be sent now; None: actions are allowed."""
        return (await self.read_guard()).reason

    def count_free_bytes(self) -> int | None:
        """The bytes that may still begin to move in this hour; None: no limit."""
        limit = self.options.max_bytes_per_hour
        return None if limit is None else self.started_bytes.count_remaining(limit, self.clock.now())

    def fits_bytes(self, size: int, free_bytes: int, *, is_first: bool) -> bool:
        """A replica larger than the limit moves alone, once nothing has moved for an hour."""
        return size <= free_bytes or (is_first and self.started_bytes.count_last_hour(self.clock.now()) == 0)

    def hold_bytes(self) -> None:
        limit = self.options.max_bytes_per_hour
        if limit is not None:
            self.hold(reasons.explain_bytes_per_hour(limit, self.started_bytes.count_last_hour(self.clock.now())))


def select_recent(removed: dict[int, int], now_s: float) -> dict[int, int]:
    """The brokers that still count as recently removed."""
    return {broker: at_s for broker, at_s in removed.items() if now_s - at_s < RECENTLY_REMOVED_S}


def read_started_bytes(state: RecordedState) -> ActionTimes:
    return ActionTimes(tuple((datetime.fromtimestamp(at, UTC), count) for at, count in state.started_bytes))
