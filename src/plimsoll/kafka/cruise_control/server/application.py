"""The server as an ASGI application: identify, find the endpoint, read parameters, find or create the task, answer.

A request waits for its task, at most `max_block_time_s`. Then it is answered with status 202 and the progress, and the
client asks again with the task's id or its session's cookie.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
import structlog
from starlette.requests import Request

from plimsoll.kafka.cruise_control.server import state_bodies, text
from plimsoll.kafka.cruise_control.server.authentication import Authentication, Denied, User, authorize
from plimsoll.kafka.cruise_control.server.bodies import VERSION
from plimsoll.kafka.cruise_control.server.context import Dependencies, ServerContext
from plimsoll.kafka.cruise_control.server.endpoints import ENDPOINTS, NAMES, Endpoint
from plimsoll.kafka.cruise_control.server.errors import RequestRefused
from plimsoll.kafka.cruise_control.server.operations import Operations, check_parameters
from plimsoll.kafka.cruise_control.server.parameters import parse_parameters, wants_json
from plimsoll.kafka.cruise_control.server.rebalances import Rebalances
from plimsoll.kafka.cruise_control.server.tasks import UserTask, UserTasks
from plimsoll.web.responses import PROMETHEUS_TEXT, PageResponse

if TYPE_CHECKING:
    from types import TracebackType

    from starlette.types import ASGIApp, Receive, Scope, Send

    from plimsoll.core.entropy import Entropy
    from plimsoll.kafka.executor.record import RecordedPlan
    from plimsoll.kafka.model.settings import AnalyzerSettings

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

BASE_PATH: Final = "/kafkacruisecontrol/"
HEALTH_PATH: Final = "/healthz"
METRICS_PATH: Final = "/metrics"
MAX_BLOCK_TIME_S: Final = 10.0
CRUISE_CONTROL_VERSION: Final = "2.5.147"
"""The version whose API this is. Clients compare it as a dotted number."""
_RESTORED: Final = "The execution of this task began before the server was started, which no longer has its answer."
_COOKIE: Final = "JSESSIONID"
_TASK_HEADER: Final = "user-task-id"
_JSON: Final = "application/json;charset=utf-8"
_TEXT: Final = "text/plain;charset=utf-8"


class CruiseControlServer:
    """An ASGI application and an async context manager: within it, requests are worked on."""

    def __init__(
        self,
        dependencies: Dependencies,
        *,
        entropy: Entropy,
        authentication: Authentication | None = None,
        max_block_time_s: float = MAX_BLOCK_TIME_S,
    ) -> None:
        self._clock = dependencies.clock
        self._metrics = dependencies.metrics
        self._authentication = authentication or Authentication()
        self._max_block_time_s = max_block_time_s
        self._tasks = UserTasks(dependencies.clock, entropy)
        self._work: set[asyncio.Task[Any]] = set()
        self._context = ServerContext(dependencies, self._spawn)
        self._rebalances = Rebalances(self._context, self._tasks)
        self._operations = Operations(self._context, self._tasks, self._rebalances)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all work. What is under way at the brokers goes on there."""
        work = tuple(self._work)
        for task in work:
            task.cancel()
        if work:
            await asyncio.wait(work)

    def resume_execution(self, unfinished: RecordedPlan | None) -> None:
        """Go on with an execution that an earlier process has not finished, while requests are served.

        `unfinished`: its plan, where it is known. Then the first request finds its task.
        """
        task = None if unfinished is None else self._rebalances.restore(unfinished)
        self._spawn(self._rebalances.resume(task))

    def change_settings(self, settings: AnalyzerSettings) -> None:
        """Use other goals and limits from the next request on."""
        self._context.dependencies = replace(self._context.dependencies, settings=settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(Request(scope, receive), self._authentication)
        await response(scope, receive, send)

    def guard(self, authentication: Authentication) -> ASGIApp:
        """The same server for clients that must log in."""

        async def respond(scope: Scope, receive: Receive, send: Send) -> None:
            response = await self._respond(Request(scope, receive), authentication)
            await response(scope, receive, send)

        return respond

    async def _respond(self, request: Request, authentication: Authentication) -> PageResponse:
        if request.scope["path"] == HEALTH_PATH and request.method in {"GET", "HEAD"}:
            return PageResponse(b"ok\n")
        if request.scope["path"] == METRICS_PATH and request.method in {"GET", "HEAD"} and self._metrics is not None:
            return PageResponse(self._metrics.expose(), content_type=PROMETHEUS_TEXT)
        user = authentication.identify(request.headers.get("authorization"))
        if isinstance(user, Denied):
            return build_denial(user)
        if request.method not in NAMES:
            return PageResponse(b"", HTTPStatus.METHOD_NOT_ALLOWED, headers={"allow": ", ".join(NAMES)})
        session = self._tasks.open_session(_read_cookie(request))
        is_json = wants_json(request.scope["query_string"])
        try:
            endpoint = _find_endpoint(request)
            if (denied := authorize(user, endpoint.role)) is not None:
                return build_denial(denied)
            parameters = parse_parameters(endpoint, request.scope["query_string"])
            check_parameters(endpoint, parameters)
            task = self._tasks.find(endpoint, parameters, task_id=_read_task_id(request), session=session)
            if task is None:
                url = _describe_url(request)
                client = request.client.host if request.client is not None else "unknown"
                task = self._tasks.create(endpoint, parameters, url=url, client=client, session=session)
                self._spawn(self._run_task(task, user))
        except RequestRefused as refusal:
            return _build_refusal(refusal, request, session=session, is_json=is_json)
        return await self._answer_from(task, session=session, is_json=is_json)

    async def _run_task(self, task: UserTask, user: User) -> None:
        try:
            await self._operations.answer(task, user)
        except Exception:  # the boundary of a request: a task must end, or its client polls for ever
            log.exception("cruise_control.internal_error", task=task.id, endpoint=task.endpoint.name)
            self._operations.fail(task)

    async def _answer_from(self, task: UserTask, *, session: str, is_json: bool) -> PageResponse:
        headers = _build_headers(session) | {"user-task-id": task.id}
        waiting = asyncio.ensure_future(task.is_answered.wait())
        sleeping = asyncio.ensure_future(self._clock.sleep(self._max_block_time_s))
        try:
            await asyncio.wait((waiting, sleeping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            sleeping.cancel()
        if task.answer is not None:
            body = task.answer.body if is_json else task.answer.text.encode()
            return _build_response(body, task.answer.status, headers=headers, is_json=is_json)
        if task.is_answered.is_set():
            body = msgspec.json.encode({"message": _RESTORED, "version": VERSION}) if is_json else _RESTORED.encode()
            return _build_response(body, HTTPStatus.OK, headers=headers, is_json=is_json)
        progress = state_bodies.build_progress(task, now_s=self._clock.monotonic_s())
        body = msgspec.json.encode(progress) if is_json else text.render_progress(progress).encode()
        return _build_response(body, HTTPStatus.ACCEPTED, headers=headers, is_json=is_json)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)


def _find_endpoint(request: Request) -> Endpoint:
    path = request.scope["path"]
    name = path.removeprefix(BASE_PATH).strip("/").lower() if path.startswith(BASE_PATH) else ""
    endpoint = ENDPOINTS.get((request.method, name))
    if endpoint is None:
        shown = name[:100] if path.startswith(BASE_PATH) else path[:100].lstrip("/")
        names = ", ".join(NAMES[request.method])
        raise RequestRefused(
            f"Unrecognized endpoint in request '/{shown}'\nSupported {request.method} endpoints: [{names}]",
            status=HTTPStatus.NOT_FOUND,
            cause="",
        )
    return endpoint


def _read_cookie(request: Request) -> str | None:
    try:
        cookie = SimpleCookie(request.headers.get("cookie", "")[:4096]).get(_COOKIE)
    except CookieError:
        return None
    return cookie.value if cookie is not None else None


def _read_task_id(request: Request) -> str | None:
    given = request.headers.get(_TASK_HEADER)
    if given is None:
        return None
    try:
        return str(uuid.UUID(given))
    except ValueError:
        raise RequestRefused(
            f"Invalid UUID string: {given[:100]}", cause="java.lang.IllegalArgumentException"
        ) from None


def _describe_url(request: Request) -> str:
    query = request.scope["query_string"].decode("ascii", errors="replace")
    return f"{request.method} {request.scope['path']}" + (f"?{query}" if query else "")


def _build_headers(session: str) -> dict[str, str]:
    return {
        "cruise-control-version": CRUISE_CONTROL_VERSION,
        "cruise-control-commit_id": "plimsoll",
        "set-cookie": f"{_COOKIE}={session};Path=/;HttpOnly",
        "expires": "Thu, 01 Jan 1970 00:00:00 GMT",
    }


def _build_response(body: bytes, status: int, *, headers: dict[str, str], is_json: bool) -> PageResponse:
    return PageResponse(body, status, content_type=_JSON if is_json else _TEXT, headers=headers)


def _build_refusal(refusal: RequestRefused, request: Request, *, session: str, is_json: bool) -> PageResponse:
    message = refusal.message
    if refusal.status is HTTPStatus.INTERNAL_SERVER_ERROR:
        name = request.scope["path"].removeprefix(BASE_PATH).strip("/").lower()
        message = f"Error processing {request.method} request '/{name}' due to: '{message}'."
    trace = f"{refusal.cause}: {refusal.message}" if refusal.cause else ""
    body = msgspec.json.encode({"version": VERSION, "errorMessage": message, "stackTrace": trace})
    headers = _build_headers(session)
    return _build_response(body if is_json else message.encode(), refusal.status, headers=headers, is_json=is_json)


def build_denial(denied: Denied) -> PageResponse:
    """JSON, where Cruise Control answers with a page in HTML."""
    headers = {}
    if denied.status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = 'basic realm="DefaultLoginService"'
    body = msgspec.json.encode({"version": VERSION, "errorMessage": denied.message, "stackTrace": ""})
    return PageResponse(body, denied.status, content_type=_JSON, headers=headers)
