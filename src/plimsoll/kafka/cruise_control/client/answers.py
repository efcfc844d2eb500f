"""Reads what a Cruise Control answers (docs/design/kafka.md 7): each answer becomes a value, also an odd one.

A server may be a proxy that shows its own page, a Cruise Control of another cluster, or cut off in the middle of a
sentence. Whatever is not understood is a `RebalanceRefused` that says what came instead.
"""

from __future__ import annotations

import math
import re
import uuid
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec

from plimsoll.kafka.model.rebalances import (
    Computing,
    ExecutorSubstate,
    NoSuchTask,
    NotEnoughWindows,
    Proposed,
    RebalanceRefused,
    RebalanceTask,
    RebalanceTaskStatus,
    ServerBusy,
    TransientReason,
)
from plimsoll.objects.codec.decode_problems import describe_problem
from plimsoll.web.client import FailureKind, RequestFailed, Response

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kafka.model.rebalances import RebalanceAnswer, RebalanceTaskAnswer

T = TypeVar("T")

TASK_HEADER: Final = "user-task-id"
UNCONNECTED: Final = "CruiseControlRetriableConnectionException"
"""Strimzi's name for a connection that was refused, or for which there is no route."""
REST_ERROR: Final = "CruiseControlRestException"
"""Strimzi's name for an answer that is not the one that was asked for."""
_LONGEST_CAUSE: Final = 500
_TIMEOUT: Final = "TimeoutException"
_TLS_ERROR: Final = "SSLException"
_NOT_ENOUGH_WINDOWS: Final = "NotEnoughValidWindowsException"
_SERVLET_CAPACITY: Final = "reached the servlet capacity"
_TRANSIENT_TEXTS: Final = (
    "Cannot start a new execution while there is an ongoing execution",
    _SERVLET_CAPACITY,
    "BrokerCapacityResolutionException",
    "NullPointerException",
    "org.apache.kafka.common.errors.TimeoutException",
    "RecordUnusable",
)
"""What a later attempt may not meet: another execution, too many requests, a capacity that is not loaded yet, brokers
that do not answer, the record of our engine out of reach."""
_TRANSIENT_STATUSES: Final = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
"""Statuses of proxies whose server is away."""
_LONGEST_MESSAGE: Final = 1_000
_LONGEST_TIME: Final = 20
_EXCEPTION: Final = re.compile(r"(?:^|[\s'])(?:[a-z_][\w]*\.)+([A-Z]\w*(?:Exception|Error))\b")
_TITLE: Final = re.compile(r"<title>\s*([^<]{1,200}?)\s*</title>", re.IGNORECASE)
_UNUSED_KEYS: Final = frozenset({"proposals"})
"""Parts of an answer that are not kept: the proposals of a large cluster are most of it, and nothing reads them."""


# ---- rebalance, add_broker, remove_broker, remove_disks


def read_rebalance_answer(answer: Response | RequestFailed, *, brokers: Iterable[int] = ()) -> RebalanceAnswer:
    """The answer to a request for a rebalance. `brokers` must be known to the cluster that the answer is about."""
    if isinstance(answer, RequestFailed):
        return refuse_failure(answer)
    if answer.status == HTTPStatus.OK:
        return _read_proposal(answer, frozenset(brokers))
    if answer.status == HTTPStatus.ACCEPTED:
        content = _read_object(answer)
        if isinstance(content, RebalanceRefused):
            return content
        session = _read_session(answer)
        if isinstance(session, RebalanceRefused) or "progress" in content:
            return session if isinstance(session, RebalanceRefused) else Computing(session_id=session)
        return _refuse("answers 202 without progress", answer)
    if _NOT_ENOUGH_WINDOWS in _read_error_text(answer):
        return NotEnoughWindows()
    return refuse_answer(answer)


def _read_proposal(answer: Response, brokers: frozenset[int]) -> Proposed | RebalanceRefused:
    body = _read_object(answer)
    if isinstance(body, RebalanceRefused):
        return body
    if problem := _find_problem(body, brokers):
        return _refuse(problem, answer)
    session = _read_session(answer)
    return session if isinstance(session, RebalanceRefused) else Proposed(session_id=session, body=body)


def _find_problem(body: dict[str, Any], brokers: frozenset[int]) -> str:
    """What is wrong with a proposal; empty: nothing."""
    if not isinstance(body.get("summary"), dict):
        return "answers without a summary of the proposal"
    load = body.get("loadAfterOptimization")
    if load is None:
        return ""
    listed = load.get("brokers") if isinstance(load, dict) else None
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        return "answers with a loadAfterOptimization that lists no brokers"
    known = {entry.get("Broker") for entry in listed if isinstance(entry.get("Broker"), int)}
    missing = sorted(brokers - known)
    if missing:
        return f"answers about another cluster: it does not know broker {missing[0]}"
    return ""


def _read_session(answer: Response) -> str | RebalanceRefused:
    session = answer.headers.get(TASK_HEADER, "")
    return session if is_session_id(session) else _refuse("answers without a User-Task-ID", answer)


