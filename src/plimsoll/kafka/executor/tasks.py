"""The movements of an execution, with their states."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.kafka.executor import reasons
from plimsoll.kafka.model.description import TopicPartition
from plimsoll.kafka.model.executions import ExecutionTask, MovementCounts, TaskState, TaskType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plimsoll.core.plans import Reason
    from plimsoll.kafka.model.proposals import LogDirMove, Proposal

FINISHED: Final = frozenset({TaskState.COMPLETED, TaskState.DEAD, TaskState.ABORTED})
UNDER_WAY: Final = frozenset({TaskState.IN_PROGRESS, TaskState.ABORTING})
UNSEEN_S: Final = 2.0
"""A movement that is neither under way nor done for this long is sent again. Less may be the lag of an answer."""


@dataclass(slots=True, eq=False)
class MovementTask:
    """A movement. `log_dir_move` is given for a move within a broker."""

    id: int
    type: TaskType
    proposal: Proposal
    key: TopicPartition
    state: TaskState = TaskState.PENDING
    reason: Reason | None = None
    log_dir_move: LogDirMove | None = None
    ends_as: TaskState = TaskState.ABORTED
    """The state after ABORTING."""
    attempts: int = 0
    """How often it was sent."""
    unseen_since_s: float | None = None
    """The first of consecutive checks that found neither its reassignment nor its result."""
    moved_bytes: int = 0
    """The figure of a movement under way, as last sampled."""

    @property
    def is_finished(self) -> bool:
        return self.state in FINISHED

    def is_unseen_for_long(self, now_s: float) -> bool:
        """Whether it must be sent again: for a while, checks found neither its reassignment nor its result."""
        if self.unseen_since_s is None:
            self.unseen_since_s = now_s
        if now_s - self.unseen_since_s < UNSEEN_S:
            return False
        self.unseen_since_s = None
        return True

    def finish(self, state: TaskState, reason: Reason | None = None) -> None:
        self.state = state
        self.reason = reason
        self.moved_bytes = 0

    def finish_deleted(self, *, is_topic: bool) -> None:
        """End the movement of a partition that no longer exists."""
        self.finish(TaskState.COMPLETED, reasons.explain_deleted(self.key, is_topic=is_topic))

    def describe(self) -> ExecutionTask:
        return ExecutionTask(id=self.id, type=self.type, state=self.state, proposal=self.proposal, reason=self.reason)


@dataclass(slots=True)
class TaskList:
    """The tasks of one type: those that wait, those under way, and how the others ended."""

    tasks: list[MovementTask] = field(default_factory=list)

    def iterate(self, *states: TaskState) -> Iterator[MovementTask]:
        return (task for task in self.tasks if task.state in states)

    @property
    def under_way(self) -> list[MovementTask]:
        return [task for task in self.tasks if task.state in UNDER_WAY]

    @property
    def has_unfinished(self) -> bool:
        return any(not task.is_finished for task in self.tasks)

    def count(self) -> MovementCounts:
        numbers = dict.fromkeys(TaskState, 0)
        for task in self.tasks:
            numbers[task.state] += 1
        return MovementCounts(
            total=len(self.tasks),
            finished=numbers[TaskState.COMPLETED],
            in_progress=numbers[TaskState.IN_PROGRESS],
            pending=numbers[TaskState.PENDING],
            aborting=numbers[TaskState.ABORTING],
            aborted=numbers[TaskState.ABORTED],
            dead=numbers[TaskState.DEAD],
        )


@dataclass(frozen=True, slots=True)
class TaskLists:
    """The tasks of an execution, by type."""

    inter_broker: TaskList
    intra_broker: TaskList
    leaders: TaskList

    def __iter__(self) -> Iterator[MovementTask]:
        for tasks in (self.inter_broker, self.intra_broker, self.leaders):
            yield from tasks.tasks


def build_tasks(proposals: Iterable[Proposal]) -> TaskLists:
    """The movements that proposals ask for, in their order."""
    lists = TaskLists(TaskList(), TaskList(), TaskList())
    for proposal in proposals:
        key = TopicPartition(proposal.topic, proposal.partition)
        if proposal.is_replica_move:
            _append(lists.inter_broker, TaskType.INTER_BROKER_REPLICA_ACTION, proposal, key)
        for move in proposal.log_dir_moves:
            _append(lists.intra_broker, TaskType.INTRA_BROKER_REPLICA_ACTION, proposal, key, move)
        if proposal.is_leader_move or (proposal.is_replica_move and proposal.old_leader != proposal.new_replicas[0]):
            _append(lists.leaders, TaskType.LEADER_ACTION, proposal, key)
    for number, task in enumerate(lists):
        task.id = number
    return lists


def _append(
    tasks: TaskList, kind: TaskType, proposal: Proposal, key: TopicPartition, move: LogDirMove | None = None
) -> None:
    tasks.tasks.append(MovementTask(0, kind, proposal, key, log_dir_move=move))
