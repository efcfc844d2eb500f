"""An `HttpClient` whose servers are functions in this process, for `plimsoll up` and scenarios.

The caller maps simulated URLs to handlers. Any other URL has no server, or goes to another `HttpClient`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from plimsoll.web.client import FailureKind, RequestFailed, Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.web.client import HttpClient, Request

    Route = Callable[[str], str | None]
    """From a URL to the target that `Handler` knows it by; None: the URL is not simulated."""
    Handler = Callable[[str, str, bytes], Awaitable[tuple[int, bytes]]]
    """From method, target and body to status and body."""


class InMemoryClient:
    """Sends requests to `handler`. `fallback` None: there are no other servers."""

    def __init__(self, handler: Handler, *, route: Route, fallback: HttpClient | None = None) -> None:
        self._handler = handler
        self._route = route
        self._fallback = fallback

    async def send(self, request: Request) -> Response | RequestFailed:
        target = self._route(request.url)
        if target is None:
            if self._fallback is not None:
                return await self._fallback.send(request)
            return RequestFailed(problem=f"there is no server at {request.url}", kind=FailureKind.UNCONNECTED)
        status, body = await self._handler(request.method, target, request.body)
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            # A Service without a pod behind it refuses the connection.
            return RequestFailed(problem=f"cannot reach {request.url}", kind=FailureKind.UNCONNECTED)
        return Response(status=int(status), body=body)
