"""The HTTP client: a port, `HttpClient`, and its implementation over aiohttp.

A server that does not answer is expected, so `RequestFailed` is a value; so is every status. Redirects are not
followed, and servers are not trusted: an answer that is too large is cut off and fails. Nothing is sent twice.

`PinnedHttpClient` is for addresses that a user of the cluster chose. It connects to an address that the caller has
already checked (`web.address_guard`), so no resolver can name another one afterwards.
"""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self

import aiohttp
from yarl import URL

from plimsoll import __version__
from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from types import TracebackType

    from plimsoll.web.bearer_token import BearerToken

TIMEOUT_S: Final = 5.0
"""The timeout of a whole exchange, from name resolution to the last byte."""
MAX_RESPONSE_BYTES: Final = 32 * 1024 * 1024
"""PD's answer about a thousand stores is one MiB."""
_EXCERPT_CHARACTERS: Final = 200
_HEADERS: Final = {"User-Agent": f"plimsoll/{__version__}", "Accept": "application/json"}


class Request(Value):
    """A request. `url` is complete, with its query. `tls`: for this request, instead of the client's own.

    `timeout_s`: for this request, if it is shorter than the client's own. `is_query`: a POST that changes nothing.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    url: str
    body: bytes = b""
    content_type: str = ""
    tls: ssl.SSLContext | None = None
    timeout_s: float = math.inf
    connect_timeout_s: float = math.inf
    """The part of it that name resolution and the connection may take."""
    is_query: bool = False
    headers: dict[str, str] = {}
    """Further headers, such as `User-Task-ID`. `content_type` and the client's token rule over them."""

    @property
    def is_safe(self) -> bool:
        """Whether it changes nothing."""
        return self.method == "GET" or self.is_query


class Response(Value):
    """A response of any status."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = {}
    """By lower-case name."""

    @property
    def is_ok(self) -> bool:
        return self.status == 200

    @property
    def excerpt(self) -> str:
        """The beginning of the body on one line, for messages."""
        return shorten(self.body[: 4 * _EXCERPT_CHARACTERS].decode(errors="replace"))


class FailureKind(StrEnum):
    """Why there is no response. After UNCONNECTED and UNTRUSTED the server has not seen the request."""

    UNCONNECTED = "unconnected"
    """The host is unknown, or nothing accepts connections there."""
    UNTRUSTED = "untrusted"
    """Client and server do not agree on TLS, or the certificate is not trusted."""
    TIMED_OUT = "timed out"
    LOST = "lost"
    """The connection broke, or what came is not a response that can be read."""


class RequestFailed(Value):
    """There is no response. Whether the server acted is unknown, unless `kind` says otherwise."""

    problem: str
    kind: FailureKind = FailureKind.LOST


class HttpClient(Protocol):
    """Sends one request to its server. Never raises because of what the server does or does not do."""

    async def send(self, request: Request) -> Response | RequestFailed: ...


class AiohttpClient:
    """An `HttpClient` over sockets, for the running event loop; an async context manager."""

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
        token: BearerToken | None = None,
        max_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        self._max_bytes = max_bytes
        self._session = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            headers=_HEADERS,
            skip_auto_headers=("Content-Type",),
        )
        self._tls: ssl.SSLContext | bool = tls or True
        self._timeout_s = timeout_s
        self._token = token

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def send(self, request: Request) -> Response | RequestFailed:
        origin = str(URL(request.url).origin())
        timeout_s = min(self._timeout_s, request.timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._exchange(request)
        except aiohttp.ConnectionTimeoutError:
            problem = f"no connection to {origin} within {request.connect_timeout_s:g} s"
            return RequestFailed(problem=problem, kind=FailureKind.UNCONNECTED)
        except TimeoutError:
            problem = f"no answer from {origin} within {timeout_s:g} s"
            return RequestFailed(problem=problem, kind=FailureKind.TIMED_OUT)
        except (aiohttp.ClientError, OSError) as error:
            return RequestFailed(problem=f"cannot reach {origin}: {describe_error(error)}", kind=_classify(error))

    async def _exchange(self, request: Request) -> Response | RequestFailed:
        headers = dict(request.headers)
        if request.content_type:
            headers["Content-Type"] = request.content_type
        if self._token is not None:
            headers |= self._token.build_headers(request.url)
        exchange = self._session.request(
            request.method,
            URL(request.url, encoded=True),
            data=request.body or None,
            headers=headers,
            allow_redirects=False,
            ssl=request.tls or self._tls,
            timeout=aiohttp.ClientTimeout(
                total=None, connect=request.connect_timeout_s if math.isfinite(request.connect_timeout_s) else None
            ),
        )
        async with exchange as response:
            return await read_response(response, source=request.url, max_bytes=self._max_bytes)


class PinnedUrl(Value):
    """A URL that is opened at this address, whatever its host resolves to by now."""

    url: str
    host: str
    address: str


class PinnedHttpClient:
    """GET requests to checked addresses, with a connection per request: they are rare, and each has its own trust.

    The URL that is opened holds the address; the host goes into the `Host` header and is what a certificate must be
    for. No proxy, no cookies, no redirects, no compressed bodies, at most `max_bytes` of a body.
    """

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    async def resolve(self, host: str, port: int) -> tuple[str, ...] | RequestFailed:
        """All addresses of a host, at least one."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            return RequestFailed(problem=f"{host} cannot be resolved: {reason}")
        addresses = tuple(dict.fromkeys(str(address[0]) for *_, address in found))
        return addresses or RequestFailed(problem=f"{host} has no address")

    async def get(self, pinned: PinnedUrl, *, tls: ssl.SSLContext | None) -> Response | RequestFailed:
        try:
            async with aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=_HEADERS,
                skip_auto_headers=("Accept-Encoding",),
                auto_decompress=False,
            ) as session:
                return await self._exchange(session, pinned, tls=tls)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return RequestFailed(problem=f"cannot reach {pinned.host}: {describe_error(error)}")

    async def _exchange(
        self, session: aiohttp.ClientSession, pinned: PinnedUrl, *, tls: ssl.SSLContext | None
    ) -> Response | RequestFailed:
        named = URL(pinned.url, encoded=True)
        exchange = session.get(
            named.with_host(pinned.address),
            headers={"Host": named.raw_authority},
            allow_redirects=False,
            ssl=tls or True,
            server_hostname=pinned.host if tls else None,
        )
        async with exchange as response:
            return await read_response(response, source=pinned.host, max_bytes=self._max_bytes)


