"""What becomes of a movement between brokers: done, waiting, or without hope, by what the brokers show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.kafka.executor import reasons
from plimsoll.kafka.executor.observing import METADATA_LAG_S
from plimsoll.kafka.model.executions import TaskState

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason
    from plimsoll.kafka.brokers.ports import Reassignment
    from plimsoll.kafka.executor.context import ExecutionContext
    from plimsoll.kafka.executor.observing import ClusterView
    from plimsoll.kafka.executor.tasks import MovementTask
    from plimsoll.kafka.model.description import PartitionDescription, TopicPartition

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

ATTEMPTS: Final = 3
"""How often a reassignment is sent before it has failed."""
NO_LEADER_S: Final = 180.0
"""A partition without a leader is waited for this long."""


class MovementJudge:
    """Judges the movements of one execution, and remembers since when something is wrong with a partition."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context
        self._tasks = context.tasks.inter_broker
        self._by_key = {task.key: task for task in self._tasks.tasks}
        self._offline_since: dict[TopicPartition, float] = {}
        self._leaderless_since: dict[TopicPartition, float] = {}
        self._changed_since: dict[TopicPartition, float] = {}
        self._unlisted_since: dict[TopicPartition, float] = {}

    @property
    def leaderless(self) -> set[TopicPartition]:
        """Partitions that were last seen without a leader."""
        return set(self._leaderless_since)

    def judge(self, view: ClusterView) -> None:
        self._context.foreign |= {key for key, listed in view.reassignments.items() if self._is_foreign(key, listed)}
        for task in self._tasks.under_way:
            listed = view.reassignments.get(task.key)
            if listed is not None:
                self._unlisted_since.pop(task.key, None)
            if view.is_deleted(task.key):
                task.finish_deleted(is_topic=task.key.topic in view.deleted)
            elif listed is not None and not is_ours(task, listed):
                self._yield_to_foreign(task)
            elif listed is not None:
                self._judge_listed(task, view)
            else:
                self._judge_unlisted(task, view.partitions.get(task.key))

    def _is_foreign(self, key: TopicPartition, listed: Reassignment) -> bool:
        task = self._by_key.get(key)
        return task is None or not is_ours(task, listed)

    def _yield_to_foreign(self, task: MovementTask) -> None:
        """Another client has replaced the reassignment: it waits until that one has ended."""
        reason = reasons.explain_foreign([task.key])
        if task.state is TaskState.ABORTING:
            task.finish(task.ends_as, task.reason or reason)
        else:
            task.state, task.reason, task.unseen_since_s = TaskState.PENDING, reason, None

    def _judge_listed(self, task: MovementTask, view: ClusterView) -> None:
        task.unseen_since_s = None
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
        since = self._unlisted_since.setdefault(task.key, self._context.now_s)
        is_settled = self._context.now_s - since >= METADATA_LAG_S
        if task.state is TaskState.ABORTING:
            if replicas == proposal.old_replicas or is_settled:
                self._finish_aborted(task, replicas)
        elif task.is_unseen_for_long(self._context.now_s):
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

    def find_wait(self, task: MovementTask, view: ClusterView) -> Reason | None:
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
            task.finish_deleted(is_topic=task.key.topic in view.deleted)
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


def is_ours(task: MovementTask, listed: Reassignment) -> bool:
    return set(listed.target) == set(task.proposal.new_replicas)
