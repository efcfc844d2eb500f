"""The pages of a controller process, as ASGI: `/metrics` and a health page for everyone, debugging pages for some.

Debugging pages show names and reasons of the whole cluster, so a `DebugGuard` stands before each of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.routing import Route, Router

from plimsoll.core.durations import format_duration
from plimsoll.web.responses import PROMETHEUS_TEXT, PageResponse, build_text_response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from plimsoll.core.clock import Clock
    from plimsoll.kube.controller.controller import Controller
    from plimsoll.operator.debug_access import DebugGuard
    from plimsoll.operator.health import Health
    from plimsoll.operator.profiler import Profiler

METRICS: Final = "/metrics"
PROFILE: Final = "/debug/pprof/profile"
"""The path of Cluster Autoscaler's profile; `seconds` as there."""
_DEFAULT_PROFILE_S: Final = 30.0
_MAX_PROFILE_S: Final = 60

Exposition = Callable[[], bytes]
"""Metrics in Prometheus' text format."""
Page = Callable[["Request"], Awaitable[Response]]


class OperatorPages:
    """An ASGI application for GET and HEAD. `health` maps the path of the health page to its response."""

    def __init__(
        self,
        *,
        metrics: Sequence[Exposition],
        health: Mapping[str, Callable[[], Response]],
        debug: Mapping[str, Page] | None = None,
        guard: DebugGuard | None = None,
    ) -> None:
        self._metrics = metrics
        routes = [Route(METRICS, self._show_metrics)]
        routes += [Route(path, _without_request(respond)) for path, respond in health.items()]
        if debug:
            assert guard is not None
            routes += [Route(path, _guard_page(page, guard)) for path, page in debug.items()]
        self._router = Router(routes, redirect_slashes=False, default=build_text_response("no such page", 404))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in {"GET", "HEAD"}:
            await build_text_response("only GET", HTTPStatus.METHOD_NOT_ALLOWED)(scope, receive, send)
            return
        await self._router(scope, receive, send)

    async def _show_metrics(self, _request: Request) -> Response:
        return PageResponse(b"".join(expose() for expose in self._metrics), content_type=PROMETHEUS_TEXT)


def _without_request(respond: Callable[[], Response]) -> Page:
    async def serve_page(_request: Request) -> Response:
        return respond()

    return serve_page


def _guard_page(page: Page, guard: DebugGuard) -> Page:
    async def serve_guarded(request: Request) -> Response:
        refusal = await guard.find_refusal(request)
        return await page(request) if refusal is None else refusal

    return serve_guarded


def check_health(health: Health, clock: Clock, describe_role: Callable[[], str]) -> Callable[[], Response]:
    """A health page in Cluster Autoscaler's words, with the role of the process and what the loop does now."""

    def respond() -> Response:
        now_s = clock.monotonic_s()
        problem = health.find_problem(now_s)
        current = [line for line in (describe_role(), health.describe(now_s)) if line]
        if problem:
            return build_text_response("\n".join([f"Error: {problem}", *current]), HTTPStatus.INTERNAL_SERVER_ERROR)
        return build_text_response("\n".join(["OK", *current]))

    return respond


def show_work(controllers: Sequence[Controller[Any]], describe_role: Callable[[], str]) -> Callable[[], Response]:
    """A health page: the role of the process, and how long the longest reconcile has been under way."""

    def respond() -> Response:
        queues = [controller.status.queue for controller in controllers]
        longest_s = max((queue.longest_work_s for queue in queues if queue.working), default=None)
        work = "" if longest_s is None else f"a reconcile is under way ({format_duration(round(longest_s))})"
        return build_text_response("\n".join(line for line in ("ok", describe_role(), work) if line))

    return respond


class ProfilePage:
    """Takes one profile at a time: two would sample each other."""

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler
        self._is_profiling = False

    async def show(self, request: Request) -> Response:
        seconds = _parse_seconds(read_query(request).get("seconds", []))
        if seconds is None:
            problem = f"give the duration: {PROFILE}?seconds=30, at most {_MAX_PROFILE_S}"
            return build_text_response(problem, HTTPStatus.BAD_REQUEST)
        if self._is_profiling:
            return build_text_response("another profile is running", HTTPStatus.CONFLICT)
        self._is_profiling = True
        try:
            return PageResponse((await self._profiler.profile(seconds)).encode(errors="replace"))
        finally:
            self._is_profiling = False


def read_query(request: Request) -> dict[str, list[str]]:
    """The values of each parameter; parameters without a value are left out."""
    return parse_qs(request.scope["query_string"].decode("latin-1"))


def _parse_seconds(values: list[str]) -> float | None:
    """How long a profile takes; None: not a whole number of seconds within the limit."""
    if not values:
        return _DEFAULT_PROFILE_S
    text = values[0]
    is_number = len(values) == 1 and text.isascii() and text.isdecimal() and len(text) <= len(str(_MAX_PROFILE_S))
    return float(text) if is_number and 0 < int(text) <= _MAX_PROFILE_S else None
