"""An `HttpClient` whose server is an ASGI application in this process: the same requests, and no socket.

A component that serves HTTP and is used from its own process is reached by the client that reaches it from outside.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from yarl import URL

from plimsoll.web.client import FailureKind, RequestFailed, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message

    from plimsoll.web.client import Request

TIMEOUT_S: Final = 30.0
_CLIENT: Final = ("127.0.0.1", 0)


class AsgiClient:
    """Sends every request to one application, whatever the host of its URL."""

    def __init__(self, application: ASGIApp, *, timeout_s: float = TIMEOUT_S) -> None:
        self._application = application
        self._timeout_s = timeout_s

    async def send(self, request: Request) -> Response | RequestFailed:
        url = URL(request.url, encoded=True)
        headers = {"host": url.raw_authority, "accept": "application/json", **request.headers}
        if request.content_type:
            headers["content-type"] = request.content_type
        timeout_s = min(self._timeout_s, request.timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                return await call_application(
                    self._application,
                    request.method,
                    url.raw_path,
                    query=url.raw_query_string,
                    headers=headers,
                    body=request.body,
                )
        except TimeoutError:
            problem = f"no answer from {url.origin()} within {timeout_s:g} s"
            return RequestFailed(problem=problem, kind=FailureKind.TIMED_OUT)


async def call_application(
    application: ASGIApp,
    method: str,
    path: str,
    *,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
) -> Response | RequestFailed:
    """One exchange with an application. `path` and `query` are encoded as on the wire."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()],
        "client": _CLIENT,
    }
    sent: list[Message] = []
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return pending.pop() if pending else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await application(scope, receive, send)
    if not sent or sent[0]["type"] != "http.response.start":
        return RequestFailed(problem=f"the application gives no answer to {method} {path}")
    return _build_response(sent)


def _build_response(sent: list[Any]) -> Response:
    start, *parts = sent
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start.get("headers", ())}
    body = b"".join(part.get("body", b"") for part in parts)
    return Response(status=start["status"], body=body, headers=headers)
