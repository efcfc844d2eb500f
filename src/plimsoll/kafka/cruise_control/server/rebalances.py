"""Plans and executions behind the endpoints: one execution runs at a time, and outlives its request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
import structlog

from plimsoll.core.errors import PlimsollError, Unreachable
from plimsoll.kafka.cruise_control.server import bodies, text
from plimsoll.kafka.cruise_control.server.endpoints import ENDPOINTS
from plimsoll.kafka.cruise_control.server.errors import (
    ILLEGAL_STATE,
    OperationFailed,
    RequestRefused,
    build_failure,
)
from plimsoll.kafka.cruise_control.server.parameters import Parameters, parse_parameters
from plimsoll.kafka.cruise_control.server.tasks import build_answer, build_error_answer, describe_reason, read_reason
from plimsoll.kafka.executor.errors import ExecutionRefused, RecordUnusable
from plimsoll.kafka.executor.journaling import record_execution, record_proposal
from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOptions, ExecutionRequest, ExecutorState
from plimsoll.kafka.model.proposals import OptimizationResult, Refusal
from plimsoll.kafka.model.requests import Mode, RebalanceRequest
from plimsoll.kafka.planning.goal_list import resolve_goals
from plimsoll.kafka.planning.optimizer import optimize
from plimsoll.kafka.planning.refusals import write_cruise_control_error
from plimsoll.kafka.planning.scope import is_caused_by_silence
from plimsoll.kafka.reporting.journal_plans import build_plan, build_refused_plan

if TYPE_CHECKING:
    from plimsoll.core.plans import Plan
    from plimsoll.kafka.cruise_control.server.context import ServerContext
    from plimsoll.kafka.cruise_control.server.endpoints import Endpoint
    from plimsoll.kafka.cruise_control.server.tasks import Answer, UserTask, UserTasks
    from plimsoll.kafka.executor.record import RecordedPlan
    from plimsoll.kafka.model.cluster import ClusterModel
    from plimsoll.kafka.model.executions import ExecutionProgress

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_PROPOSALS_KEPT_S: Final = 900.0
_AGAIN_S: Final = 10.0
"""How often an execution that cannot be resumed or stopped is tried again."""
_STOPPED_S: Final = 1.0
"""How often a task looks whether the execution that it stops has ended and is in the journal."""
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
MODES: Final = {
    "REBALANCE": Mode.FULL,
    "PROPOSALS": Mode.FULL,
    "ADD_BROKER": Mode.ADD_BROKERS,
    "REMOVE_BROKER": Mode.REMOVE_BROKERS,
    "DEMOTE_BROKER": Mode.DEMOTE_BROKERS,
    "FIX_OFFLINE_REPLICAS": Mode.FIX_OFFLINE_REPLICAS,
    "REMOVE_DISKS": Mode.REMOVE_DISKS,
}


@dataclass(slots=True)
class Rebalances:
    """Plans, and executes one plan at a time."""

    context: ServerContext
    tasks: UserTasks
    triggered_by: str = ""
    """The reason, client and date of the last execution."""
    _executing: UserTask | None = None
    _journaled: Plan | None = None
    """The last plan in the journal that was not executed, without its time."""
    _cached: tuple[float, tuple[object, ...], OptimizationResult] | None = None

    @property
    def score(self) -> float:
        """The balancedness before the last default plan; 100 if there is none."""
        return self._cached[2].balancedness_before if self._cached is not None else 100.0

    async def plan(self, task: UserTask) -> None:
        """Answer with a plan; execute it if the request says so."""
        parameters = task.parameters
        executes = task.endpoint.defaults_to_dry_run and not parameters.get("dryrun", default=True)
        request = await self._build_request(task)
        goals = resolve_goals(request, self.context.dependencies.settings)
        if isinstance(goals, Refusal):  # before the cluster is read
            await self._refuse(task, goals)
        if executes:
            await self._reserve(task)
        result = await self._find_plan(task, request)
        body = bodies.build_optimization(result, verbose=parameters.get("verbose", default=False))
        is_proposal = task.endpoint.name == "PROPOSALS"
        heading = "Optimized load:" if is_proposal else text.describe_load_after(request)
        answer = build_answer(body, text.render_optimization(body, load_after=heading))
        if not executes or not result.proposals:
            self.release(task)
            if task.endpoint.defaults_to_dry_run:
                await self._record(build_plan(result, at=self.context.dependencies.clock.now()), is_proposal=True)
            task.finish(answer, at_s=self.context.read_clock_s(), is_executing=False)
            return
        task.finish(answer, at_s=self.context.read_clock_s(), is_executing=True)
        self.context.spawn(self._execute(task, result))

    async def _find_plan(self, task: UserTask, request: RebalanceRequest) -> OptimizationResult:
        is_default = request == RebalanceRequest() and not task.parameters.get("ignore_proposal_cache", default=False)
        model = await self.context.read_model(task)
        identity = _identify(model)
        if is_default and self._cached is not None:
            computed_at_s, seen, cached = self._cached
            if seen == identity and self.context.read_clock_s() - computed_at_s < _PROPOSALS_KEPT_S:
                return cached
        goals = resolve_goals(request, self.context.dependencies.settings)
        for goal in goals if not isinstance(goals, Refusal) else ():
            self.context.step(task, f"OPTIMIZING {goal}", f"Optimizing goal {goal}")
        result: OptimizationResult | Refusal = await self.context.dependencies.run_blocking(
            lambda: optimize(model, request, self.context.dependencies.settings)
        )
        if isinstance(result, Refusal):
            if is_caused_by_silence(result):
                raise Unreachable(str(result.reason))
            await self._refuse(task, result)
        if self.context.dependencies.metrics is not None:
            self.context.dependencies.metrics.record_plan(result)
        if is_default:
            self._cached = (self.context.read_clock_s(), identity, result)
        return result

    async def _refuse(self, task: UserTask, refusal: Refusal) -> NoReturn:
        """End a task whose plan is refused. GET proposals is asked all the time, and changes nothing."""
        if task.endpoint.defaults_to_dry_run:
            plan = build_refused_plan(refusal, at=self.context.dependencies.clock.now())
            await self._record(plan, is_proposal=False)
        raise OperationFailed(write_cruise_control_error(refusal))

    async def _record(self, plan: Plan, *, is_proposal: bool) -> None:
        """Store a plan of which nothing is executed, unless it is equal to the last one."""
        journal = self.context.dependencies.journal
        content = msgspec.structs.replace(plan, at=_EPOCH)
        if journal is None or content == self._journaled:
            return
        self._journaled = content
        try:
            await (record_proposal(journal, plan) if is_proposal else journal.append(plan))
        except PlimsollError as error:
            log.warning("cruise_control.not_journaled", problem=str(error))

    async def _build_request(self, task: UserTask) -> RebalanceRequest:
        parameters = task.parameters
        removed: tuple[int, ...] = ()
        if parameters.get("exclude_recently_removed_brokers", default=False):
            removed = tuple(await self.list_removed())
        return RebalanceRequest(
            mode=MODES[task.endpoint.name],
            brokers=parameters.get("brokerid", default=()),
            log_dirs=parameters.get("brokerid_and_logdirs", default=()),
            goals=parameters.get("goals", default=()),
            skip_hard_goal_check=parameters.get("skip_hard_goal_check", default=False),
            excluded_topics=parameters.get("excluded_topics", default=""),
            destination_brokers=parameters.get("destination_broker_ids", default=()),
            excluded_for_replicas=removed,
            rebalance_disk=parameters.get("rebalance_disk", default=False),
            relief=parameters.get_optional("relief"),
        )

    async def _reserve(self, task: UserTask) -> None:
        """Make sure that this task is the only one that executes."""
        executor = self.context.dependencies.executor
        if self._is_busy() and task.parameters.get("stop_ongoing_execution", default=False):
            self.context.step(task, "STOPPING_ONGOING_EXECUTION", "Stopping the ongoing execution.")
            while self._is_busy():  # a task that still plans is stopped once it executes
                await executor.stop()
                await self.context.dependencies.clock.sleep(_STOPPED_S)
        if self._is_busy():
            raise OperationFailed(
                f"{ILLEGAL_STATE}: Cannot start a new execution while there is an ongoing execution. "
                "Please use stop_ongoing_execution=true to stop ongoing execution and start a new one."
            )
        self._executing = task

    def _is_busy(self) -> bool:
        return (
            self._executing is not None
            or self.context.dependencies.executor.get_progress().state is not ExecutorState.NO_TASK_IN_PROGRESS
        )

    def release(self, task: UserTask) -> None:
        """Let another task execute."""
        if self._executing is task:
            self._executing = None

    async def _execute(self, task: UserTask, result: OptimizationResult) -> None:
        options = _build_options(task.parameters, self.context.dependencies.execution)
        self.triggered_by = self.context.describe_reason(task)
        source = ExecutionRequest(
            url=task.url, client=task.client, reason=read_reason(task), removed_brokers=result.emptied_brokers
        )
        succeeded, answer = False, None
        plan = build_plan(result, at=self.context.dependencies.clock.now())
        executor = self.context.dependencies.executor
        try:
            outcome = await record_execution(
                self.context.dependencies.journal,
                plan,
                source,
                lambda recorded: executor.execute(task.id, result.proposals, options, request=recorded),
            )
            succeeded = outcome.end is ExecutionEnd.COMPLETED and not result.kept_on_leaving
            if outcome.not_emptied:
                answer = _build_error(task, PlimsollError(str(outcome.reason)))
            task.explain_end(outcome)
        except (Unreachable, RecordUnusable, ExecutionRefused) as error:
            # Nothing has begun, and a later request may succeed.
            log.warning("cruise_control.execution_not_begun", task=task.id, problem=str(error))
            answer = _build_error(task, error)
        except PlimsollError as error:
            log.warning("cruise_control.execution_failed", task=task.id, problem=str(error))
        finally:
            self.release(task)
            task.conclude(at_s=self.context.read_clock_s(), succeeded=succeeded, answer=answer)
            self.context.dependencies.on_execution_ended()
        if not succeeded:
            await self._settle()

    def restore(self, plan: RecordedPlan) -> UserTask:
        """The task of an execution that an earlier process has not finished, with the request of its client."""
        request, started_at = plan.request, datetime.fromisoformat(plan.started_at)
        self.triggered_by = describe_reason(request.reason, request.client, started_at)
        endpoint, parameters = _read_request(request.url)
        return self.tasks.restore(
            plan.execution_id, endpoint, parameters, url=request.url, client=request.client, started_at=started_at
        )

    async def resume(self, task: UserTask | None) -> None:
        """Go on with an execution of an earlier process until it has ended. None: it is not known whether there is one.

        What fails is tried again: the brokers may be away.
        """
        executor = self.context.dependencies.executor
        while True:
            try:
                if task is None and (unfinished := await executor.find_unfinished()):
                    task = self.restore(unfinished)
                if task is None:
                    await executor.resume()
                    return
                await self._resume(task)
                task = None
            except PlimsollError as error:
                log.warning("cruise_control.resume_failed", problem=str(error))
            await self.context.dependencies.clock.sleep(_AGAIN_S)

    async def _resume(self, task: UserTask) -> None:
        """Raises what keeps the execution from going on. Its task is not finished then."""
        self._executing = task
        outcome = await self.context.dependencies.executor.resume()
        succeeded = outcome is not None and outcome.end is ExecutionEnd.COMPLETED
        self.release(task)
        if outcome is not None:
            task.explain_end(outcome)
        task.conclude(at_s=self.context.read_clock_s(), succeeded=succeeded)
        self.context.dependencies.on_execution_ended()

    async def _settle(self) -> None:
        """Stop what a failed execution left under way: its task has ended, and no other can start before."""
        executor = self.context.dependencies.executor
        while True:
            try:
                if not await executor.find_unfinished():
                    return
                await executor.stop()
            except PlimsollError as error:
                log.warning("cruise_control.settle_failed", problem=str(error))
            await self.context.dependencies.clock.sleep(_AGAIN_S)

    async def stop(self, *, cancel_foreign: bool) -> None:
        """Stopping takes until everything is rolled back; the request does not wait for it.

        It was answered, so what fails is tried again for as long as the same task executes.
        """
        task = self._executing
        while True:
            try:
                await self.context.dependencies.executor.stop(cancel_foreign=cancel_foreign)
            except PlimsollError as error:
                log.warning("cruise_control.stop_failed", problem=str(error))
            else:
                return
            await self.context.dependencies.clock.sleep(_STOPPED_S)
            if task is None or self._executing is not task:
                return

    def get_progress(self) -> ExecutionProgress:
        """The progress of the executor. An execution that is about to start is one."""
        progress = self.context.dependencies.executor.get_progress()
        if progress.state is ExecutorState.NO_TASK_IN_PROGRESS and self._executing is not None:
            return msgspec.structs.replace(
                progress, state=ExecutorState.STARTING_EXECUTION, execution_id=self._executing.id
            )
        return progress

    async def list_removed(self) -> list[int]:
        """The brokers that were removed lately."""
        return await self.context.dependencies.executor.list_removed_brokers()


def _read_request(url: str) -> tuple[Endpoint, Parameters]:
    """The endpoint and the parameters of a request that an earlier process got."""
    method, _, rest = url.partition(" ")
    path, _, query = rest.partition("?")
    endpoint = ENDPOINTS.get((method, path.rstrip("/").rpartition("/")[2].lower()), ENDPOINTS["POST", "rebalance"])
    try:
        return endpoint, parse_parameters(endpoint, query.encode())
    except RequestRefused:  # of a version that knew other parameters
        return endpoint, Parameters({})


def _build_error(task: UserTask, error: PlimsollError) -> Answer:
    failure = build_failure(error)
    where = f"{task.endpoint.method} request '/{task.endpoint.path}'"
    return build_error_answer(f"Error processing {where} due to: '{failure.message}'.", failure)


def _identify(model: ClusterModel) -> tuple[object, ...]:
    """What a plan must not be older than. Sizes and rates change all the time, and a plan survives that."""
    brokers = tuple(
        (
            broker.id,
            broker.rack,
            broker.is_registered,
            broker.is_fenced,
            broker.capacity,
            None
            if broker.log_dirs is None
            else tuple((log_dir.path, log_dir.is_online, log_dir.is_cordoned) for log_dir in broker.log_dirs),
        )
        for broker in model.brokers
    )
    columns = (
        model.topic_of,
        model.numbers,
        model.offsets,
        model.broker_of,
        model.leader,
        model.in_sync,
        model.offline,
        model.reassigning,
        model.removing,
    )
    return (brokers, model.topics, *(column.tobytes() for column in columns))


def _build_options(parameters: Parameters, defaults: ExecutionOptions) -> ExecutionOptions:
    given: dict[str, Any] = {"require_planned_replicas": True}
    for name in (
        "concurrent_partition_movements_per_broker",
        "max_partition_movements_in_cluster",
        "concurrent_intra_broker_partition_movements",
        "concurrent_leader_movements",
        "broker_concurrent_leader_movements",
        "replica_movement_strategies",
    ):
        if (value := parameters.get_optional(name)) is not None:
            given[name] = value
    if throttle := parameters.get("replication_throttle", default=0):
        given["replication_throttle"] = throttle
    if interval_ms := parameters.get("execution_progress_check_interval_ms", default=0):
        given["progress_check_interval_s"] = min(3600.0, interval_ms / 1000)
    return msgspec.structs.replace(defaults, **given)
