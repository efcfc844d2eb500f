"""An `HttpClient` for servers that do not know which process leads: it asks the guard before each change.

A reconcile that began under the lease and goes on after its loss changes nothing there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from plimsoll.kube.transport import Guard
    from plimsoll.web.client import HttpClient, Request, RequestFailed, Response


class GuardedHttpClient:
    """Asks a guard before each request that changes something. Raises `NotAllowed` if the guard refuses."""

    def __init__(self, web: HttpClient, guard: Guard, *, timeout_s: float) -> None:
        self._web = web
        self._guard = guard
        self._timeout_s = timeout_s

    async def send(self, request: Request) -> Response | RequestFailed:
        if not request.is_safe:
            await self._guard.confirm()
            # Nothing may be awaited between this answer and the send.
            limit_s = self._guard.limit_duration_s(min(request.timeout_s, self._timeout_s))
            request = replace(request, timeout_s=limit_s)
        return await self._web.send(request)
