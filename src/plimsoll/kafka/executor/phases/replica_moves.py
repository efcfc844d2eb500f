"""The first phase: replicas move between brokers.

Each check lists the reassignments. A look at the rest follows when one of ours has ended, and now and then: it judges
the movements under way, removes throttles that are no longer needed, and sends the next batch: recorded first, then
throttled, then sent. An answer that was lost changes nothing: the next look sees what became of the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.kafka.brokers.ports import KafkaNotSent, KafkaUnavailable
from plimsoll.kafka.executor import reasons
from plimsoll.kafka.executor.phases.batches import BrokerSlots, find_leader, list_involved
from plimsoll.kafka.executor.phases.copied_bytes import CopiedBytes
from plimsoll.kafka.executor.phases.judging import ATTEMPTS, MovementJudge
from plimsoll.kafka.executor.phases.look_times import LookTimes
from plimsoll.kafka.executor.strategies import sort_tasks
from plimsoll.kafka.executor.throttles import WantedThrottles, compute_throttles
from plimsoll.kafka.model.executions import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kafka.brokers.ports import KafkaError
    from plimsoll.kafka.executor.context import ExecutionContext
    from plimsoll.kafka.executor.observing import ClusterView
    from plimsoll.kafka.executor.tasks import MovementTask
    from plimsoll.kafka.model.description import TopicPartition
    from plimsoll.kafka.model.executions import MovementCounts

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

CANCEL_S: Final = 10.0
"""A reassignment that cannot be cancelled for this long is given up."""
_TOPIC_GONE: Final = "UNKNOWN_TOPIC_OR_PARTITION"
_NOTHING_TO_CANCEL: Final = ("NO_REASSIGNMENT_IN_PROGRESS", _TOPIC_GONE)
_FATAL_CODES: Final = (
    "INVALID_REPLICA_ASSIGNMENT",
    "INVALID_REPLICATION_FACTOR",
    "POLICY_VIOLATION",
    "INVALID_REQUEST",
)


class ReplicaMoves:
    """The movements between brokers of one execution."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context
        self._tasks = context.tasks.inter_broker
        self._by_key = {task.key: task for task in self._tasks.tasks}
        self._sorted: list[MovementTask] | None = None
        self._judge = MovementJudge(context)
        self._copied_bytes = CopiedBytes(context)
        self._looks = LookTimes(context)
        self._uncancelled_since: dict[TopicPartition, float] = {}
        for task in self._tasks.tasks:
            if task.key in context.recorded_active:
                task.state, task.attempts = TaskState.IN_PROGRESS, 1

    @property
    def has_unfinished(self) -> bool:
        return self._tasks.has_unfinished

    def count_movements(self) -> MovementCounts:
        return self._tasks.count()

    async def check(self) -> None:
        """List the reassignments; if a look is due, read the rest and do what follows from it."""
        context = self._context
        view = await context.observer.list_reassignments()
        if self._looks.is_due(view):
            began_s = context.now_s
            await self._look()
            self._looks.note(began_s, view)
            context.pace.exclude(context.now_s - began_s)
        else:
            context.keep_held()
        await self._copied_bytes.sample()

    async def _look(self) -> None:
        context = self._context
        topics = {task.key.topic for task in self._tasks.under_way} | {key.topic for key in self._judge.leaderless}
        view = await context.observer.describe(topics)
        if context.is_stopping:
            self._abort_all(view)
        self._judge.judge(view)
        await self._cancel_aborting(view)
        wanted = self._want_throttles(self._tasks.under_way)
        await context.throttles.release(wanted, view.alive)
        if not context.throttles.covers(wanted, view.alive):  # after a restart, or for another rate
            await context.throttles.set_up(wanted, view.alive)
        if not context.is_stopping:
            await self._start_batch(view)

    def _want_throttles(self, tasks: Iterable[MovementTask]) -> WantedThrottles:
        return compute_throttles((task.proposal for task in tasks), self._context.options.replication_throttle)

    # ---- cancelling

    def _abort_all(self, view: ClusterView) -> None:
        for task in self._tasks.tasks:
            if task.state is TaskState.PENDING:
                partition = view.partitions.get(task.key)
                replicas = task.proposal.old_replicas if partition is None else partition.replicas
                task.finish(TaskState.ABORTED, reasons.explain_stopped(replicas, was_begun=False))
            elif task.state is TaskState.IN_PROGRESS:
                task.state, task.ends_as, task.reason, task.attempts = TaskState.ABORTING, TaskState.ABORTED, None, 0

    async def _cancel_aborting(self, view: ClusterView) -> None:
        """Cancel what is listed; restore the order of replicas, which a cancelled reassignment may have changed."""
        targets: dict[TopicPartition, tuple[int, ...] | None] = {}
        aborting = {task.key: task for task in self._tasks.iterate(TaskState.ABORTING)}
        for key, task in aborting.items():
            partition = view.partitions.get(key)
            if key in view.reassignments:
                targets[key] = None
            elif partition is not None and set(partition.replicas) == set(task.proposal.old_replicas):
                targets[key] = task.proposal.old_replicas
        if self._context.cancel_foreign:
            targets |= {key: None for key in view.reassignments if key not in targets}
            self._context.cancel_foreign = False
            self._context.foreign.clear()
        if not targets:
            return
        for key, error in (await self._context.admin.alter_reassignments(targets)).items():
            if key in aborting:
                self._take_cancel_answer(aborting[key], error)

    def _take_cancel_answer(self, task: MovementTask, error: KafkaError | None) -> None:
        task.attempts += 1
        if error is None or error.code in _NOTHING_TO_CANCEL:
            self._uncancelled_since.pop(task.key, None)
            return
        log.warning("movement.cancel_failed", partition=str(task.key), error=str(error))
        now = self._context.now_s
        if now - self._uncancelled_since.setdefault(task.key, now) >= CANCEL_S:
            task.finish(TaskState.DEAD, reasons.explain_error(error.code, str(error), attempts=task.attempts))

    # ---- starting

    async def _start_batch(self, view: ClusterView) -> None:
        context = self._context
        batch = self._choose(view)
        guard_reason = await context.read_guard_reason() if batch else None
        if guard_reason is not None:
            context.hold(guard_reason)
            return
        view = await context.observer.read_topics({task.key.topic for task in batch})
        batch = [task for task in batch if self._may_start(task, view)]
        if not batch:
            return
        for task in batch:
            task.state, task.reason = TaskState.IN_PROGRESS, None
        before = context.started_bytes
        if context.options.max_bytes_per_hour is not None:
            moved = sum(task.proposal.bytes_to_move for task in batch)
            context.started_bytes = before.with_actions(moved, context.clock.now())
        try:
            wanted = self._want_throttles(self._tasks.under_way)
            is_ready = await context.throttles.set_up(wanted, view.alive, saves_always=True)
        except KafkaUnavailable:
            self._take_back(batch)
            context.started_bytes = before
            raise
        if is_ready:
            try:
                await self._send(batch)
            except KafkaNotSent:
                self._take_back(batch)
                context.started_bytes = before
                raise
        else:
            self._take_back(batch)
            context.started_bytes = before
            context.hold(reasons.explain_error("", "a throttle could not be set; the next check tries again"))

    def _take_back(self, batch: list[MovementTask]) -> None:
        for task in batch:
            task.state = TaskState.PENDING

    async def _send(self, batch: list[MovementTask]) -> None:
        for task in batch:
            task.attempts += 1
        targets = {task.key: task.proposal.new_replicas for task in batch}
        try:
            answer = await self._context.admin.alter_reassignments(targets)
        except KafkaNotSent:
            for task in batch:
                task.attempts -= 1
            raise
        for task in batch:
            error = answer.get(task.key)
            if error is None:
                continue
            log.warning("movement.refused", partition=str(task.key), error=str(error))
            if error.code in _FATAL_CODES or task.attempts >= ATTEMPTS:
                task.finish(TaskState.DEAD, reasons.explain_error(error.code, str(error), attempts=task.attempts))

    def _choose(self, view: ClusterView) -> list[MovementTask]:
        """The next movements, in the order of the strategies. What waits is named in the state."""
        context = self._context
        options = context.options
        slots = BrokerSlots(
            per_broker=options.concurrent_partition_movements_per_broker,
            in_cluster=options.max_partition_movements_in_cluster,
            reduced=self._reduce_slots(view),
        )
        for task in self._tasks.under_way:
            slots.take(list_involved(task.proposal, find_leader(task, view)))
        free_bytes = context.count_free_bytes()
        waiting: dict[str, set[TopicPartition]] = {}
        batch: list[MovementTask] = []
        for task in self._list_pending(view):
            if slots.is_full:
                break
            cause = self._judge.find_wait(task, view)
            if task.is_finished:
                continue
            if cause is not None:
                task.reason = cause
                waiting.setdefault(cause.code, set()).add(task.key)
                continue
            involved = list_involved(task.proposal, find_leader(task, view))
            if not slots.fits(involved):
                continue
            if free_bytes is not None:
                if not context.fits_bytes(task.proposal.bytes_to_move, free_bytes, is_first=not batch):
                    context.hold_bytes()
                    break
                free_bytes -= task.proposal.bytes_to_move
            slots.take(involved)
            batch.append(task)
        self._hold_waiting(waiting)
        return batch

    def _list_pending(self, view: ClusterView) -> list[MovementTask]:
        pending = (task for task in self._sorted or self._tasks.tasks if task.state is TaskState.PENDING)
        if self._sorted is None or self._context.options.replica_movement_strategies:
            self._sorted = sort_tasks(pending, self._context.options.replica_movement_strategies, view)
        else:
            self._sorted = list(pending)
        return self._sorted

    def _may_start(self, task: MovementTask, view: ClusterView) -> bool:
        """The last look before it is sent."""
        cause = self._judge.find_wait(task, view)
        task.reason = cause or task.reason
        return cause is None and not task.is_finished and task.key in view.partitions

    def _reduce_slots(self, view: ClusterView) -> dict[int, int]:
        """Brokers of under-replicated partitions get one movement at a time."""
        under_replicated = list_under_replicated(self._context, view)
        brokers = {broker for key in under_replicated for broker in view.partitions[key].replicas}
        if under_replicated:
            self._context.hold(reasons.explain_under_replicated(under_replicated, brokers))
        return dict.fromkeys(brokers, 1)

    def _hold_waiting(self, waiting: dict[str, set[TopicPartition]]) -> None:
        explain = {"ForeignReassignment": reasons.explain_foreign, "NoLeader": reasons.explain_no_leader}
        for code, keys in waiting.items():
            if code in explain:
                self._context.hold(explain[code](keys))
        if "DestinationDown" in waiting:
            down = {broker for key in waiting["DestinationDown"] for broker in self._by_key[key].proposal.added}
            self._context.hold(reasons.explain_dead_destination(sorted(down - self._context.observer.view.alive)))


def list_under_replicated(context: ExecutionContext, view: ClusterView) -> set[TopicPartition]:
    """Partitions with a missing replica, other than one on a dead broker or one that the plan takes away."""
    found = {
        key
        for key in view.behind
        if view.partitions[key].leader >= 0 and any(broker in view.alive for broker in view.list_missing(key))
    }
    if not found:
        return found
    removed = {task.key: task.proposal.removed for task in context.tasks.inter_broker.tasks if task.key in found}
    return {
        key
        for key in found
        if any(broker in view.alive and broker not in removed.get(key, ()) for broker in view.list_missing(key))
    }
