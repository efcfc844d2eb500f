"""The simulated PDs and Prometheus behind a socket, as ASGI.

`guard_server` puts the guards of every server of `plimsoll up` around an application: its names (Host and Origin) and
the administrator's token. Only `/healthz` needs no token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request

from plimsoll.local.apiserver.status_errors import refuse_host
from plimsoll.local.tidb.simulated import METRICS
from plimsoll.web.bodies import BodyRefused, read_body
from plimsoll.web.guards import HostGuard, HostNames, TokenGuard
from plimsoll.web.responses import JSON, PROMETHEUS_TEXT, PageResponse, build_json_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from plimsoll.local.tidb.simulated import SimulatedTidb
    from plimsoll.web.guards import HostRefusal

HEALTH: Final = "/healthz"


def guard_server(application: ASGIApp, *, token: str) -> ASGIApp:
    guarded = TokenGuard(application, token=token, public_paths=(HEALTH,))
    return HostGuard(guarded, names=HostNames(), refuse=_refuse_host)


def _refuse_host(refusal: HostRefusal) -> PageResponse:
    return build_json_response(refuse_host(refusal).status, refusal.status)


class SimulatedServers:
    """PD under `/NAMESPACE/TIDBCLUSTER`, `/metrics`, and queries: what `SimulatedTidb.answer` has."""

    def __init__(self, tidb: SimulatedTidb) -> None:
        self._tidb = tidb

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(Request(scope, receive))
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> PageResponse:
        path = request.scope.get("raw_path") or request.scope["path"].encode()
        target = path.decode("latin-1").partition("?")[0]
        if target == HEALTH:
            return build_json_response({"status": "ok"})
        body = await read_body(request)
        if isinstance(body, BodyRefused):
            return build_json_response(body.status.phrase, body.status)
        query = request.scope["query_string"].decode("latin-1")
        status, answer = await self._tidb.answer(request.method, f"{target}?{query}" if query else target, body)
        return PageResponse(answer, status, content_type=PROMETHEUS_TEXT if target == METRICS else JSON)
