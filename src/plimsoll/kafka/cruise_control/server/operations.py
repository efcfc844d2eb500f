"""The work behind the endpoints: read the cluster, plan, execute, stop.

Every request reads the cluster anew, so the first answer needs no sampling windows. One execution runs at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
import numpy as np
import structlog

from plimsoll.core.errors import InvalidInput, NotEnoughData, PlimsollError, Unreachable
from plimsoll.kafka.cruise_control.server import bodies, state_bodies, text
from plimsoll.kafka.cruise_control.server.endpoints import ENDPOINTS, Role
from plimsoll.kafka.cruise_control.server.errors import (
    ILLEGAL_STATE,
    TIMEOUT,
    WRAPPED,
    OperationFailed,
    RequestRefused,
)
from plimsoll.kafka.cruise_control.server.parameters import Parameters
from plimsoll.kafka.cruise_control.server.tasks import Answer, Step
from plimsoll.kafka.executor.journaling import record_execution
from plimsoll.kafka.model.cluster import build_model
from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOptions, ExecutorState
from plimsoll.kafka.model.proposals import OptimizationResult, Refusal
from plimsoll.kafka.model.requests import Mode, RebalanceRequest
from plimsoll.kafka.planning.goal_list import resolve_goals
from plimsoll.kafka.planning.optimizer import optimize
from plimsoll.kafka.planning.refusals import write_cruise_control_error
from plimsoll.kafka.planning.scope import NO_BROKER_ANSWERED
from plimsoll.kafka.reporting.journal_plans import build_plan
from plimsoll.objects.schema.regular_expressions import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.journal.ports import Journal
    from plimsoll.kafka.cruise_control.server.authentication import User
    from plimsoll.kafka.cruise_control.server.endpoints import Endpoint
    from plimsoll.kafka.cruise_control.server.tasks import UserTask, UserTasks
    from plimsoll.kafka.model.cluster import ClusterModel, Flags
    from plimsoll.kafka.model.description import ClusterDescription
    from plimsoll.kafka.model.executions import ExecutionOutcome, ExecutionProgress
    from plimsoll.kafka.model.proposals import Proposal
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.reporting.metrics import KafkaMetrics

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_SUBSTATES: Final = ("ANALYZER", "MONITOR", "EXECUTOR", "ANOMALY_DETECTOR")
_PROPOSALS_KEPT_S: Final = 900.0
_RECENTLY_REMOVED_S: Final = 14 * 86_400.0
_DEFAULT_ENTRIES: Final = 2_000
_AGAIN_S: Final = 10.0
"""How often an execution that cannot be resumed or stopped is tried again."""
# Cruise Control's words for its steps, which clients show.
_WAITING: Final = "The job requires a cluster model and it is waiting to get the cluster model lock."
_AGGREGATING: Final = "Retrieve the metrics of all the partitions from the aggregated metrics."
_MODES: Final = {
    "REBALANCE": Mode.FULL,
    "PROPOSALS": Mode.FULL,
    "ADD_BROKER": Mode.ADD_BROKERS,
    "REMOVE_BROKER": Mode.REMOVE_BROKERS,
    "DEMOTE_BROKER": Mode.DEMOTE_BROKERS,
    "FIX_OFFLINE_REPLICAS": Mode.FIX_OFFLINE_REPLICAS,
    "REMOVE_DISKS": Mode.REMOVE_DISKS,
}
_NEEDS_BROKERS: Final = frozenset({"ADD_BROKER", "REMOVE_BROKER", "DEMOTE_BROKER"})


def check_parameters(endpoint: Endpoint, parameters: Parameters) -> None:
    """Refuse what is wrong in itself, before a task is created. Raises `RequestRefused`."""
    if endpoint.name in _NEEDS_BROKERS and not parameters.get("brokerid", default=()):
        raise RequestRefused(f"Target broker ID is not provided for {endpoint.name} request")
    if parameters.get("resource", default="disk").lower() not in bodies.RESOURCES:
        raise RequestRefused(f"Parameter resource must be one of {', '.join(bodies.RESOURCES)}.")
    substates = parameters.get_names("substates")
    if unknown := [name for name in substates if name.upper() not in _SUBSTATES]:
        supported = ", ".join(_SUBSTATES)
        raise RequestRefused(f"Unsupported substates in [{', '.join(unknown)}]. Supported: [{supported}]")


class ProposalExecutor(Protocol):
    """Executes proposals; one execution at a time."""

    async def execute(
        self, execution_id: str, proposals: tuple[Proposal, ...], options: ExecutionOptions, *, reason: str = ""
    ) -> ExecutionOutcome: ...

    def get_progress(self) -> ExecutionProgress: ...

    async def find_unfinished(self) -> str: ...

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


@dataclass(slots=True)
class _Pause:
    is_paused: bool = False
    reason: str = "N/A"


@dataclass(slots=True)
class Operations:
    """Answers requests. `spawn` starts an execution that outlives its request."""

    dependencies: Dependencies
    tasks: UserTasks
    spawn: Callable[[Any], object]
    _executing: UserTask | None = None
    _triggered_by: str = ""
    _removed: dict[int, float] = field(default_factory=dict)
    _pause: _Pause = field(default_factory=_Pause)
    _cached: tuple[float, tuple[object, ...], OptimizationResult] | None = None
    _model: ClusterModel | None = None

    async def answer(self, task: UserTask, user: User) -> None:
        """Work on a task to its answer. Errors become answers."""
        where = f"{task.endpoint.method} request '/{task.endpoint.path}'"
        try:
            await self._handle(task, user)
        except OperationFailed as failure:
            self._finish_with_error(task, f"Error processing {where} due to: '{failure.message}'.", failure)
        except RequestRefused as failure:
            message = f"Bad {where} due to '{failure.message}'."
            if failure.status is HTTPStatus.FORBIDDEN:
                message = f"Cannot process {where} due to: '{failure.message}'."
            self._finish_with_error(task, message, failure)
        except (Unreachable, NotEnoughData) as error:
            failed = OperationFailed(f"{WRAPPED}: {TIMEOUT}: {error}")
            self._finish_with_error(task, f"Error processing {where} due to: '{failed.message}'.", failed)
        except (InvalidInput, PlimsollError) as error:
            failed = OperationFailed(f"{WRAPPED}: {error}")
            self._finish_with_error(task, f"Error processing {where} due to: '{failed.message}'.", failed)

    def fail(self, task: UserTask) -> None:
        """End a task after an error of our own."""
        failure = OperationFailed("internal error; the server's log has the details")
        where = f"{task.endpoint.method} request '/{task.endpoint.path}'"
        self._finish_with_error(task, f"Error processing {where} due to: '{failure.message}'.", failure)

    def _finish_with_error(self, task: UserTask, message: str, failure: OperationFailed | RequestRefused) -> None:
        self._release(task)
        body = {"version": bodies.VERSION, "errorMessage": message, "stackTrace": failure.message.partition("\n")[0]}
        answer = Answer(status=int(failure.status), body=msgspec.json.encode(body), text=message)
        task.finish(answer, at_s=self._read_clock_s(), is_executing=False)
        log.warning("cruise_control.failed", task=task.id, endpoint=task.endpoint.name, problem=failure.message)

    async def _handle(self, task: UserTask, user: User) -> None:
        self._step(task, "PENDING", "Operation enqueued, waiting to be executed.")
        name = task.endpoint.name
        if name in _MODES:
            await self._optimize(task)
            return
        handlers: dict[str, Callable[[UserTask, User], Awaitable[tuple[dict[str, Any], str]]]] = {
            "LOAD": self._describe_load,
            "PARTITION_LOAD": self._describe_partition_load,
            "KAFKA_CLUSTER_STATE": self._describe_cluster_state,
            "STATE": self._describe_state,
            "USER_TASKS": self._list_user_tasks,
            "PERMISSIONS": self._describe_permissions,
            "REVIEW_BOARD": self._refuse_review_board,
            "STOP_PROPOSAL_EXECUTION": self._stop_execution,
            "PAUSE_SAMPLING": self._pause_sampling,
            "RESUME_SAMPLING": self._resume_sampling,
        }
        body, plain = await handlers[name](task, user)
        task.finish(_build_answer(body, plain), at_s=self._read_clock_s(), is_executing=False)

    # ---- plans and executions

    async def _optimize(self, task: UserTask) -> None:
        parameters = task.parameters
        executes = task.endpoint.defaults_to_dry_run and not parameters.get("dryrun", default=True)
        request = self._build_request(task)
        _check_request(request, self.dependencies.settings)
        if executes:
            await self._reserve(task)
        result = await self._find_plan(task, request)
        body = bodies.build_optimization(result, verbose=parameters.get("verbose", default=False))
        answer = _build_answer(body, text.render_optimization(body))
        if not executes or not result.proposals:
            self._release(task)
            task.finish(answer, at_s=self._read_clock_s(), is_executing=False)
            return
        task.finish(answer, at_s=self._read_clock_s(), is_executing=True)
        self.spawn(self._execute(task, request, result))

    async def _find_plan(self, task: UserTask, request: RebalanceRequest) -> OptimizationResult:
        is_default = request == RebalanceRequest() and not task.parameters.get("ignore_proposal_cache", default=False)
        model = await self._read_model(task)
        identity = _identify(model)
        if is_default and self._cached is not None:
            computed_at_s, seen, cached = self._cached
            if seen == identity and self._read_clock_s() - computed_at_s < _PROPOSALS_KEPT_S:
                return cached
        goals = resolve_goals(request, self.dependencies.settings)
        for goal in goals if not isinstance(goals, Refusal) else ():
            self._step(task, f"OPTIMIZING {goal}", f"Optimizing goal {goal}")
        result: OptimizationResult | Refusal = await self.dependencies.run_blocking(
            lambda: optimize(model, request, self.dependencies.settings)
        )
        if isinstance(result, Refusal):
            if result.reason.code == NO_BROKER_ANSWERED:
                raise Unreachable(str(result.reason))
            raise OperationFailed(write_cruise_control_error(result))
        if self.dependencies.metrics is not None:
            self.dependencies.metrics.record_plan(result)
        if is_default:
            self._cached = (self._read_clock_s(), identity, result)
        return result

    def _build_request(self, task: UserTask) -> RebalanceRequest:
        parameters = task.parameters
        removed: tuple[int, ...] = ()
        if parameters.get("exclude_recently_removed_brokers", default=False):
            removed = tuple(sorted(self._list_removed()))
        return RebalanceRequest(
            mode=_MODES[task.endpoint.name],
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
        executor = self.dependencies.executor
        if self._is_busy() and task.parameters.get("stop_ongoing_execution", default=False):
            self._step(task, "STOPPING_ONGOING_EXECUTION", "Stopping the ongoing execution.")
            await executor.stop()
            while executor.get_progress().state is not ExecutorState.NO_TASK_IN_PROGRESS:
                await self.dependencies.clock.sleep(1.0)
        if self._is_busy():
            raise OperationFailed(
                f"{ILLEGAL_STATE}: Cannot start a new execution while there is an ongoing execution. "
                "Please use stop_ongoing_execution=true to stop ongoing execution and start a new one."
            )
        self._executing = task

    def _is_busy(self) -> bool:
        return (
            self._executing is not None
            or self.dependencies.executor.get_progress().state is not ExecutorState.NO_TASK_IN_PROGRESS
        )

    def _release(self, task: UserTask) -> None:
        if self._executing is task:
            self._executing = None

    async def _execute(self, task: UserTask, request: RebalanceRequest, result: OptimizationResult) -> None:
        options = _build_options(task.parameters, self.dependencies.execution)
        reason = task.parameters.get("reason", default="") or "No reason provided"
        date = self.dependencies.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        self._triggered_by = f"{reason} (Client: {task.client}, Date: {date})"
        succeeded = False
        plan = build_plan(result, at=self.dependencies.clock.now())
        executor = self.dependencies.executor
        try:
            outcome = await record_execution(
                self.dependencies.journal,
                plan,
                lambda: executor.execute(task.id, result.proposals, options, reason=reason),
            )
            succeeded = outcome.end is ExecutionEnd.COMPLETED and not result.kept_on_leaving
            if succeeded and request.mode is Mode.REMOVE_BROKERS:
                self._removed |= dict.fromkeys(request.brokers, self._read_clock_s())
        except PlimsollError as error:
            log.warning("cruise_control.execution_failed", task=task.id, problem=str(error))
        finally:
            self._release(task)
            task.conclude(at_s=self._read_clock_s(), succeeded=succeeded)
        if not succeeded:
            await self._settle()

    def restore(self, task_id: str) -> UserTask:
        """The task of an execution that an earlier process has not finished."""
        return self.tasks.restore(task_id, ENDPOINTS["POST", "rebalance"], Parameters({}))

    async def resume(self, task: UserTask | None) -> None:
        """Go on with an execution of an earlier process until it has ended. None: it is not known whether there is one.

        What fails is tried again: the brokers may be away.
        """
        executor = self.dependencies.executor
        while True:
            try:
                if task is None and (task_id := await executor.find_unfinished()):
                    task = self.restore(task_id)
                if task is None:
                    await executor.resume()
                    return
                await self._resume(task)
                task = None
            except PlimsollError as error:
                log.warning("cruise_control.resume_failed", problem=str(error))
            await self.dependencies.clock.sleep(_AGAIN_S)

    async def _resume(self, task: UserTask) -> None:
        self._executing = task
        succeeded = False
        try:
            outcome = await self.dependencies.executor.resume()
            succeeded = outcome is not None and outcome.end is ExecutionEnd.COMPLETED
        finally:
            self._release(task)
            task.conclude(at_s=self._read_clock_s(), succeeded=succeeded)

    async def _settle(self) -> None:
        """Stop what a failed execution left under way: its task has ended, and no other can start before."""
        executor = self.dependencies.executor
        while True:
            try:
                if not await executor.find_unfinished():
                    return
                await executor.stop()
            except PlimsollError as error:
                log.warning("cruise_control.settle_failed", problem=str(error))
            await self.dependencies.clock.sleep(_AGAIN_S)

    async def _stop_execution(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        foreign = task.parameters.get("stop_external_agent", default=False)
        self.spawn(self._stop(cancel_foreign=foreign))
        return _build_message("Proposal execution stopped.")

    async def _stop(self, *, cancel_foreign: bool) -> None:
        """Stopping takes until everything is rolled back; the request does not wait for it."""
        try:
            await self.dependencies.executor.stop(cancel_foreign=cancel_foreign)
        except PlimsollError as error:
            log.warning("cruise_control.stop_failed", problem=str(error))

    # ---- reads

    async def _describe_load(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        body = {**bodies.build_load(await self._read_model(task)), "version": bodies.VERSION}
        return body, text.render_load(body)

    async def _describe_partition_load(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        parameters = task.parameters
        resource = bodies.RESOURCES[parameters.get("resource", default="disk").lower()]
        model = await self._read_model(task)
        wanted = _match_topics(model, parameters.get("topic", default=""))
        brokers: tuple[int, ...] = parameters.get("brokerid", default=())
        if brokers:
            hosted = np.isin(model.broker_ids[model.broker_of], brokers)
            wanted &= np.bincount(model.partition_of[hosted], minlength=model.partition_count) > 0
        entries = parameters.get("entries", default=_DEFAULT_ENTRIES)
        body = bodies.build_partition_load(model, resource=resource, entries=entries, wanted=wanted)
        return body, text.render_partition_load(body)

    async def _describe_cluster_state(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        model = await self._read_model(task)
        wanted = _match_topics(model, task.parameters.get("topic", default=""))
        verbose = task.parameters.get("verbose", default=False)
        body = bodies.build_cluster_state(model, wanted=wanted, verbose=verbose)
        return body, text.render_cluster_state(body)

    async def _describe_state(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        names = [name.upper() for name in task.parameters.get_names("substates")] or list(_SUBSTATES)
        verbose = task.parameters.get("verbose", default=False)
        body: dict[str, Any] = {}
        model = self._model
        if {"MONITOR", "ANALYZER"} & set(names):
            try:
                model = await self._read_model(task)
            except Unreachable as error:
                log.warning("cruise_control.brokers_unreachable", problem=str(error))
                model = None
        if "MONITOR" in names:
            body["MonitorState"] = state_bodies.build_monitor_state(
                model, pause_reason=self._pause.reason, is_paused=self._pause.is_paused, verbose=verbose
            )
        if "EXECUTOR" in names:
            body["ExecutorState"] = state_bodies.build_executor_state(
                self._get_progress(),
                triggered_by=self._triggered_by,
                recently_removed=self._list_removed(),
                verbose=verbose,
            )
        if "ANALYZER" in names:
            goals = resolve_goals(RebalanceRequest(), self.dependencies.settings)
            ready = () if model is None or isinstance(goals, Refusal) else goals
            body["AnalyzerState"] = state_bodies.build_analyzer_state(
                ready, is_ready=model is not None, verbose=verbose
            )
        if "ANOMALY_DETECTOR" in names:
            score = self._cached[2].balancedness_before if self._cached is not None else 100.0
            body["AnomalyDetectorState"] = state_bodies.build_anomaly_state(score)
        body["version"] = bodies.VERSION
        return body, text.render_state(body)

    def _get_progress(self) -> ExecutionProgress:
        progress = self.dependencies.executor.get_progress()
        if progress.state is ExecutorState.NO_TASK_IN_PROGRESS and self._executing is not None:
            return msgspec.structs.replace(
                progress, state=ExecutorState.STARTING_EXECUTION, execution_id=self._executing.id
            )
        return progress

    async def _list_user_tasks(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        parameters = task.parameters
        tasks = [listed for listed in self.tasks.list_tasks() if listed is not task]
        if ids := parameters.get_names("user_task_ids"):
            tasks = [listed for listed in tasks if listed.id in ids]
        if clients := parameters.get_names("client_ids"):
            tasks = [listed for listed in tasks if listed.client in clients]
        if endpoints := {name.upper() for name in parameters.get_names("endpoints")}:
            tasks = [listed for listed in tasks if listed.endpoint.name in endpoints]
        if types := {name.lower() for name in parameters.get_names("types")}:
            tasks = [listed for listed in tasks if listed.status.lower() in types]
        tasks = tasks[: parameters.get("entries", default=len(tasks))]
        fetches = parameters.get("fetch_completed_task", default=False)
        body = state_bodies.build_user_tasks(tasks, fetches_answers=fetches)
        return body, text.render_user_tasks(body)

    async def _describe_permissions(self, _task: UserTask, user: User) -> tuple[dict[str, Any], str]:
        if not user.name:
            raise RequestRefused("Unable to retrieve privilege information for an unsecure connection.")
        return {"roles": [Role(user.role).name], "version": bodies.VERSION}, f"Roles: [{Role(user.role).name}]"

    async def _refuse_review_board(self, _task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        raise RequestRefused(
            "Attempt to access REVIEW_BOARD endpoint without enabling 'two.step.verification.enabled' config.",
            status=HTTPStatus.FORBIDDEN,
        )

    # ---- sampling

    async def _pause_sampling(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        self._pause = _Pause(is_paused=True, reason=self._describe_reason(task))
        return _build_message("Metric sampling paused.")

    async def _resume_sampling(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        self._pause = _Pause(is_paused=False, reason=self._describe_reason(task))
        return _build_message("Metric sampling resumed.")

    def _describe_reason(self, task: UserTask) -> str:
        date = self.dependencies.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        reason = task.parameters.get("reason", default="") or "No reason provided"
        return f"{reason} (Client: {task.client}, Date: {date})"

    # ---- shared

    async def _read_model(self, task: UserTask) -> ClusterModel:
        self._step(task, "WAITING_FOR_CLUSTER_MODEL", _WAITING)
        self._step(task, "AGGREGATING_METRICS", _AGGREGATING)
        description = await self.dependencies.describe()
        self._step(task, "GENERATING_CLUSTER_MODEL", "Generating the cluster model for the cluster.")
        self._model = await self.dependencies.run_blocking(lambda: build_model(description))
        return self._model

    def _step(self, task: UserTask, name: str, description: str) -> None:
        task.steps.append(Step(name=name, description=description, at_s=self.dependencies.clock.monotonic_s()))

    def _list_removed(self) -> list[int]:
        now_s = self._read_clock_s()
        return [broker for broker, at_s in self._removed.items() if now_s - at_s < _RECENTLY_REMOVED_S]

    def _read_clock_s(self) -> float:
        return self.dependencies.clock.now().timestamp()


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


def _check_request(request: RebalanceRequest, settings: AnalyzerSettings) -> None:
    """Refuse unknown and missing goals before the cluster is read."""
    goals = resolve_goals(request, settings)
    if isinstance(goals, Refusal):
        raise OperationFailed(write_cruise_control_error(goals))


def _build_options(parameters: Parameters, defaults: ExecutionOptions) -> ExecutionOptions:
    given: dict[str, Any] = {}
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


def _match_topics(model: ClusterModel, pattern: str) -> Flags:
    """[P]: the partitions whose topic matches as a whole; an empty pattern matches all."""
    if not pattern:
        return np.ones(model.partition_count, dtype=np.bool_)
    fullmatch = compile_pattern(pattern).fullmatch
    matches = np.array([fullmatch(topic) is not None for topic in model.topics], dtype=np.bool_)
    wanted: Flags = matches[model.topic_of] if len(matches) else np.zeros(model.partition_count, dtype=np.bool_)
    return wanted


def _build_answer(body: dict[str, Any], plain: str) -> Answer:
    return Answer(status=int(HTTPStatus.OK), body=msgspec.json.encode(body), text=plain)


def _build_message(message: str) -> tuple[dict[str, Any], str]:
    return {"message": message, "version": bodies.VERSION}, message
