"""The guard of the console: the headers of every response, the Host, the Origin, and a session or a token.

The pages themselves are public: they hold no data. Every route under `/api` needs the cookie of a session, or the token
that scripts send. The cookie is for this server alone: no API of the process accepts it.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser

from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from plimsoll.console.access.one_time_codes import Sessions

SESSION_PATH: Final = "/api/session"
_API: Final = "/api/"
_BEARER: Final = "bearer "
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class ConsoleGuard:
    """ASGI middleware. `token` empty: only sessions are accepted."""

    def __init__(self, app: ASGIApp, *, sessions: Sessions, cookie: str, token: str = "") -> None:
        self._app = app
        self._sessions = sessions
        self._cookie = cookie
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        app = self._app
        if (
            scope["path"].startswith(_API)
            and scope["path"] != SESSION_PATH
            and not self._is_known(Headers(scope=scope))
        ):
            app = build_json_response(
                {"error": "a session or a token is needed; open the address that was printed at the start"},
                HTTPStatus.UNAUTHORIZED,
            )
        await app(scope, receive, send_with_headers)

    def _is_known(self, headers: Headers) -> bool:
        authorization = headers.getlist("authorization")
        if authorization:
            return len(authorization) == 1 and self._is_token(authorization[0])
        return self._sessions.is_valid(read_cookie(headers, self._cookie))

    def _is_token(self, authorization: str) -> bool:
        if not self._token or not authorization.lower().startswith(_BEARER):
            return False
        given = authorization[len(_BEARER) :].strip()
        return hmac.compare_digest(given.encode("latin-1"), self._token.encode())


def read_cookie(headers: Headers, name: str) -> str:
    """The value of a cookie; empty if there is none."""
    return cookie_parser(headers.get("cookie", "")).get(name, "")
