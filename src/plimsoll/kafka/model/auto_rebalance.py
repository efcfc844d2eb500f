"""Automatic rebalancing of one Kafka cluster: configuration, state, what is observed, and what is to be done.

The states are the design's. Strimzi's three states are a view of them (`kafka.wire.status_views`).
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from enum import StrEnum

from plimsoll.core.plans import Reason  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.core.values import Value
from plimsoll.kafka.model.rebalances import (  # noqa: TC001 - msgspec reads annotations at run time
    RebalanceSpec,
    RebalanceState,
)
from plimsoll.kafka.model.requests import Mode


class OnFailure(StrEnum):
    """What follows a failed rebalance after a scale-up: hold it for the user, or try again with back-off."""

    HOLD = "Hold"
    RETRY = "Retry"


class SettingsKind(StrEnum):
    """Where the settings of a mode are: in a KafkaRebalanceSettings or in a template KafkaRebalance."""

    SETTINGS = "settings"
    TEMPLATE = "template"


class SettingsReference(Value):
    """The object that holds the settings of a mode, in the namespace of the Kafka."""

    kind: SettingsKind
    name: str


class ModeConfiguration(Value):
    """A configured mode, add-brokers or remove-brokers. Without settings the server's defaults hold."""

    mode: Mode
    settings: SettingsReference | None = None
    on_failure: OnFailure = OnFailure.HOLD
    problem: Reason | None = None
    """A mistake in the entry that changes what would run: no rebalance is created until it is mended."""


class AutoRebalanceState(StrEnum):
    """`status.cruiseControl.autoRebalance.state`. NONE: there is no operation and never was one."""

    NONE = ""
    IDLE = "Idle"
    SCALING_UP = "ScalingUp"
    PENDING_PROPOSAL = "PendingProposal"
    PROPOSAL_READY = "ProposalReady"
    REBALANCING = "Rebalancing"
    READY = "Ready"
    NOT_READY = "NotReady"
    STOPPED = "Stopped"
    RECONCILIATION_PAUSED = "ReconciliationPaused"

    @property
    def is_without_operation(self) -> bool:
        """Missing, Idle and Ready all mean that there is no operation."""
        return self in {AutoRebalanceState.NONE, AutoRebalanceState.IDLE, AutoRebalanceState.READY}


class StrimziState(StrEnum):
    """`status.autoRebalance.state`, Strimzi's view."""

    IDLE = "Idle"
    ON_SCALE_DOWN = "RebalanceOnScaleDown"
    ON_SCALE_UP = "RebalanceOnScaleUp"


class AutoRebalance(Value):
    """What is stored about automatic rebalancing between two reconciles."""

    state: AutoRebalanceState = AutoRebalanceState.NONE
    add_brokers: tuple[int, ...] = ()
    """Brokers that were added and hold no replicas yet, running or queued; ascending."""
    remove_brokers: tuple[int, ...] = ()
    """Brokers that leave once they are empty; ascending."""
    leaving_brokers: tuple[int, ...] = ()
    """Brokers that were in `add_brokers` and leave now; they are in it again if their removal is withdrawn."""
    running: Mode | None = None
    """The mode of the KafkaRebalance that runs or holds; None: none was created."""
    rebalance_uid: str = ""
    """The uid of that KafkaRebalance. Empty: it was never seen, so its absence does not mean that a user deleted it."""
    requested: tuple[int, ...] = ()
    """The brokers that were last written to that KafkaRebalance; ascending."""
    is_stopping: bool = False
    """The operator annotated stop: `Stopped` is not the user's decision."""
    has_moved: bool = False
    """The KafkaRebalance was seen with an approved proposal: its brokers may have lost or got replicas."""
    attempts: int = 0
    """Rounds without success or progress."""
    remaining_replicas: int | None = None
    """Replicas that the leaving brokers held when the last round ended."""
    next_retry_time: datetime | None = None
    state_since: datetime | None = None
    """When `state` changed last."""
    last_transition_time: datetime | None = None
    """When Strimzi's view of `state` changed last; None: automatic rebalancing was never used."""

    @property
    def strimzi_state(self) -> StrimziState:
        """A KafkaRebalance that was created runs or holds. Everything else is Idle, with queued modes."""
        if self.running is Mode.REMOVE_BROKERS:
            return StrimziState.ON_SCALE_DOWN
        return StrimziState.IDLE if self.running is None else StrimziState.ON_SCALE_UP


