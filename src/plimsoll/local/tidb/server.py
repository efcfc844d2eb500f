"""The simulated PDs and Prometheus behind a socket: raw ASGI that asks for a token. `plimsoll up` serves it.

The token comes as `Authorization: Bearer`, or as the password of `Basic`, which is what addresses with a user and
Prometheus' own settings can carry. Only `/healthz` goes without. Names that are not ours, and pages that reach for
loopback, are refused before anything else.
"""

from __future__ import annotations

import asyncio
import hmac
from base64 import b64decode
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.local.apiserver.transport.hosts import HostNames
from plimsoll.local.tidb.simulated import METRICS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.local.tidb.simulated import SimulatedTidb

    Scope = dict[str, Any]
    Receive = Callable[[], Awaitable[Any]]
    Send = Callable[[Any], Awaitable[None]]
    Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HEALTH: Final = "/healthz"
LARGEST_BODY_BYTES: Final = 1024 * 1024
_TIME_TO_ASK_S: Final = 10.0
_JSON: Final = "application/json"
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


class AskingForToken:
    """Any application, for those who know the token."""

    def __init__(self, application: Application, *, token: str) -> None:
        self._application = application
        self._token = token.encode()
        self._hosts = HostNames()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if (refusal := self._hosts.refusal(_values(scope, "host"), "".join(_values(scope, "origin")))) is not None:
            await answer(send, refusal.code, msgspec.json.encode(refusal.status))
            return
        if scope["path"] != HEALTH and not self._is_known(scope):
            told = msgspec.json.encode("a token is needed: Authorization: Bearer TOKEN")
            await answer(send, HTTPStatus.UNAUTHORIZED, told, headers={"www-authenticate": "Bearer"})
            return
        await self._application(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        given = _values(scope, "authorization")
        return len(given) == 1 and hmac.compare_digest(_token_in(given[0].encode("latin-1")), self._token)


class SimulatedServers:
    """PD under `/NAMESPACE/TIDBCLUSTER`, `/metrics`, and queries: what `SimulatedTidb.answer` has."""

    def __init__(self, tidb: SimulatedTidb) -> None:
        self._tidb = tidb

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("raw_path") or scope["path"].encode()
        target = path.decode("latin-1").partition("?")[0]
        if target == HEALTH:
            await answer(send, HTTPStatus.OK, b'{"status":"ok"}')
            return
        body = await _body(receive)
        if isinstance(body, HTTPStatus):
            await answer(send, body, msgspec.json.encode(body.phrase))
            return
        query = scope["query_string"].decode("latin-1")
        method = scope["method"]
        status, told = await self._tidb.answer(method, f"{target}?{query}" if query else target, body)
        await answer(send, status, told, content_type=_TEXT if target == METRICS else _JSON)


async def answer(
    send: Send, status: int, body: bytes, *, content_type: str = _JSON, headers: dict[str, str] | None = None
) -> None:
    """A whole answer."""
    written = {
        "content-type": content_type,
        "content-length": str(len(body)),
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        **(headers or {}),
    }
    pairs = [(name.encode(), value.encode()) for name, value in written.items()]
    await send({"type": "http.response.start", "status": int(status), "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def _values(scope: Scope, header: str) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == header.encode()]


def _token_in(header: bytes) -> bytes:
    kind, _, rest = header.strip().partition(b" ")
    if kind.lower() == b"bearer":
        return rest.strip()
    try:
        return b64decode(rest.strip(), validate=True).partition(b":")[2] if kind.lower() == b"basic" else b""
    except ValueError:
        return b""


async def _body(receive: Receive) -> bytes | HTTPStatus:
    """The request's, if it is neither too large nor too slow."""
    body = bytearray()
    try:
        async with asyncio.timeout(_TIME_TO_ASK_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return HTTPStatus.BAD_REQUEST
                body += message.get("body", b"")
                if len(body) > LARGEST_BODY_BYTES:
                    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        return HTTPStatus.REQUEST_TIMEOUT
