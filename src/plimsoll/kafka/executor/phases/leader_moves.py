"""The last phase: leadership. A reassignment changes the order of replicas where needed, then leaders are elected."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.kafka.executor import reasons
from plimsoll.kafka.executor.observing import METADATA_LAG_S
from plimsoll.kafka.model.executions import TaskState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kafka.brokers.ports import KafkaError
    from plimsoll.kafka.executor.context import ExecutionContext
    from plimsoll.kafka.executor.observing import ClusterView
    from plimsoll.kafka.executor.tasks import MovementTask
    from plimsoll.kafka.model.description import PartitionDescription, TopicPartition
    from plimsoll.kafka.model.executions import MovementCounts

ELECTION_S: Final = 180.0
"""A leader that cannot be elected is waited for this long."""
_ELECTED: Final = "ELECTION_NOT_NEEDED"
_TOPIC_GONE: Final = "UNKNOWN_TOPIC_OR_PARTITION"


class LeaderMoves:
    """The leader movements of one execution."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context
        self._tasks = context.tasks.leaders
        self._tried_since: dict[TopicPartition, float] = {}
        self._elsewhere_since: dict[TopicPartition, float] = {}
        self._has_read = False

    @property
    def has_unfinished(self) -> bool:
        return self._tasks.has_unfinished

    def count_movements(self) -> MovementCounts:
        return self._tasks.count()

    async def check(self) -> None:
        context = self._context
        if context.is_stopping:
            await self._abort_all()
            return
        batch = self._choose()
        view = await self._read(batch)
        ready = [task for task in batch if self._is_ready(task, view)]
        guard_reason = await context.read_guard_reason() if ready else None
        if guard_reason is not None:
            context.hold(guard_reason)
            return
        ready = await self._reorder(ready, view)
        if not ready:
            return
        for task in ready:
            task.state = TaskState.IN_PROGRESS
        answer = await context.admin.elect_preferred_leaders([task.key for task in ready])
        for task in ready:
            self._take_answer(task, answer)

    async def _read(self, batch: list[MovementTask]) -> ClusterView:
        """What the last look at the moved replicas has just read is good for elections, and not read again."""
        observer = self._context.observer
        topics = {task.key.topic for task in batch}
        is_first, self._has_read = not self._has_read, True
        age_s = self._context.now_s - observer.view.read_at_s
        if is_first and observer.view.fresh and age_s < self._context.options.progress_check_interval_s:
            view = await observer.read_topics(topics)
            if all(_is_in_order(task, view) for task in batch):
                return view
        return await observer.observe(topics)

    async def _abort_all(self) -> None:
        left = [task for task in self._tasks.tasks if not task.is_finished]
        view = await self._context.observer.observe({task.key.topic for task in left})
        for task in left:
            partition = view.partitions.get(task.key)
            leader = task.proposal.old_leader if partition is None else partition.leader
            task.finish(TaskState.ABORTED, reasons.explain_leader_kept(leader, task.proposal.new_replicas[0]))

    def _choose(self) -> list[MovementTask]:
        options = self._context.options
        per_broker: Counter[int] = Counter()
        batch: list[MovementTask] = []
        for task in self._tasks.iterate(TaskState.PENDING, TaskState.IN_PROGRESS):
            if len(batch) >= options.concurrent_leader_movements:
                break
            brokers = {task.proposal.old_leader, task.proposal.new_replicas[0]}
            if all(per_broker[broker] < options.broker_concurrent_leader_movements for broker in brokers):
                per_broker.update(brokers)
                batch.append(task)
        return batch

    def _is_ready(self, task: MovementTask, view: ClusterView) -> bool:
        """Whether it may be elected now. One that is done or has no hope ends here."""
        target = task.proposal.new_replicas
        partition = view.partitions.get(task.key)
        if partition is None or set(partition.replicas) == set(target):
            self._elsewhere_since.pop(task.key, None)
        if view.is_deleted(task.key):
            task.finish_deleted(is_topic=task.key.topic in view.deleted)
        elif task.key in view.reassignments:
            self._wait(task, reasons.explain_foreign([task.key]), is_limited=False)
            self._context.hold(reasons.explain_foreign([task.key]))
        elif partition is None:
            self._wait(task, reasons.explain_unavailable(f"{task.key} was not described"))
        elif partition.replicas == target and partition.leader == target[0]:
            task.finish(TaskState.COMPLETED)
        elif set(partition.replicas) != set(target):
            self._wait_for_replicas(task, _explain_replicas(partition, target))
        elif target[0] not in partition.isr or target[0] not in view.alive:
            self._wait(task, _explain_not_in_sync(target[0]))
        else:
            return True
        return False

    async def _reorder(self, tasks: list[MovementTask], view: ClusterView) -> list[MovementTask]:
        """The tasks whose first replica is the new leader, after this."""
        targets: dict[TopicPartition, tuple[int, ...] | None] = {
            task.key: task.proposal.new_replicas
            for task in tasks
            if view.partitions[task.key].replicas != task.proposal.new_replicas
        }
        if not targets:
            return tasks
        answer = await self._context.admin.alter_reassignments(targets)
        for task in tasks:
            error = answer.get(task.key)
            if error is not None:
                self._wait(task, reasons.explain_error(error.code, str(error)))
        return [task for task in tasks if answer.get(task.key) is None]

    def _take_answer(self, task: MovementTask, answer: Mapping[TopicPartition, KafkaError | None]) -> None:
        error = answer.get(task.key)
        if task.key in answer and (error is None or error.code == _ELECTED):
            task.finish(TaskState.COMPLETED)
        elif error is not None and error.code != _TOPIC_GONE:
            self._wait(task, reasons.explain_error(error.code, str(error)))

    def _wait(self, task: MovementTask, reason: Reason, *, is_limited: bool = True) -> None:
        now = self._context.now_s
        task.reason = reason
        if not is_limited:
            self._tried_since.pop(task.key, None)
        elif now - self._tried_since.setdefault(task.key, now) >= ELECTION_S:
            task.finish(TaskState.DEAD, reason)

    def _wait_for_replicas(self, task: MovementTask, reason: Reason) -> None:
        """Another client moved the replicas, or the broker that was asked does not know of our movement yet."""
        now = self._context.now_s
        task.reason = reason
        if now - self._elsewhere_since.setdefault(task.key, now) >= METADATA_LAG_S:
            task.finish(TaskState.DEAD, reason)


def _is_in_order(task: MovementTask, view: ClusterView) -> bool:
    partition = view.partitions.get(task.key)
    return partition is not None and partition.replicas == task.proposal.new_replicas


def _explain_replicas(partition: PartitionDescription, target: tuple[int, ...]) -> Reason:
    return Reason(
        code="ReplicasNotMoved",
        message=f"the replicas are on {list(partition.replicas)}, not on {list(target)}",
        facts={"replicas": list(partition.replicas)},
    )


def _explain_not_in_sync(broker: int) -> Reason:
    return Reason(
        code="LeaderNotInSync", message=f"the replica on broker {broker} is not in sync", facts={"broker": broker}
    )
