"""Guards of servers on loopback: the Host and Origin of a request, and its bearer token.

A web page can make a browser connect to 127.0.0.1 under a name of its own (DNS rebinding), but it cannot choose the
Host and Origin headers. So a request must name this server by one of its names, and come from no page but its own.

`HostGuard` and `TokenGuard` are ASGI middleware around any application.
"""

from __future__ import annotations

import hmac
from base64 import b64decode
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "::1")
WILDCARDS: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 -- compared with, not bound to


@dataclass(frozen=True, slots=True)
class HostRefusal:
    """The problem of the Host or Origin of a request."""

    status: HTTPStatus
    message: str


class HostNames:
    """The names of this server. Bound to a wildcard, every address is one of them; a host name never is.

    `scheme`: that of the server's own pages, from which requests may come.
    """

    def __init__(self, bound_to: str = LOOPBACK_NAMES[0], *, scheme: str = "https") -> None:
        self._scheme = f"{scheme}://"
        self._names = frozenset((*LOOPBACK_NAMES, bound_to.lower()))
        self._any_address = bound_to in WILDCARDS

    def find_refusal(self, hosts: Sequence[str], origin: str = "") -> HostRefusal | None:
        """Judges the Host headers and the Origin of a request; None: it may be served."""
        if len(hosts) != 1:
            problem = "missing required Host header" if not hosts else "too many Host headers"
            return HostRefusal(HTTPStatus.BAD_REQUEST, problem)
        if not self._is_ours(hosts[0]):
            return HostRefusal(HTTPStatus.FORBIDDEN, f"this server is not called {hosts[0]!r}")
        if origin and not self._is_our_origin(origin):
            return HostRefusal(HTTPStatus.FORBIDDEN, f"requests from the origin {origin!r} are not served")
        return None

    def _is_our_origin(self, origin: str) -> bool:
        return origin.startswith(self._scheme) and self._is_ours(origin.removeprefix(self._scheme))

    def _is_ours(self, authority: str) -> bool:
        name = _get_host(authority)
        return name in self._names or (self._any_address and _is_address(name))


def _get_host(authority: str) -> str:
    """`[::1]:6443` → `::1`; empty for what is not an authority."""
    try:
        parts = urlsplit(f"//{authority}")
        parts.port  # noqa: B018 -- checks the port
    except ValueError:
        return ""
    return parts.hostname or "" if parts.netloc == authority and "@" not in authority else ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class HostGuard:
    """Serves only requests that name this server. `refuse` writes the response to the others."""

    def __init__(self, app: ASGIApp, *, names: HostNames, refuse: Callable[[HostRefusal], Response]) -> None:
        self._app = app
        self._names = names
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        refusal = self._names.find_refusal(headers.getlist("host"), "".join(headers.getlist("origin")))
        app = self._app if refusal is None else self._refuse(refusal)
        await app(scope, receive, send)


class TokenGuard:
    """Serves only requests that carry the token, and those to `public_paths`.

    The token comes as `Authorization: Bearer`, or as the password of `Basic`, which is what URLs with a user and
    Prometheus' own settings can carry.
    """

    def __init__(self, app: ASGIApp, *, token: str, public_paths: Collection[str] = ()) -> None:
        self._app = app
        self._token = token.encode()
        self._public_paths = frozenset(public_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["path"] not in self._public_paths and not self._is_known(scope):
            problem = "a token is needed: Authorization: Bearer TOKEN"
            app = build_json_response(problem, HTTPStatus.UNAUTHORIZED, headers={"www-authenticate": "Bearer"})
        await app(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        given = Headers(scope=scope).getlist("authorization")
        return len(given) == 1 and hmac.compare_digest(_get_token(given[0].encode("latin-1")), self._token)


def _get_token(authorization: bytes) -> bytes:
    """The token of a header; empty for a header without one."""
    scheme, _, rest = authorization.strip().partition(b" ")
    if scheme.lower() == b"bearer":
        return rest.strip()
    try:
        return b64decode(rest.strip(), validate=True).partition(b":")[2] if scheme.lower() == b"basic" else b""
    except ValueError:
        return b""