class AutoRebalanceObject(Value):
    """A KafkaRebalance with the name of an automatic one, as it is observed."""

    uid: str
    is_ours: bool
    """It carries our finalizer. Otherwise a user made it, and nothing touches it."""
    state: RebalanceState
    mode: str
    brokers: tuple[int, ...]
    annotation: str = ""
    """The value of strimzi.io/rebalance, not handled yet."""
    is_deleting: bool = False
    message: str = ""
    """The message of the state's condition."""
    is_transient: bool = False
    """NotReady for a reason that the rebalance reconciler retries by itself."""
    has_session: bool = False
    """Its status has a session: NotReady or paused, it may still be executed."""
    replica_movements: int | None = None
    """How many replicas its last proposal moves; None: unknown."""
    empty_brokers: str = ""
    """Its warning about new brokers that stay empty."""


class SettingsLookup(Value):
    """The settings of a mode: their spec, or why there is none."""

    spec: RebalanceSpec | None = None
    problem: Reason | None = None
    """AutoRebalanceSettingsNotFound or AutoRebalanceSettingsInvalid."""
    warnings: tuple[Reason, ...] = ()
    """Fields that are ignored."""


class AutoRebalanceObservation(Value):
    """The inputs of one step. Everything is read in this reconcile."""

    now: datetime
    configuration: tuple[ModeConfiguration, ...]
    """Empty: the feature is off."""
    stored: AutoRebalance
    is_configuration_complete: bool = True
    """Every entry could be read. Otherwise a mode that is not there is not started, and what runs is left alone."""
    added: tuple[int, ...] = ()
    """Node ids given to broker pools in this reconcile; empty if the whole cluster is new."""
    removed: tuple[int, ...] = ()
    """Brokers that the specs no longer ask for."""
    blocked: tuple[int, ...] = ()
    """`removed` if any of them holds a replica, else empty."""
    brokers: tuple[int, ...] = ()
    """All brokers that the specs ask for, and the blocked ones."""
    ready_brokers: tuple[int, ...] = ()
    """Brokers whose pods are ready in an up-to-date pod set, and that are registered and known to the engine."""
    add_rebalance: AutoRebalanceObject | None = None
    remove_rebalance: AutoRebalanceObject | None = None
    add_settings: SettingsLookup = SettingsLookup()
    remove_settings: SettingsLookup = SettingsLookup()
    is_executing: bool | None = None
    """Whether the engine moves replicas for an automatic rebalance; False too if its task is known to be another's.

    None: not asked (`needs_executor_state`), or it did not answer.
    """
    blocked_replicas: int | None = None
    """Replicas that the blocked brokers hold; None: not counted."""
    is_paused: bool = False
    """The Kafka carries strimzi.io/pause-reconciliation."""
    is_deleting: bool = False
    """The Kafka is being deleted."""


class ActionKind(StrEnum):
    """What is done to an automatic KafkaRebalance."""

    CREATE = "create"
    REFRESH = "refresh"
    """Set mode, brokers and settings anew, and annotate refresh."""
    RESTORE = "restore"
    """Set mode and brokers back: a user changed them."""
    STOP = "stop"
    """Annotate stop."""
    DELETE = "delete"
    """Delete it, and remove our finalizer."""
    STOP_EXECUTION = "stop-execution"
    """Stop the engine: the KafkaRebalance is gone while it moves."""


class AutoRebalanceAction(Value):
    """An action of a step. Every action is safe to repeat."""

    kind: ActionKind
    mode: Mode
    reason: Reason
    brokers: tuple[int, ...] = ()
    spec: RebalanceSpec | None = None
    """For CREATE and REFRESH: the whole spec."""


class AutoRebalanceStep(Value):
    """The outcome of one step: what to store first, what to do, what to store afterwards, and what to say.

    Actions are carried out in order, and the first that fails ends the step: the next one depends on it.
    """

    stored: AutoRebalance
    """Stored after the last action. After CREATE, `rebalance_uid` may be set to the uid of the created object."""
    write_ahead: AutoRebalance | None = None
    """Stored before the first action, where a crash in between would lose what an object says that is deleted."""
    actions: tuple[AutoRebalanceAction, ...] = ()
    reasons: tuple[Reason, ...] = ()
    """Why it stands where it stands: for the journal and `why`."""
    warnings: tuple[Reason, ...] = ()
    """Warning conditions of the Kafka."""
    retry_after_s: float | None = None
    """Look again after this time at the latest; None: when something changes."""
