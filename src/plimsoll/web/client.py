"""Questions to PD and Prometheus over HTTP, behind a port: aiohttp when live, a function in memory under virtual time.

`pd` and `prometheus` ask through it, whoever wires the program makes an `HttpWeb`. That nobody answers is expected, so
it is a value (`RequestFailed`); so is every status. Redirects are not followed, and what answers is not trusted: a body
that is too large ends the answer. Nothing is asked twice here.
"""

from __future__ import annotations

import asyncio
import ssl  # noqa: TC003 - msgspec reads annotations at run time
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
"""For a whole exchange, from name resolution to the last byte."""
LARGEST_ANSWER_BYTES: Final = 32 * 1024 * 1024
"""A thousand stores are one MiB."""
_SHOWN_CHARACTERS: Final = 200


class Request(Value):
    """One request. `url` is whole, with its query. `tls`: for this request, instead of the `HttpClient`'s own."""

    method: Literal["GET", "POST", "DELETE"]
    url: str
    body: bytes = b""
    content_type: str = ""
    tls: ssl.SSLContext | None = None


class Response(Value):
    """Any answer, refusals included."""

    status: int
    body: bytes = b""

    @property
    def is_ok(self) -> bool:
        return self.status == 200

    @property
    def said(self) -> str:
        """The beginning of its body, on one line, for messages."""
        return shown(self.body[: 4 * _SHOWN_CHARACTERS].decode(errors="replace"))


class RequestFailed(Value):
    """Nobody can say whether the other side acted."""

    problem: str


class HttpClient(Protocol):
    """Carries one request to its server. Never raises because of what the other side does or does not do."""

    async def ask(self, asked: Request) -> Response | RequestFailed: ...


class HttpWeb:
    """Over sockets, for the loop that is running; an async context manager."""

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
        token: BearerToken | None = None,
    ) -> None:
        self._session = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            headers={"User-Agent": f"plimsoll/{__version__}", "Accept": "application/json"},
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

    async def ask(self, asked: Request) -> Response | RequestFailed:
        place = str(URL(asked.url).origin())
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._exchange(asked)
        except TimeoutError:
            return RequestFailed(problem=f"no answer from {place} within {self._timeout_s:g} s")
        except (aiohttp.ClientError, OSError) as error:
            return RequestFailed(problem=f"cannot reach {place}: {reason_of(error)}")

    async def _exchange(self, asked: Request) -> Response | RequestFailed:
        headers = {"Content-Type": asked.content_type} if asked.content_type else {}
        if self._token is not None:
            headers |= self._token.headers_for(asked.url)
        exchange = self._session.request(
            asked.method,
            URL(asked.url, encoded=True),
            data=asked.body or None,
            headers=headers,
            allow_redirects=False,
            ssl=asked.tls or self._tls,
        )
        async with exchange as response:
            return await read_whole(response, whose=asked.url, limit=LARGEST_ANSWER_BYTES)


async def read_whole(response: aiohttp.ClientResponse, *, whose: str, limit: int) -> Response | RequestFailed:
    """An answer of at most so many bytes; what is larger is not read to its end."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > limit:
            response.close()
            return RequestFailed(problem=f"{whose} answers with more than {limit} bytes")
    return Response(status=response.status, body=bytes(body))


def reason_of(error: aiohttp.ClientError | OSError | ValueError) -> str:
    """Why nobody was reached, without the address: who asked knows it."""
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(inner, aiohttp.ClientResponseError):
        # Its own text shows over many lines what came instead.
        return shown(f"what it answers is not HTTP: {inner.message.partition(':')[0] or type(inner).__name__}")
    return shown((inner.strerror if isinstance(inner, OSError) else "") or str(inner) or type(inner).__name__)


def shown(text: str) -> str:
    """On one line, and short: what others wrote may be of any shape."""
    return " ".join(text.split())[:_SHOWN_CHARACTERS]


def checked_base(url: str, *, path: str) -> str:
    """The address of a server, without a slash at its end; raises `InvalidInput` under the name `path`."""
    try:
        read = URL(url)
    except ValueError as error:
        raise InvalidInput(f"{url!r} is not an address: {error}", path=path) from error
    if read.scheme not in {"http", "https"} or not read.host or read.query_string or read.fragment:
        raise InvalidInput(f"{url!r} is not an address like http://HOST:PORT", path=path)
    return str(read).rstrip("/")