async def read_response(response: aiohttp.ClientResponse, *, source: str, max_bytes: int) -> Response | RequestFailed:
    """The whole response; one that is larger than `max_bytes` is not read to its end and fails."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > max_bytes:
            response.close()
            return RequestFailed(problem=f"{source} answers with more than {max_bytes} bytes")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Response(status=response.status, body=bytes(body), headers=headers)


def _classify(error: aiohttp.ClientError | OSError) -> FailureKind:
    if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
        return FailureKind.UNTRUSTED
    return FailureKind.UNCONNECTED if isinstance(error, aiohttp.ClientConnectorError) else FailureKind.LOST


def describe_error(error: aiohttp.ClientError | OSError | ValueError) -> str:
    """Why the server was not reached, without its address, which the caller knows."""
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(inner, aiohttp.ClientResponseError):
        # aiohttp's own text shows the bytes that came instead, on several lines.
        return shorten(f"what it answers is not HTTP: {inner.message.partition(':')[0] or type(inner).__name__}")
    return shorten((inner.strerror if isinstance(inner, OSError) else "") or str(inner) or type(inner).__name__)


def shorten(text: str) -> str:
    """Text of others on one line, cut to the length of a message."""
    return " ".join(text.split())[:_EXCERPT_CHARACTERS]


def check_base_url(url: str, *, path: str) -> str:
    """The base URL of a server without a slash at its end; raises `InvalidInput` under the name `path`."""
    try:
        parsed = URL(url)
    except ValueError as error:
        raise InvalidInput(f"{url!r} is not an address: {error}", path=path) from error
    if parsed.scheme not in {"http", "https"} or not parsed.host or parsed.query_string or parsed.fragment:
        raise InvalidInput(f"{url!r} is not an address like http://HOST:PORT", path=path)
    return str(parsed).rstrip("/")
