"""What outlives the process: the plan of the execution, its movements under way, and every throttle that is ours.

The plan is written once. The state is small (bounded by the movements that may run at once) and is written before each
batch: the record always names at least what the brokers have of ours. A throttle rate of a broker that is down stays in
the state after the execution has ended, until the broker is back.
"""

from __future__ import annotations

import hashlib
from typing import Final, Protocol, TypeVar

import msgspec

from plimsoll.core.values import Value
from plimsoll.kafka.executor.errors import RecordUnusable
from plimsoll.kafka.model.description import TopicPartition  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.kafka.model.executions import NO_REQUEST, ExecutionOptions, ExecutionRequest
from plimsoll.kafka.model.proposals import Proposal  # noqa: TC001 - msgspec reads annotations at run time

FORMAT: Final = "plimsoll.dev/kafka-execution/v1"


class ThrottledReplica(Value, order=True):
    """An entry of ours in a list of throttled replicas: `replica` is `<partition>:<broker>`."""

    topic: str
    key: str
    replica: str


class ThrottleRate(Value, order=True):
    """A throttle rate of ours on a broker."""

    broker: int
    key: str
    value: str


class RecordedPlan(Value):
    """What an execution does. It does not change while the execution runs."""

    execution_id: str
    cluster_id: str
    proposals: tuple[Proposal, ...]
    started_at: str
    request: ExecutionRequest = NO_REQUEST


class RecordedState(Value):
    """Where the execution is. `execution_id` is empty if none is unfinished."""

    execution_id: str = ""
    options: ExecutionOptions = ExecutionOptions()
    is_stopping: bool = False
    active: tuple[TopicPartition, ...] = ()
    """Partitions whose reassignment was sent, or is about to be."""
    throttled_replicas: tuple[ThrottledReplica, ...] = ()
    rates: tuple[ThrottleRate, ...] = ()
    started_bytes: tuple[tuple[int, int], ...] = ()
    """Bytes that began to move in the last hour: (unix seconds, bytes), the oldest first."""
    removed_brokers: tuple[tuple[int, int], ...] = ()
    """Brokers that executions have emptied lately: (broker, unix seconds)."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing of an execution is left: neither itself, nor a throttle, nor bytes that count."""
        return not (self.execution_id or self.throttled_replicas or self.rates or self.started_bytes)

    @property
    def is_empty(self) -> bool:
        return self.is_settled and not self.removed_brokers


class ExecutionRecord(Value):
    """The record as it is read back. `plan` is None if no execution is unfinished."""

    state: RecordedState
    plan: RecordedPlan | None = None


class ExecutionStore(Protocol):
    """Where the record is kept. A write returns only when it would survive a crash."""

    async def read(self) -> ExecutionRecord | None:
        """None: there is no record. A damaged one raises `RecordUnusable`."""
        ...

    async def write_plan(self, plan: RecordedPlan) -> None:
        """Written before the first state of the execution."""
        ...

    async def write_state(self, state: RecordedState) -> None: ...


class _Envelope(msgspec.Struct):
    format: str
    checksum: str
    content: msgspec.Raw


def encode_record(content: RecordedPlan | RecordedState) -> bytes:
    raw = msgspec.json.encode(content)
    return msgspec.json.encode(_Envelope(FORMAT, _compute_checksum(raw), msgspec.Raw(raw)))


def decode_plan(raw: bytes, *, source: str) -> RecordedPlan:
    return _decode(raw, RecordedPlan, source)


def decode_state(raw: bytes, *, source: str) -> RecordedState:
    return _decode(raw, RecordedState, source)


def build_record(state: RecordedState, plan: RecordedPlan | None, *, source: str) -> ExecutionRecord:
    """Puts both parts together. A plan without a state that names it was never begun."""
    if not state.execution_id:
        return ExecutionRecord(state=state)
    if plan is None or plan.execution_id != state.execution_id:
        found = "missing" if plan is None else f"of execution {plan.execution_id}"
        raise RecordUnusable(f"{source}: the plan of execution {state.execution_id} is {found}; {_ADVICE}")
    return ExecutionRecord(state=state, plan=plan)


_ADVICE: Final = (
    "the brokers still have its reassignments and throttles: check them with kafka-reassign-partitions --list and "
    "kafka-configs, then remove the file"
)
_T = TypeVar("_T", RecordedPlan, RecordedState)


def _decode(raw: bytes, content: type[_T], source: str) -> _T:
    try:
        envelope = msgspec.json.decode(raw, type=_Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordUnusable(f"{source} is damaged: {error}; {_ADVICE}") from error
    if envelope.format != FORMAT:
        raise RecordUnusable(f"{source} has the format {envelope.format!r}, not {FORMAT!r}; {_ADVICE}")
    if envelope.checksum != _compute_checksum(bytes(envelope.content)):
        raise RecordUnusable(f"{source} is damaged: its checksum does not match; {_ADVICE}")
    try:
        return msgspec.json.decode(envelope.content, type=content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordUnusable(f"{source} is damaged: {error}; {_ADVICE}") from error


def _compute_checksum(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
