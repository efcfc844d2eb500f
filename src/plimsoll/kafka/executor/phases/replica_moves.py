"""The first phase: replicas move between brokers.

Each check reads the brokers, judges the movements under way, removes throttles that are no longer needed, and sends the
next batch: recorded first, then throttled, then sent. An answer that was lost changes nothing: the next check sees what
became of the batch.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.kafka.brokers.ports import KafkaNotSent, KafkaRefused, KafkaUnavailable
from plimsoll.kafka.executor import reasons
from plimsoll.kafka.executor.observing import METADATA_LAG_S
from plimsoll.kafka.executor.phases.batches import BrokerSlots, find_leader, list_involved
from plimsoll.kafka.executor.phases.strategies import sort_tasks
from plimsoll.kafka.executor.throttles import WantedThrottles, compute_throttles
from plimsoll.kafka.model.executions import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.core.plans import Reason
    from plimsoll.kafka.brokers.ports import KafkaError, Reassignment
    from plimsoll.kafka.executor.context import ExecutionContext
    from plimsoll.kafka.executor.observing import ClusterView
    from plimsoll.kafka.executor.tasks import MovementTask
    from plimsoll.kafka.model.description import PartitionDescription, TopicPartition

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

UNSEEN_CHECKS: Final = 3
"""Checks after which a reassignment that is neither listed nor done is sent again."""
ATTEMPTS: Final = 3
CANCEL_ATTEMPTS: Final = 10
NO_LEADER_S: Final = 180.0
"""A partition without a leader is waited for this long."""
SAMPLE_S: Final = 10.0
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
        self._offline_since: dict[TopicPartition, float] = {}
        self._leaderless_since: dict[TopicPartition, float] = {}
        self._changed_since: dict[TopicPartition, float] = {}
        self._unlisted_since: dict[TopicPartition, float] = {}
        self._sampled_at: float | None = None
        for task in self._tasks.tasks:
            if task.key in context.recorded_active:
                task.state, task.attempts = TaskState.IN_PROGRESS, 1

    @property
    def has_unfinished(self) -> bool:
        return self._tasks.has_unfinished

    async def check(self) -> None:
        """Read the brokers once, and do what follows from it."""
        context = self._context
        topics = {task.key.topic for task in self._tasks.under_way} | {key.topic for key in self._leaderless_since}
        view = await context.observer.observe(topics)
        if context.is_stopping:
            self._abort_all(view)
        self._judge(view)
        await self._cancel_aborting(view)
        wanted = self._want_throttles(self._tasks.under_way)
        await context.throttles.release(wanted, view.alive)
        if not context.throttles.covers(wanted, view.alive):  # after a restart, or for another rate
            await context.throttles.set_up(wanted, view.alive)
        if not context.is_stopping:
            await self._start_batch(view)
        await self._sample_progress()

    def _want_throttles(self, tasks: Iterable[MovementTask]) -> WantedThrottles:
        return compute_throttles((task.proposal for task in tasks), self._context.options.replication_throttle)

    # ---- judging

    def _judge(self, view: ClusterView) -> None:
        for task in self._tasks.under_way:
            listed = view.reassignments.get(task.key)
            if listed is not None:
                self._unlisted_since.pop(task.key, None)
            if view.is_deleted(task.key):
                task.finish(TaskState.COMPLETED, reasons.explain_deleted(task.key.topic))
            elif listed is not None and not _is_ours(task, listed):
                self._yield_to_foreign(task)
            elif listed is not None:
                self._judge_listed(task, view)
            else:
                self._judge_unlisted(task, view.partitions.get(task.key))

    def _yield_to_foreign(self, task: MovementTask) -> None:
        """Another client has replaced the reassignment: it waits until that one has ended."""
        reason = reasons.explain_foreign([task.key])
        if task.state is TaskState.ABORTING:
            task.finish(task.ends_as, task.reason or reason)
        else:
            task.state, task.reason, task.unseen_checks = TaskState.PENDING, reason, 0

    def _judge_listed(self, task: MovementTask, view: ClusterView) -> None:
        task.unseen_checks = 0
        if task.state is not TaskState.IN_PROGRESS:
            return
        reason = self._find_dead_destination(task, view) or self._find_lost_leader(task, view)
        if reason is not None:
            log.warning("movement.dead", partition=str(task.key), reason=str(reason))
            task.state, task.ends_as, task.reason, task.attempts = TaskState.ABORTING, TaskState.DEAD, reason, 0

    def _judge_unlisted(self, task: MovementTask, partition: PartitionDescription | None) -> None:
        replicas = () if partition is None else partition.replicas
        proposal = task.proposal
        if set(replicas) == set(proposal.new_replicas):
            task.finish(TaskState.COMPLETED)
            return
        task.unseen_checks += 1
        since = self._unlisted_since.setdefault(task.key, self._context.now_s)
        is_settled = self._context.now_s - since >= METADATA_LAG_S
        if task.state is TaskState.ABORTING:
            if replicas == proposal.old_replicas or is_settled:
                self._finish_aborted(task, replicas)
        elif task.unseen_checks >= UNSEEN_CHECKS:
            task.unseen_checks = 0
            if task.attempts >= ATTEMPTS and is_settled:
                task.finish(TaskState.DEAD, reasons.explain_vanished(task.attempts))
            else:
                task.state = TaskState.PENDING

    def _finish_aborted(self, task: MovementTask, replicas: tuple[int, ...]) -> None:
        stopped = reasons.explain_stopped(replicas, was_begun=True)
        task.finish(task.ends_as, stopped if task.reason is None else task.reason)

    def _find_dead_destination(self, task: MovementTask, view: ClusterView) -> Reason | None:
        grace_s = self._context.options.dead_broker_grace_s
        dead = self._list_dead(task, view)
        if any(self._context.now_s - view.down_since_s[broker] >= grace_s for broker in dead):
            return reasons.explain_dead_destination(dead)
        partition = view.partitions.get(task.key)
        offline = [] if partition is None else [broker for broker in task.proposal.added if broker in partition.offline]
        offline = [broker for broker in offline if broker in view.alive]
        if not offline:
            self._offline_since.pop(task.key, None)
            return None
        since = self._offline_since.setdefault(task.key, self._context.now_s)
        return reasons.explain_offline_destination(offline[0]) if self._context.now_s - since >= grace_s else None

    def _list_dead(self, task: MovementTask, view: ClusterView) -> list[int]:
        """Its destinations that are down. One that was never seen counts from now on."""
        dead = [broker for broker in task.proposal.added if broker not in view.alive]
        for broker in dead:
            view.down_since_s.setdefault(broker, self._context.now_s)
        return dead

    def _find_lost_leader(self, task: MovementTask, view: ClusterView) -> Reason | None:
        partition = view.partitions.get(task.key)
        if partition is None or partition.leader >= 0:
            self._leaderless_since.pop(task.key, None)
            return None
        since = self._leaderless_since.setdefault(task.key, self._context.now_s)
        return reasons.explain_no_leader([task.key]) if self._context.now_s - since >= NO_LEADER_S else None

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
        if not targets:
            return
        for key, error in (await self._context.admin.alter_reassignments(targets)).items():
            if key in aborting:
                self._take_cancel_answer(aborting[key], error)

    def _take_cancel_answer(self, task: MovementTask, error: KafkaError | None) -> None:
        task.attempts += 1
        if error is None or error.code in _NOTHING_TO_CANCEL:
            return
        log.warning("movement.cancel_failed", partition=str(task.key), error=str(error))
        if task.attempts >= CANCEL_ATTEMPTS:
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
            cause = self._find_wait(task, view)
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

    def _find_wait(self, task: MovementTask, view: ClusterView) -> Reason | None:
        """Why a movement does not start now. One that has nothing to do any more, or no hope, ends here."""
        if task.key in view.reassignments:
            return reasons.explain_foreign([task.key])
        if dead := self._list_dead(task, view):
            reason = reasons.explain_dead_destination(dead)
            since = min(view.down_since_s[broker] for broker in dead)
            if self._context.now_s - since < self._context.options.dead_broker_grace_s:
                return reason
            task.finish(TaskState.DEAD, reason)
        elif task.key.topic in view.fresh:
            return self._find_wait_of_partition(task, view)
        return None

    def _find_wait_of_partition(self, task: MovementTask, view: ClusterView) -> Reason | None:
        partition = view.partitions.get(task.key)
        if partition is None or len(partition.replicas) == len(task.proposal.old_replicas):
            self._changed_since.pop(task.key, None)
        if view.is_deleted(task.key):
            task.finish(TaskState.COMPLETED, reasons.explain_deleted(task.key.topic))
        elif partition is None:
            return None
        elif set(partition.replicas) == set(task.proposal.new_replicas):
            task.finish(TaskState.COMPLETED)
        elif len(partition.replicas) != len(task.proposal.old_replicas):
            reason = reasons.explain_changed_factor(len(task.proposal.old_replicas), len(partition.replicas))
            # A broker may still show the replicas of a reassignment that the controller has ended.
            since = self._changed_since.setdefault(task.key, self._context.now_s)
            if self._context.now_s - since < METADATA_LAG_S:
                return reason
            task.finish(TaskState.DEAD, reason)
        elif partition.leader < 0:
            lost = self._find_lost_leader(task, view)
            if lost is None:
                return reasons.explain_no_leader([task.key])
            task.finish(TaskState.DEAD, lost)
        return None

    def _may_start(self, task: MovementTask, view: ClusterView) -> bool:
        """The last look before it is sent."""
        cause = self._find_wait(task, view)
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

    # ---- progress

    async def _sample_progress(self) -> None:
        """The bytes that movements under way have copied. A broker that does not answer keeps its last figures."""
        now = self._context.now_s
        running = {task.key: task for task in self._tasks.iterate(TaskState.IN_PROGRESS)}
        if not running or (self._sampled_at is not None and now - self._sampled_at < SAMPLE_S):
            return
        self._sampled_at = now
        copied: Counter[TopicPartition] = Counter()
        alive = self._context.observer.view.alive
        for broker in sorted({broker for task in running.values() for broker in task.proposal.added} & alive):
            try:
                logs = await self._context.admin.describe_log_dirs(broker)
            except (KafkaUnavailable, KafkaRefused) as error:  # figures only: nothing depends on them
                log.info("progress.unknown", broker=broker, problem=str(error))
                return
            for key, replica in logs.replicas:
                if key in running and broker in running[key].proposal.added and not replica.is_future:
                    copied[key] += min(replica.size_bytes, running[key].proposal.size_bytes)
        for key, task in running.items():
            task.moved_bytes = copied[key]


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


def _is_ours(task: MovementTask, listed: Reassignment) -> bool:
    return set(listed.target) == set(task.proposal.new_replicas)
