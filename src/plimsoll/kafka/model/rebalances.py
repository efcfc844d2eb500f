"""A KafkaRebalance as the reconcilers know it: its state, its request, and what Cruise Control answered."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from plimsoll.core.values import Value
from plimsoll.kafka.model.requests import Mode


class RebalanceState(StrEnum):
    """The state of a KafkaRebalance: the type of exactly one of its conditions. NEW: it has no status yet."""

    NEW = "New"
    PENDING_PROPOSAL = "PendingProposal"
    PROPOSAL_READY = "ProposalReady"
    REBALANCING = "Rebalancing"
    STOPPED = "Stopped"
    NOT_READY = "NotReady"
    READY = "Ready"
    RECONCILIATION_PAUSED = "ReconciliationPaused"

    @property
    def is_live(self) -> bool:
        """Whether Cruise Control computes or moves, or is about to."""
        return self in {
            RebalanceState.NEW,
            RebalanceState.PENDING_PROPOSAL,
            RebalanceState.PROPOSAL_READY,
            RebalanceState.REBALANCING,
        }


class RebalanceAnnotation(StrEnum):
    """The value of the annotation strimzi.io/rebalance."""

    APPROVE = "approve"
    REFRESH = "refresh"
    STOP = "stop"


class VolumesOfBroker(Value):
    """The volumes of a broker that mode remove-disks empties."""

    broker: int
    volumes: tuple[int, ...]


class RebalanceSpec(Value):
    """The spec of a KafkaRebalance. 0 means the default of the server."""

    mode: Mode = Mode.FULL
    brokers: tuple[int, ...] = ()
    goals: tuple[str, ...] = ()
    skip_hard_goal_check: bool = False
    rebalance_disk: bool = False
    excluded_topics: str = ""
    concurrent_partition_movements_per_broker: int = 0
    concurrent_intra_broker_partition_movements: int = 0
    concurrent_leader_movements: int = 0
    replication_throttle: int = 0
    replica_movement_strategies: tuple[str, ...] = ()
    move_replicas_off_volumes: tuple[VolumesOfBroker, ...] = ()


# ---- what Cruise Control answers to a request for a rebalance


class Proposed(Value):
    """200: the proposal, complete. `body` is the JSON answer without its list of proposals, which may be large."""

    session_id: str
    body: dict[str, Any]


class Computing(Value):
    """202: the proposal is being computed, or the execution started before its proposal was answered."""

    session_id: str


class NotEnoughWindows(Value):
    """Cruise Control has too few samples yet. Asked again later, without a session."""


class TransientReason(StrEnum):
    """Reasons of a refusal that ends by itself: a rebalance with such a reason is requested again without a user.

    They are the reasons of conditions: what a condition says must be enough to decide, after a restart too.
    """

    CONNECTION = "CruiseControlRetriableConnectionException"
    """No route, connection refused, or closed before an answer."""
    TIMEOUT = "CruiseControlTimeoutException"
    """No answer in time: the request may or may not have been accepted."""
    EXECUTION_IN_PROGRESS = "CruiseControlExecutionInProgressException"
    """Cannot start a new execution while there is an ongoing execution."""
    CAPACITY_MISSING = "CruiseControlCapacityMissingException"
    """Cruise Control does not know a broker or its capacity yet."""
    ACCESS_MISSING = "CruiseControlAccessMissingException"
    """A Secret, or a certificate in it, is not there yet, or Cruise Control does not accept it yet."""
    SERVER_BUSY = "CruiseControlServerBusyException"
    """Cruise Control has reached its servlet capacity."""


UNREADABLE: Final = "UnreadableObject"
"""The reason of a condition: an object cannot be decoded. It ends when the object is mended."""


class RebalanceRefused(Value):
    """Cruise Control cannot or will not do it.

    `reason` is the class of the error, as the condition shows it: a `TransientReason` if it ends by itself.
    """

    reason: str
    message: str
    is_transient: bool = False


RebalanceAnswer = Proposed | Computing | NotEnoughWindows | RebalanceRefused


class RebalanceTaskStatus(StrEnum):
    """The status of a user task, in Cruise Control's words."""

    ACTIVE = "Active"
    IN_EXECUTION = "InExecution"
    COMPLETED = "Completed"
    COMPLETED_WITH_ERROR = "CompletedWithError"


class RebalanceTask(Value):
    """A user task. `body`: the JSON of its original response; None: there is none, or it cannot be read.

    `failure`: why it ended with an error, if Cruise Control says so. An execution that was stopped has none.
    """

    id: str
    status: RebalanceTaskStatus
    body: dict[str, Any] | None = None
    failure: NotEnoughWindows | RebalanceRefused | None = None
    cause: str = ""
    """Why movements of its execution were not completed; empty: it is not known."""


class NoSuchTask(Value):
    """Cruise Control does not know the task: it was restarted, or the task expired."""


class ServerBusy(Value):
    """Cruise Control has reached its servlet capacity: asked again later."""


RebalanceTaskAnswer = RebalanceTask | NoSuchTask | ServerBusy | RebalanceRefused


class ExecutorSubstate(Value):
    """The `ExecutorState` of Cruise Control. Numbers that it leaves out are None."""

    state: str
    finished_data_mb: float | None = None
    total_data_mb: float | None = None
    triggered_task_id: str = ""
    triggered_task_reason: str = ""
    body: dict[str, Any] = {}
    """The whole substate, as `executorState.json` shows it."""

    @property
    def is_idle(self) -> bool:
        return self.state == "NO_TASK_IN_PROGRESS"
