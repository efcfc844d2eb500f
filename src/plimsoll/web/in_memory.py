"""An `HttpClient` whose servers are functions in this process, for `plimsoll up` and scenarios.

The caller maps simulated addresses to handlers. Any other address has no server, or goes to another `HttpClient`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from plimsoll.web.client import RequestFailed, Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.web.client import HttpClient, Request

    Route = Callable[[str], str | None]
    """From an address to what `Answer` calls it; None: it is somewhere else."""
    Answer = Callable[[str, str, bytes], Awaitable[tuple[int, bytes]]]
    """Method, target and body to status and body."""


class InMemoryClient:
    """`beyond` None: there is nothing else."""

    def __init__(self, answer: Answer, *, route: Route, beyond: HttpClient | None = None) -> None:
        self._answer = answer
        self._route = route
        self._beyond = beyond

    async def ask(self, asked: Request) -> Response | RequestFailed:
        target = self._route(asked.url)
        if target is None:
            nobody = RequestFailed(problem=f"there is nobody at {asked.url}")
            return nobody if self._beyond is None else await self._beyond.ask(asked)
        status, body = await self._answer(asked.method, target, asked.body)
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            # As a service without a pod behind it: the connection is refused.
            return RequestFailed(problem=f"cannot reach {asked.url}")
        return Response(status=int(status), body=body)