def is_session_id(text: str) -> bool:
    """Whether it can be the id of a user task. Others are never sent: Cruise Control refuses the whole request."""
    try:
        return len(text) == len(str(uuid.UUID(text)))
    except ValueError:
        return False


# ---- user_tasks


def read_task_answer(answer: Response | RequestFailed, session_id: str) -> RebalanceTaskAnswer:
    """The answer to a question about one user task."""
    tasks = _read_tasks(answer)
    if not isinstance(tasks, list):
        return tasks
    found = [task for task in tasks if task.get("UserTaskId") == session_id]
    if found:
        assert isinstance(answer, Response)
        return _read_task(found[0], answer)
    return NoSuchTask() if not tasks else _refuse_tasks(answer)


def find_task(answer: Response | RequestFailed, endpoint: str, query: list[tuple[str, str]]) -> RebalanceTaskAnswer:
    """The newest user task of exactly this request, in the answer to a question about all of them."""
    tasks = _read_tasks(answer)
    if not isinstance(tasks, list):
        return tasks
    found = [task for task in tasks if _is_request(task, endpoint, query)]
    if not found:
        return NoSuchTask()
    assert isinstance(answer, Response)
    return _read_task(max(found, key=_read_start_ms), answer)


def _read_tasks(answer: Response | RequestFailed) -> list[dict[str, Any]] | ServerBusy | RebalanceRefused:
    if isinstance(answer, RequestFailed):
        return refuse_failure(answer)
    if answer.status != HTTPStatus.OK:
        return ServerBusy() if _SERVLET_CAPACITY in _read_error_text(answer) else refuse_answer(answer)
    content = _read_object(answer)
    if isinstance(content, RebalanceRefused):
        return content
    tasks = content.get("userTasks")
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        return _refuse("answers without a list of user tasks", answer)
    return tasks


def _refuse_tasks(answer: Response | RequestFailed) -> RebalanceRefused:
    assert isinstance(answer, Response)
    return _refuse("answers about other user tasks", answer, is_transient=True)


def _is_request(task: dict[str, Any], endpoint: str, query: list[tuple[str, str]]) -> bool:
    """Whether a task was created by a POST with these parameters, in any order.

    An engine that was restarted goes on with its execution and does not know its request any more: that may be it.
    """
    if not isinstance(task.get("UserTaskId"), str):
        return False
    if not task.get("RequestURL"):
        return True
    method, _, url = str(task.get("RequestURL", "")).partition(" ")
    parts = urlsplit(url)
    is_endpoint = method == "POST" and parts.path.rpartition("/")[2] == endpoint
    return is_endpoint and sorted(parse_qsl(parts.query, keep_blank_values=True)) == sorted(query)


def _read_start_ms(task: dict[str, Any]) -> int:
    """When a task started; 0: unknown."""
    text = str(task.get("StartMs", ""))
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_TIME else 0


def _read_task(task: dict[str, Any], answer: Response) -> RebalanceTask | RebalanceRefused:
    status = task.get("Status")
    if status not in set(RebalanceTaskStatus):
        return _refuse(f"answers with the unknown status {str(status)[:100]!r} of a user task", answer)
    original = task.get("originalResponse")
    decoded = _decode_object(original.encode(errors="replace")) if isinstance(original, str) else None
    body = decoded if isinstance(decoded, dict) else {}
    has_failed = status == RebalanceTaskStatus.COMPLETED_WITH_ERROR
    return RebalanceTask(
        id=str(task["UserTaskId"]),
        status=RebalanceTaskStatus(status),
        body=None if _find_problem(body, frozenset()) else body,
        failure=_read_failure(body.get("errorMessage")) if has_failed else None,
        cause=_read_cause(body.get("executionFailure")) if has_failed else "",
    )


def _read_cause(text: object) -> str:
    """Why movements of an execution were not completed; only our engine says so."""
    return text.strip()[:_LONGEST_CAUSE] if isinstance(text, str) else ""


def _read_failure(text: object) -> NotEnoughWindows | RebalanceRefused | None:
    """Why a task failed; None: it does not say."""
    if not isinstance(text, str) or not text.strip():
        return None
    return NotEnoughWindows() if _NOT_ENOUGH_WINDOWS in text else _refuse_text(text.strip())


# ---- stop_proposal_execution and state


def _read_success(answer: Response | RequestFailed) -> tuple[dict[str, Any], Response] | RebalanceRefused:
    """The object of an answer with status 200, and the answer."""
    if isinstance(answer, RequestFailed):
        return refuse_failure(answer)
    if answer.status != HTTPStatus.OK:
        return refuse_answer(answer)
    content = _read_object(answer)
    if isinstance(content, RebalanceRefused):
        return content
    return content, answer


def read_stop_answer(answer: Response | RequestFailed) -> RebalanceRefused | None:
    """None: the stop was accepted."""
    found = _read_success(answer)
    if isinstance(found, RebalanceRefused):
        return found
    content, response = found
    return None if isinstance(content.get("message"), str) else _refuse("answers to a stop without a message", response)


