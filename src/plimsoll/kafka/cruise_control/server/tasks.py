"""User tasks: each request is one, can be asked for again, and is remembered for a while (docs/design/kafka.md 7.1).

A request is the same as an earlier one if it carries that one's `User-Task-ID`, or the cookie of its session, and has
the same method, path and parameters. A restart of the server forgets all but the task of an unfinished execution.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.formatting import format_count
from plimsoll.core.values import Value
from plimsoll.kafka.cruise_control.server.bodies import VERSION
from plimsoll.kafka.cruise_control.server.endpoints import EndpointType
from plimsoll.kafka.cruise_control.server.errors import RequestRefused
from plimsoll.kafka.model.executions import ExecutionEnd

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kafka.cruise_control.server.endpoints import Endpoint
    from plimsoll.kafka.cruise_control.server.errors import OperationFailed
    from plimsoll.kafka.cruise_control.server.parameters import Parameters
    from plimsoll.kafka.model.executions import ExecutionOutcome

MAX_ACTIVE: Final = 5
SESSION_S: Final = 60.0
_MAX_SESSIONS: Final = 10_000
_DAY_S: Final = 86_400.0
_KEPT: Final = {
    EndpointType.KAFKA_ADMIN: 30,
    EndpointType.KAFKA_MONITOR: 20,
    EndpointType.CRUISE_CONTROL_ADMIN: 30,
    EndpointType.CRUISE_CONTROL_MONITOR: 20,
}
_KEPT_S: Final = {
    EndpointType.KAFKA_ADMIN: 7 * _DAY_S,
    EndpointType.KAFKA_MONITOR: _DAY_S,
    EndpointType.CRUISE_CONTROL_ADMIN: 7 * _DAY_S,
    EndpointType.CRUISE_CONTROL_MONITOR: _DAY_S,
}


EXECUTION_FAILURE: Final = "executionFailure"
"""The field of our own in the answer of an execution that failed: why."""
_CAUSES_NAMED: Final = 3


class TaskStatus(StrEnum):
    """The state of a user task."""

    ACTIVE = "Active"
    IN_EXECUTION = "InExecution"
    COMPLETED = "Completed"
    COMPLETED_WITH_ERROR = "CompletedWithError"


class Answer(Value):
    """The answer to a request: JSON and plain text of it."""

    status: int
    body: bytes
    text: str


def build_answer(body: dict[str, Any], plain: str) -> Answer:
    """The answer of success."""
    return Answer(status=int(HTTPStatus.OK), body=msgspec.json.encode(body), text=plain)


def read_reason(task: UserTask) -> str:
    """The reason that a client gave."""
    return task.parameters.get("reason", default="") or "No reason provided"


def describe_reason(reason: str, client: str, at: datetime) -> str:
    """A reason with its client and date, as Cruise Control writes it."""
    return f"{reason} (Client: {client}, Date: {at:%Y-%m-%dT%H:%M:%SZ})"


def build_error_answer(message: str, failure: OperationFailed | RequestRefused) -> Answer:
    """The answer of a failure."""
    body = {"version": VERSION, "errorMessage": message, "stackTrace": failure.message.partition("\n")[0]}
    return Answer(status=int(failure.status), body=msgspec.json.encode(body), text=message)


class Step(Value):
    """A step of an operation, with the time when it began."""

    name: str
    description: str
    at_s: float


@dataclass(slots=True, eq=False)
class UserTask:
    """A request, its progress and its answer."""

    id: str
    endpoint: Endpoint
    parameters: Parameters
    url: str
    client: str
    started_at_s: float
    """Unix time."""
    steps: list[Step] = field(default_factory=list)
    status: TaskStatus = TaskStatus.ACTIVE
    answer: Answer | None = None
    is_answered: asyncio.Event = field(default_factory=asyncio.Event)
    finished_at_s: float = 0.0

    def is_same_request(self, endpoint: Endpoint, parameters: Parameters) -> bool:
        return self.endpoint is endpoint and self.parameters.key == parameters.key

    def finish(self, answer: Answer, *, at_s: float, is_executing: bool) -> None:
        """The operation has its answer. If it executes, the task is finished later, by `conclude`."""
        self.answer = answer
        self.is_answered.set()
        if is_executing:
            self.status = TaskStatus.IN_EXECUTION
            return
        self.conclude(at_s=at_s, succeeded=answer.status == HTTPStatus.OK)

    def explain_end(self, outcome: ExecutionOutcome) -> None:
        """Add why movements were not completed to the answer, in a field that Cruise Control does not have."""
        if outcome.end is not ExecutionEnd.FAILED:
            return
        body = {"version": VERSION} if self.answer is None else msgspec.json.decode(self.answer.body)
        body[EXECUTION_FAILURE] = _describe_failure(outcome)
        text = "" if self.answer is None else self.answer.text
        self.answer = Answer(status=int(HTTPStatus.OK), body=msgspec.json.encode(body), text=text)

    def conclude(self, *, at_s: float, succeeded: bool, answer: Answer | None = None) -> None:
        """The execution has ended. `answer`: it never began, and this replaces the answer to its request."""
        self.answer = answer or self.answer
        self.status = TaskStatus.COMPLETED if succeeded else TaskStatus.COMPLETED_WITH_ERROR
        self.finished_at_s = at_s


def _describe_failure(outcome: ExecutionOutcome) -> str:
    count = format_count(len(outcome.not_completed), "movement was", "movements were")
    ends = [outcome.reason, *(movement.reason for movement in outcome.not_completed)]
    causes = list(dict.fromkeys(str(reason) for reason in ends if reason is not None))
    more = [f"{len(causes) - _CAUSES_NAMED} more causes"] if len(causes) > _CAUSES_NAMED else []
    return ": ".join([f"{count} not completed", *filter(None, ["; ".join([*causes[:_CAUSES_NAMED], *more])])])


@dataclass(slots=True)
class _Session:
    used_at_s: float
    tasks: dict[tuple[str, tuple[tuple[str, str], ...]], UserTask] = field(default_factory=dict)


class UserTasks:
    """All user tasks of the server."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy
        self._tasks: OrderedDict[str, UserTask] = OrderedDict()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def list_tasks(self) -> list[UserTask]:
        """Active tasks first, then finished ones, each in the order of their start."""
        self._forget()
        tasks = list(self._tasks.values())
        return sorted(tasks, key=lambda task: task.status not in {TaskStatus.ACTIVE, TaskStatus.IN_EXECUTION})

    def open_session(self, cookie: str | None) -> str:
        """The session of a cookie, or a new one."""
        now_s = self._clock.monotonic_s()
        while self._sessions and (
            len(self._sessions) > _MAX_SESSIONS or next(iter(self._sessions.values())).used_at_s < now_s - SESSION_S
        ):
            self._sessions.popitem(last=False)
        if cookie is None or cookie not in self._sessions:
            cookie = self._entropy.generate_token()
            self._sessions[cookie] = _Session(now_s)
        self._sessions[cookie].used_at_s = now_s
        self._sessions.move_to_end(cookie)
        return cookie

    def find(self, endpoint: Endpoint, parameters: Parameters, *, task_id: str | None, session: str) -> UserTask | None:
        """The task that a request continues; None: it is a new one. Raises `RequestRefused`."""
        if task_id is not None:
            task = self._tasks.get(task_id)
            if task is None or not task.is_same_request(endpoint, parameters):
                raise RequestRefused(
                    f"Unexpected header {task_id[:100]} (value: User-Task-ID) in the request.",
                    status=HTTPStatus.INTERNAL_SERVER_ERROR,
                    cause="java.lang.IllegalArgumentException",
                )
            return task
        return self._sessions[session].tasks.get((endpoint.name, parameters.key))

    def create(self, endpoint: Endpoint, parameters: Parameters, *, url: str, client: str, session: str) -> UserTask:
        """A new task. Raises `RequestRefused` if too many are active."""
        self._forget()
        active = sum(task.status is TaskStatus.ACTIVE for task in self._tasks.values())
        if active >= MAX_ACTIVE:
            raise RequestRefused(
                f"There are already {active} active user tasks, which has reached the servlet capacity.",
                status=HTTPStatus.INTERNAL_SERVER_ERROR,
                cause="java.lang.RuntimeException",
            )
        task = UserTask(
            id=self._entropy.generate_uid(),
            endpoint=endpoint,
            parameters=parameters,
            url=url,
            client=client,
            started_at_s=self._clock.now().timestamp(),
        )
        self._tasks[task.id] = task
        self._sessions[session].tasks[endpoint.name, parameters.key] = task
        return task

    def restore(
        self, task_id: str, endpoint: Endpoint, parameters: Parameters, *, url: str, client: str, started_at: datetime
    ) -> UserTask:
        """The task of an execution that an earlier process began: its client asks for it by its id."""
        started_at_s = started_at.timestamp()
        task = UserTask(task_id, endpoint, parameters, url=url, client=client, started_at_s=started_at_s)
        task.status = TaskStatus.IN_EXECUTION
        task.is_answered.set()
        self._tasks[task.id] = task
        return task

    def _forget(self) -> None:
        """Drop finished tasks that are too old or too many, by type."""
        now_s = self._clock.now().timestamp()
        for kind in EndpointType:
            finished = [
                task
                for task in self._tasks.values()
                if task.endpoint.type is kind and task.status not in {TaskStatus.ACTIVE, TaskStatus.IN_EXECUTION}
            ]
            too_many = finished[: max(0, len(finished) - _KEPT[kind])]
            too_old = [task for task in finished if task.finished_at_s < now_s - _KEPT_S[kind]]
            for task in {id(task): task for task in (*too_many, *too_old)}.values():
                del self._tasks[task.id]
