"""The work behind the endpoints: dispatch, reads, and errors as answers.

Every request reads the cluster anew, so the first answer needs no sampling windows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import structlog

from plimsoll.core.errors import PlimsollError, Unreachable
from plimsoll.kafka.cruise_control.server import bodies, state_bodies, text
from plimsoll.kafka.cruise_control.server.endpoints import Role
from plimsoll.kafka.cruise_control.server.errors import (
    OperationFailed,
    RequestRefused,
    build_failure,
)
from plimsoll.kafka.cruise_control.server.rebalances import MODES, Rebalances
from plimsoll.kafka.cruise_control.server.tasks import build_answer, build_error_answer
from plimsoll.kafka.model.proposals import Refusal
from plimsoll.kafka.model.requests import RebalanceRequest
from plimsoll.kafka.planning.goal_list import resolve_goals
from plimsoll.objects.schema.regular_expressions import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.kafka.cruise_control.server.authentication import User
    from plimsoll.kafka.cruise_control.server.context import ServerContext
    from plimsoll.kafka.cruise_control.server.endpoints import Endpoint
    from plimsoll.kafka.cruise_control.server.parameters import Parameters
    from plimsoll.kafka.cruise_control.server.tasks import UserTask, UserTasks
    from plimsoll.kafka.model.cluster import ClusterModel, Flags

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_SUBSTATES: Final = ("ANALYZER", "MONITOR", "EXECUTOR", "ANOMALY_DETECTOR")
_DEFAULT_ENTRIES: Final = 2_000
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


@dataclass(slots=True)
class _Pause:
    is_paused: bool = False
    reason: str = "N/A"


@dataclass(slots=True)
class Operations:
    """Carries out the requests to the server, and gives each user task its answer."""

    context: ServerContext
    tasks: UserTasks
    rebalances: Rebalances
    _pause: _Pause = field(default_factory=_Pause)

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
        except PlimsollError as error:
            failed = build_failure(error)
            self._finish_with_error(task, f"Error processing {where} due to: '{failed.message}'.", failed)

    def fail(self, task: UserTask) -> None:
        """End a task after an error of our own."""
        failure = OperationFailed("internal error; the server's log has the details")
        where = f"{task.endpoint.method} request '/{task.endpoint.path}'"
        self._finish_with_error(task, f"Error processing {where} due to: '{failure.message}'.", failure)

    def _finish_with_error(self, task: UserTask, message: str, failure: OperationFailed | RequestRefused) -> None:
        self.rebalances.release(task)
        task.finish(build_error_answer(message, failure), at_s=self.context.read_clock_s(), is_executing=False)
        log.warning("cruise_control.failed", task=task.id, endpoint=task.endpoint.name, problem=failure.message)

    async def _handle(self, task: UserTask, user: User) -> None:
        self.context.step(task, "PENDING", "Operation enqueued, waiting to be executed.")
        name = task.endpoint.name
        if name in MODES:
            await self.rebalances.plan(task)
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
        task.finish(build_answer(body, plain), at_s=self.context.read_clock_s(), is_executing=False)

    async def _stop_execution(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        foreign = task.parameters.get("stop_external_agent", default=False)
        self.context.spawn(self.rebalances.stop(cancel_foreign=foreign))
        return _build_message("Proposal execution stopped.")

    # ---- reads

    async def _describe_load(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        body = {**bodies.build_load(await self.context.read_model(task)), "version": bodies.VERSION}
        return body, text.render_load(body)

    async def _describe_partition_load(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        parameters = task.parameters
        resource = bodies.RESOURCES[parameters.get("resource", default="disk").lower()]
        model = await self.context.read_model(task)
        wanted = _match_topics(model, parameters.get("topic", default=""))
        brokers: tuple[int, ...] = parameters.get("brokerid", default=())
        if brokers:
            hosted = np.isin(model.broker_ids[model.broker_of], brokers)
            wanted &= np.bincount(model.partition_of[hosted], minlength=model.partition_count) > 0
        entries = parameters.get("entries", default=_DEFAULT_ENTRIES)
        body = bodies.build_partition_load(model, resource=resource, entries=entries, wanted=wanted)
        return body, text.render_partition_load(body)

    async def _describe_cluster_state(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        model = await self.context.read_model(task)
        wanted = _match_topics(model, task.parameters.get("topic", default=""))
        verbose = task.parameters.get("verbose", default=False)
        body = bodies.build_cluster_state(model, wanted=wanted, verbose=verbose)
        return body, text.render_cluster_state(body)

    async def _describe_state(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        names = [name.upper() for name in task.parameters.get_names("substates")] or list(_SUBSTATES)
        verbose = task.parameters.get("verbose", default=False)
        body: dict[str, Any] = {}
        model = self.context.model
        if {"MONITOR", "ANALYZER"} & set(names):
            try:
                model = await self.context.read_model(task)
            except Unreachable as error:
                log.warning("cruise_control.brokers_unreachable", problem=str(error))
                model = None
        if "MONITOR" in names:
            body["MonitorState"] = state_bodies.build_monitor_state(
                model, pause_reason=self._pause.reason, is_paused=self._pause.is_paused, verbose=verbose
            )
        if "EXECUTOR" in names:
            body["ExecutorState"] = state_bodies.build_executor_state(
                self.rebalances.get_progress(),
                triggered_by=self.rebalances.triggered_by,
                recently_removed=await self.rebalances.list_removed(),
                verbose=verbose,
            )
        if "ANALYZER" in names:
            goals = resolve_goals(RebalanceRequest(), self.context.dependencies.settings)
            ready = () if model is None or isinstance(goals, Refusal) else goals
            body["AnalyzerState"] = state_bodies.build_analyzer_state(
                ready, is_ready=model is not None, verbose=verbose
            )
        if "ANOMALY_DETECTOR" in names:
            body["AnomalyDetectorState"] = state_bodies.build_anomaly_state(self.rebalances.score)
        body["version"] = bodies.VERSION
        return body, text.render_state(body)

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
        self._pause = _Pause(is_paused=True, reason=self.context.describe_reason(task))
        return _build_message("Metric sampling paused.")

    async def _resume_sampling(self, task: UserTask, _user: User) -> tuple[dict[str, Any], str]:
        self._pause = _Pause(is_paused=False, reason=self.context.describe_reason(task))
        return _build_message("Metric sampling resumed.")


def _match_topics(model: ClusterModel, pattern: str) -> Flags:
    """[P]: the partitions whose topic matches as a whole; an empty pattern matches all."""
    if not pattern:
        return np.ones(model.partition_count, dtype=np.bool_)
    fullmatch = compile_pattern(pattern).fullmatch
    matches = np.array([fullmatch(topic) is not None for topic in model.topics], dtype=np.bool_)
    wanted: Flags = matches[model.topic_of] if len(matches) else np.zeros(model.partition_count, dtype=np.bool_)
    return wanted


def _build_message(message: str) -> tuple[dict[str, Any], str]:
    return {"message": message, "version": bodies.VERSION}, message
