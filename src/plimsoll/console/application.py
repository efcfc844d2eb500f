"""The console as an ASGI application: static pages, JSON routes, and the stream of changes."""

from __future__ import annotations

import gzip
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.responses import StreamingResponse
from starlette.routing import Route, Router

from plimsoll.console.access.guard import SESSION_PATH, ConsoleGuard, read_cookie
from plimsoll.console.static_files import StaticFiles
from plimsoll.console.views.parameters import BadParameter
from plimsoll.web.bodies import BodyRefused, read_body
from plimsoll.web.guards import HostGuard, HostNames
from plimsoll.web.responses import JSON, PageResponse, build_json_response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from plimsoll.console.access.one_time_codes import Sessions
    from plimsoll.console.cluster_map.feed import ChangeFeed
    from plimsoll.operator.pages import Page
    from plimsoll.web.guards import HostRefusal

COOKIE: Final = "plimsoll-console"
_MOST_CODE_BYTES: Final = 1_000
_COMPRESSED_FROM: Final = 1_024


def build_application(
    routes: Mapping[str, Any], feed: ChangeFeed, sessions: Sessions, *, token: str = "", port: int = 0
) -> ASGIApp:
    """The whole console behind its guards. `routes`: pages or applications by path.

    The name of the cookie has the port: the cookies of a host are sent to all its ports.
    """
    cookie = f"{COOKIE}-{port}" if port else COOKIE
    doors = _Doors(sessions, cookie)
    listed = [
        Route(SESSION_PATH, doors.open_session, methods=["POST"]),
        Route(SESSION_PATH, doors.end_session, methods=["DELETE"]),
        Route("/api/map", _build_map_page(feed)),
        Route("/api/changes", _build_change_stream(feed)),
        *(Route(path, page) for path, page in routes.items()),
    ]
    router = Router(listed, redirect_slashes=False, default=StaticFiles())
    handled = ExceptionMiddleware(router, handlers={BadParameter: _refuse_parameter})
    guarded = ConsoleGuard(handled, sessions=sessions, cookie=cookie, token=token)
    return HostGuard(guarded, names=HostNames(scheme="http"), refuse=_refuse_host)


class _Doors:
    """Exchanges a one-time code for a cookie."""

    def __init__(self, sessions: Sessions, cookie: str) -> None:
        self._sessions = sessions
        self._cookie = cookie

    async def open_session(self, request: Request) -> Response:
        body = await read_body(request, max_bytes=_MOST_CODE_BYTES)
        if isinstance(body, BodyRefused):
            return build_json_response({"error": "the code is too long"}, body.status)
        session = self._sessions.exchange(_read_code(body))
        if session is None:
            problem = "the code is unknown, was used already, or is too old"
            return build_json_response({"error": problem}, HTTPStatus.FORBIDDEN)
        attributes = "HttpOnly; SameSite=Strict; Path=/api"
        return build_json_response({}, headers={"set-cookie": f"{self._cookie}={session}; {attributes}"})

    async def end_session(self, request: Request) -> Response:
        self._sessions.end(read_cookie(request.headers, self._cookie))
        return build_json_response({})


def _read_code(body: bytes) -> str:
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    code = value.get("code") if isinstance(value, dict) else None
    return code if isinstance(code, str) else ""


def _build_map_page(feed: ChangeFeed) -> Page:
    async def show_map(request: Request) -> Response:
        return build_compressed_response(await feed.read_snapshot(), request)

    return show_map


def _build_change_stream(feed: ChangeFeed) -> Page:
    async def stream_changes(_request: Request) -> Response:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(feed.subscribe(), media_type="text/event-stream", headers=headers)

    return stream_changes


def build_compressed_response(body: bytes, request: Request) -> Response:
    """JSON, compressed if it is large and the client takes it."""
    takes_gzip = "gzip" in request.headers.get("accept-encoding", "")
    if len(body) < _COMPRESSED_FROM or not takes_gzip:
        return PageResponse(body, content_type=JSON)
    packed = gzip.compress(body, compresslevel=1, mtime=0)
    headers = {"content-encoding": "gzip", "vary": "accept-encoding"}
    return PageResponse(packed, content_type=JSON, headers=headers)


async def _refuse_parameter(_request: Request, error: Exception) -> Response:
    return build_json_response({"error": str(error)}, HTTPStatus.BAD_REQUEST)


def _refuse_host(refusal: HostRefusal) -> Response:
    return build_json_response({"error": refusal.message}, refusal.status)
