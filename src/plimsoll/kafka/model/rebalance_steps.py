"""One step of a KafkaRebalance: what is observed, which call follows, and what comes out of it.

`kafka.planning.scaling.rebalance_transitions` decides; `kafka.controllers.rebalance_reconciler` calls and writes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from plimsoll.core.plans import Reason  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.core.values import Value
from plimsoll.kafka.model.rebalances import (
    ExecutorSubstate,
    RebalanceAnnotation,
    RebalanceSpec,
    RebalanceState,
)


class BegunStep(Value):
    """A step that was begun and perhaps not finished: it is stored before its call, and removed after the status.

    Without it a crash between the call and the status could start a second execution, and a crash between the status
    and the removal of the user's annotation could leave an annotation that the new state does not accept.
    """

    step: RebalanceAnnotation
    """APPROVE: a real run was requested, by a user or automatically. STOP: a stop."""
    annotation: str = ""
    """The annotation of the user that the step handles; empty: there was none."""
    previous_task_id: str = ""
    """The newest real run with the same request before ours. A newer one is ours."""


class ObservedRebalance(Value):
    """A KafkaRebalance as a step sees it."""

    name: str
    cluster: str
    """The value of the label strimzi.io/cluster; empty: there is none."""
    state: RebalanceState = RebalanceState.NEW
    reason: str = ""
    message: str = ""
    """Reason and message of the state's condition."""
    state_problem: Reason | None = None
    """The status has two states."""
    session_id: str = ""
    has_result: bool = False
    """`optimizationResult` is filled."""
    annotation: str = ""
    """The value of strimzi.io/rebalance; empty: there is none."""
    begun: BegunStep | None = None
    is_auto_approved: bool = False
    is_template: bool = False
    is_paused: bool = False
    is_deleting: bool = False
    is_spec_changed: bool = False
    """The spec is newer than the status."""
    spec: RebalanceSpec | None = None
    problems: tuple[Reason, ...] = ()
    """Why there is no spec."""
    warnings: tuple[Reason, ...] = ()
    """Fields of the spec that are ignored."""


class KafkaSummary(Value):
    """What a step must know about the Kafka of a rebalance."""

    is_selected: bool = True
    """The operator's selector matches it."""
    is_ready: bool = True
    has_cruise_control: bool = True
    running: str = ""
    """The name of the automatic rebalance that its status counts on; empty: there is none."""


class CallKind(StrEnum):
    """A call to Cruise Control."""

    DRY_RUN = "request a proposal"
    REAL_RUN = "request the execution"
    USER_TASK = "read the user task"
    FIND_EXECUTION = "find the execution"
    STOP = "stop the execution"
    EXECUTOR_STATE = "read the executor state"


class CallPurpose(StrEnum):
    """What the answer of a call is for."""

    POLL = "poll"
    """See how far it is."""
    APPROVE = "approve"
    """Start the execution, as soon as that is possible and if it has not happened yet."""
    RENEW = "renew"
    """Request a proposal again after a failure that ended by itself."""
    STOP = "stop"
    REFRESH = "refresh"
    """Stop, then request a proposal."""
    RESUME = "resume"
    """Find out whether an execution went on while the rebalance was paused."""
    DELETE = "delete"
    """Stop before the object goes."""


class RebalanceCall(Value):
    """The next call. `row` is the row of docs/design/kafka.md 6.3 that asks for it."""

    kind: CallKind
    purpose: CallPurpose
    row: str
    task_id: str = ""
    """The user task that is read, or whose execution is stopped."""
    begins: BegunStep | None = None
    """Store this before the call."""
    body: dict[str, Any] | None = None
    """A proposal that an earlier answer of the step had, for the outcome."""
    must_repeat: bool = False
    """For STOP: the execution has not started yet, so that a stop may come too early; it is sent again."""


class RebalanceOutcome(Value):
    """The end of a step: the status to write, and what follows."""

    row: str
    state: RebalanceState
    reason: str = ""
    message: str = ""
    session_id: str = ""
    body: dict[str, Any] | None = None
    """A proposal: its summary becomes `optimizationResult`, its loads go to the ConfigMap. None: they stay."""
    clears_result: bool = False
    """The stored result belongs to a former proposal."""
    executor: ExecutorSubstate | None = None
    """Progress of the execution."""
    warnings: tuple[Reason, ...] = ()
    handles_annotation: bool = False
    """The annotation strimzi.io/rebalance was accepted and is removed."""
    handles_spec: bool = True
    """The status is one of the current spec: `observedGeneration` becomes its generation."""
    keeps_begun: bool = False
    """The begun step is not finished."""
    is_released: bool = False
    """The object is being deleted, and nothing of it runs: our finalizer is removed."""
    retry_after_s: float | None = None
    """Look again after this time; None: when something changes."""


class IgnoredRebalance(Value):
    """Nothing is done, and no status is written."""

    row: str
    reason: Reason


RebalanceStep = RebalanceCall | RebalanceOutcome | IgnoredRebalance