def read_state_answer(answer: Response | RequestFailed) -> ExecutorSubstate | RebalanceRefused:
    """The state of the executor."""
    found = _read_success(answer)
    if isinstance(found, RebalanceRefused):
        return found
    content, response = found
    executor = content.get("ExecutorState")
    if not isinstance(executor, dict) or not isinstance(executor.get("state"), str):
        return _refuse("answers without the state of the executor", response)
    return ExecutorSubstate(
        state=executor["state"][:100],
        finished_data_mb=_read_amount(executor.get("finishedDataMovement")),
        total_data_mb=_read_amount(executor.get("totalDataToMove")),
        triggered_task_id=_read_text(executor.get("triggeredUserTaskId")),
        triggered_task_reason=_read_text(executor.get("triggeredTaskReason")),
        body=executor,
    )


def read_load_answer(answer: Response | RequestFailed) -> frozenset[int] | RebalanceRefused:
    """The brokers whose capacity Cruise Control knows."""
    found = _read_success(answer)
    if isinstance(found, RebalanceRefused):
        return found
    content, response = found
    listed = content.get("brokers")
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        return _refuse("answers without the load of brokers", response)
    return frozenset(
        entry["Broker"]
        for entry in listed
        if isinstance(entry.get("Broker"), int) and (_read_amount(entry.get("DiskCapacityMB")) or 0.0) > 0
    )


# ---- refusals


def refuse_failure(failure: RequestFailed) -> RebalanceRefused:
    """There is no answer. All of these may pass: a server starts, a certificate is renewed, a network recovers."""
    reasons = {
        FailureKind.UNCONNECTED: UNCONNECTED,
        FailureKind.TIMED_OUT: _TIMEOUT,
        FailureKind.UNTRUSTED: _TLS_ERROR,
    }
    reason = reasons.get(failure.kind, REST_ERROR)
    return RebalanceRefused(reason=reason, message=failure.problem[:_LONGEST_MESSAGE], is_transient=True)


def refuse_answer(answer: Response) -> RebalanceRefused:
    """An answer that is an error, or not of Cruise Control."""
    is_transient = answer.status in _TRANSIENT_STATUSES or answer.status == HTTPStatus.ACCEPTED
    prefix = f"Cruise Control answers {answer.status}: "
    refused = _refuse_text(_read_error_text(answer), prefix=prefix, is_transient=is_transient)
    if answer.status == HTTPStatus.UNAUTHORIZED:
        # The password is rotated, and one of the two sides has the former one. The Secret is read with each use.
        return RebalanceRefused(reason=TransientReason.ACCESS_MISSING, message=refused.message, is_transient=True)
    return refused


def _refuse_text(text: str, *, prefix: str = "", is_transient: bool = False) -> RebalanceRefused:
    """A refusal by the message of its error, which names the class of the error."""
    classes = _EXCEPTION.findall(text.partition("\n")[0])
    return RebalanceRefused(
        reason=classes[-1] if classes else REST_ERROR,
        message=f"{prefix}{text or 'no text'}"[:_LONGEST_MESSAGE],
        is_transient=is_transient or any(known in text for known in _TRANSIENT_TEXTS),
    )


def _refuse(problem: str, answer: Response, *, is_transient: bool = False) -> RebalanceRefused:
    message = f"Cruise Control {problem}: {answer.excerpt}"
    return RebalanceRefused(reason=REST_ERROR, message=message[:_LONGEST_MESSAGE], is_transient=is_transient)


def _read_error_text(answer: Response) -> str:
    """The message of an error: of its JSON, of the title of a page, or the beginning of its text."""
    content = _decode_object(answer.body)
    if isinstance(content, dict) and isinstance(message := content.get("errorMessage"), str):
        return message.strip()[: 4 * _LONGEST_MESSAGE]
    if "html" in answer.headers.get("content-type", ""):
        title = _TITLE.search(answer.body[:4096].decode(errors="replace"))
        return f"a page in HTML: {title[1] if title else answer.excerpt}"
    return answer.body[: 4 * _LONGEST_MESSAGE].decode(errors="replace").strip()


# ---- JSON


def _read_object(answer: Response) -> dict[str, Any] | RebalanceRefused:
    content = _decode_object(answer.body)
    if isinstance(content, dict):
        return content
    # The beginning came, so the server is there: what is cut off now may be whole the next time.
    return _refuse(f"answers {answer.status} with something that is not JSON ({content})", answer, is_transient=True)


def _decode_object(raw: bytes) -> dict[str, Any] | str:
    """The JSON object, without the parts that are not used; or why it cannot be read."""
    try:
        parts = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        return {key: msgspec.json.decode(part) for key, part in parts.items() if key not in _UNUSED_KEYS}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return describe_problem(error)


def _read_amount(number: object) -> float | None:
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return None
    return float(number) if math.isfinite(number) and 0 <= number <= 1e15 else None


def _read_text(text: object) -> str:
    return text[:_LONGEST_MESSAGE] if isinstance(text, str) else ""
