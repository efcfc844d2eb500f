"""What the operations of the server share: its dependencies, the last model, the steps and times of tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from plimsoll.kafka.cruise_control.server.tasks import Step, describe_reason, read_reason
from plimsoll.kafka.model.cluster import build_model
from plimsoll.kafka.model.executions import NO_REQUEST, ExecutionOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.journal.ports import Journal
    from plimsoll.kafka.cruise_control.server.tasks import UserTask
    from plimsoll.kafka.executor.record import RecordedPlan
    from plimsoll.kafka.model.cluster import ClusterModel
    from plimsoll.kafka.model.description import ClusterDescription
    from plimsoll.kafka.model.executions import ExecutionOutcome, ExecutionProgress, ExecutionRequest
    from plimsoll.kafka.model.proposals import Proposal
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.reporting.metrics import KafkaMetrics

# Cruise Control's words for its steps, which clients show.
_WAITING: Final = "The job requires a cluster model and it is waiting to get the cluster model lock."
_AGGREGATING: Final = "Retrieve the metrics of all the partitions from the aggregated metrics."


class ProposalExecutor(Protocol):
    """Executes proposals; one execution at a time."""

    async def execute(
        self,
        execution_id: str,
        proposals: tuple[Proposal, ...],
        options: ExecutionOptions,
        *,
        request: ExecutionRequest = NO_REQUEST,
    ) -> ExecutionOutcome: ...

    def get_progress(self) -> ExecutionProgress: ...

    async def find_unfinished(self) -> RecordedPlan | None: ...

    async def list_removed_brokers(self) -> list[int]: ...

    async def resume(self) -> ExecutionOutcome | None: ...

    async def stop(self, *, cancel_foreign: bool = False) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What the server works with. `run_blocking` runs a computation so that the loop goes on, where there is time."""

    describe: Callable[[], Awaitable[ClusterDescription]]
    executor: ProposalExecutor
    settings: AnalyzerSettings
    clock: Clock
    run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]]
    execution: ExecutionOptions = field(default_factory=ExecutionOptions)
    journal: Journal | None = None
    """Records executions and their reasons."""
    metrics: KafkaMetrics | None = None
    on_execution_ended: Callable[[], None] = lambda: None
    """Called when the task of an execution has ended."""


@dataclass(slots=True)
class ServerContext:
    """The state that operations share. `spawn` starts work that outlives its request."""

    dependencies: Dependencies
    spawn: Callable[[Any], object]
    model: ClusterModel | None = None
    """The last one that was read."""

    async def read_model(self, task: UserTask) -> ClusterModel:
        """The cluster now."""
        self.step(task, "WAITING_FOR_CLUSTER_MODEL", _WAITING)
        self.step(task, "AGGREGATING_METRICS", _AGGREGATING)
        description = await self.dependencies.describe()
        self.step(task, "GENERATING_CLUSTER_MODEL", "Generating the cluster model for the cluster.")
        self.model = await self.dependencies.run_blocking(lambda: build_model(description))
        return self.model

    def step(self, task: UserTask, name: str, description: str) -> None:
        """Name what a task does, for its clients."""
        task.steps.append(Step(name=name, description=description, at_s=self.dependencies.clock.monotonic_s()))

    def describe_reason(self, task: UserTask) -> str:
        """Why a client wants something, as Cruise Control writes it."""
        return describe_reason(read_reason(task), task.client, self.dependencies.clock.now())

    def read_clock_s(self) -> float:
        return self.dependencies.clock.now().timestamp()
