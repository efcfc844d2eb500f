"""An execution of proposals: its options, its progress and its end."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from plimsoll.core.plans import Reason  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.core.values import Value
from plimsoll.kafka.model.proposals import Proposal  # noqa: TC001 - msgspec reads annotations at run time


class ExecutionOptions(Value):
    """How an execution runs. Names and defaults follow Cruise Control as Strimzi configures it."""

    concurrent_partition_movements_per_broker: int = 5
    """Reassignments under way per broker, as source or destination."""
    max_partition_movements_in_cluster: int = 1250
    concurrent_intra_broker_partition_movements: int = 2
    concurrent_leader_movements: int = 1000
    broker_concurrent_leader_movements: int = 250
    replication_throttle: int | None = None
    """Bytes per second per broker; None: no throttle."""
    replica_movement_strategies: tuple[str, ...] = ()
    progress_check_interval_s: float = 1.0
    require_in_sync: bool = False
    """Refuse to start while partitions are under-replicated for another reason than the removal itself."""
    require_planned_replicas: bool = False
    """Refuse to start if another client has moved replicas of the plan since it was made, or moves them now."""
    dead_broker_grace_s: float = 30.0
    """A movement ends as DEAD if its destination is down for this long: a restart does not cancel it."""
    max_bytes_per_hour: int | None = None
    """Bytes that may begin to move within an hour, over all executions of this record; None: no limit."""
    max_bytes_unconfirmed: int | None = None
    """Refuse to start if more bytes would move and the user has not confirmed it; None: no limit."""
    is_confirmed: bool = False


class ExecutionRequest(Value):
    """Where an execution comes from: the request of a client, and the entry of its plan in the journal."""

    url: str = ""
    """The method, path and query of the request; empty: the command line."""
    client: str = ""
    """The address of the client."""
    reason: str = ""
    """What the client gave as the reason."""
    removed_brokers: tuple[int, ...] = ()
    """The brokers that the execution empties, if nothing stays on them."""
    journal_entry: int = 0
    """The number of its entry; 0: it has none."""
    planned_at: str = ""
    """The time of its entry: a journal that was begun anew has another entry with that number."""


NO_REQUEST: Final = ExecutionRequest()


class ExecutorState(StrEnum):
    """The phase of the executor, in Cruise Control's words."""

    NO_TASK_IN_PROGRESS = "NO_TASK_IN_PROGRESS"
    STARTING_EXECUTION = "STARTING_EXECUTION"
    INTER_BROKER_REPLICA_MOVEMENT = "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS"
    INTRA_BROKER_REPLICA_MOVEMENT = "INTRA_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS"
    LEADER_MOVEMENT = "LEADER_MOVEMENT_TASK_IN_PROGRESS"
    STOPPING_EXECUTION = "STOPPING_EXECUTION"


class TaskState(StrEnum):
    """The state of one movement."""

    PENDING = "PENDING"
    IN_PROGRESS = "IN_PROGRESS"
    ABORTING = "ABORTING"
    ABORTED = "ABORTED"
    DEAD = "DEAD"
    COMPLETED = "COMPLETED"


class TaskType(StrEnum):
    """The kind of one movement, in Cruise Control's words."""

    INTER_BROKER_REPLICA_ACTION = "INTER_BROKER_REPLICA_ACTION"
    INTRA_BROKER_REPLICA_ACTION = "INTRA_BROKER_REPLICA_ACTION"
    LEADER_ACTION = "LEADER_ACTION"


class ExecutionTask(Value):
    """A movement of an execution."""

    id: int
    type: TaskType
    state: TaskState
    proposal: Proposal
    reason: Reason | None = None
    """Why it ended without being completed, or why it waits."""


class MovementCounts(Value):
    """The movements of one type, by state."""

    total: int = 0
    finished: int = 0
    in_progress: int = 0
    pending: int = 0
    aborting: int = 0
    aborted: int = 0
    dead: int = 0


class ExecutionProgress(Value):
    """Where the executor stands."""

    state: ExecutorState = ExecutorState.NO_TASK_IN_PROGRESS
    execution_id: str = ""
    """The user task, or the id that the command line made."""
    inter_broker: MovementCounts = MovementCounts()
    intra_broker: MovementCounts = MovementCounts()
    leaders: MovementCounts = MovementCounts()
    finished_bytes: int = 0
    total_bytes: int = 0
    bytes_per_s: float | None = None
    """The measured rate; None: nothing has moved yet."""
    seconds_left: float | None = None
    tasks: tuple[ExecutionTask, ...] = ()
    """Tasks that are not finished, for verbose answers."""
    held: tuple[Reason, ...] = ()
    """What is left alone or slowed down, and why: foreign reassignments, under-replicated partitions."""
    options: ExecutionOptions = ExecutionOptions()


class ExecutionEnd(StrEnum):
    """How an execution ended."""

    COMPLETED = "Completed"
    STOPPED = "Stopped"
    FAILED = "Failed"


class ExecutionOutcome(Value):
    """The end of an execution, with everything that did not happen."""

    execution_id: str
    end: ExecutionEnd
    completed: int
    not_completed: tuple[ExecutionTask, ...] = ()
    moved_bytes: int = 0
    reason: Reason | None = None
    not_emptied: tuple[int, ...] = ()
    """Brokers that got replicas while they were emptied: they may not be switched off."""
