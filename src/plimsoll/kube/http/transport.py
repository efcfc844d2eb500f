"""`HttpTransport`: one server, one identity, one event loop.

A call waits for a free slot, gets the credential, sends, and reads; after a 401 it does so once more with a fresh
credential. All of that is bounded by the timeout of the call, the wait for credentials included: a call must not be
made after the moment its caller allowed it for (a lease may have ended). A credential plugin that is running goes on
after the call is over, for as long as plugins may take, so that the next call has its result.

Retries, rate limits and statuses are the client's.
"""

from __future__ import annotations

import asyncio
import io
import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, Self

import aiohttp
from multidict import CIMultiDict

from plimsoll import __version__
from plimsoll.core.values import Value
from plimsoll.kube.access import SlowCredentials
from plimsoll.kube.errors import CredentialsFailed, CredentialsLate, UnreadableAnswer
from plimsoll.kube.http.addresses import ServerAddress
from plimsoll.kube.http.connections import CallProgress, build_session, release
from plimsoll.kube.http.failures import (
    Route,
    build_closed_error,
    build_connection_error,
    build_timeout_error,
    find_tls_error,
    format_seconds,
    is_about_the_proxy,
)
from plimsoll.kube.http.proxies import choose_proxy
from plimsoll.kube.http.streams import HttpStream
from plimsoll.kube.http.tls_contexts import TlsContexts
from plimsoll.kube.http.tls_failures import build_handshake_error, build_proxy_handshake_error, refuses_client
from plimsoll.kube.requests.in_flight_calls import InFlightCalls
from plimsoll.kube.transport import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kube.access import Access, Credential
    from plimsoll.kube.errors import ServerUnreachable
    from plimsoll.kube.transport import Request

DEFAULT_USER_AGENT: Final = f"plimsoll/{__version__}"
_GIB: Final = 1024**3
_UNSENDABLE: Final = frozenset("\r\n\0")
# aiohttp writes bytes above this size in one go and warns of it; a file-like body is written in pieces.
_WRITTEN_AT_ONCE_BYTES: Final = 512 * 1024


class HttpLimits(Value):
    """Limits of one transport."""

    max_answer_bytes: int = _GIB
    """The largest body, unpacked. A page has 500 objects and etcd limits them to 1.5 MiB: nothing useful is larger."""
    calls_at_once: int = 64
    """The number of calls at once; further ones wait. Streams do not count: they last for minutes and would block
    calls."""


class HttpTransport:
    """Carries calls over the network; a `kube.transport.Transport`, and an async context manager."""

    def __init__(
        self,
        access: Access,
        *,
        user_agent: str = DEFAULT_USER_AGENT,
        limits: HttpLimits | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Raises `InvalidInput` for an address or a proxy that cannot be used. `environment`: where proxies are set."""
        address = ServerAddress.parse(access.server)
        variables = os.environ if environment is None else environment
        self._access = access
        self._user_agent = user_agent
        self._limits = limits or HttpLimits()
        self._route = Route(address, choose_proxy(address, proxy_url=access.proxy_url, environment=variables))
        self._tls = TlsContexts(access.tls)
        self._calls = InFlightCalls()
        self._places = asyncio.Semaphore(self._limits.calls_at_once)
        self._streams: set[HttpStream] = set()
        self._refresh: asyncio.Task[Credential] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def send(self, call: Request) -> Response:
        session = self._open_session()
        progress = CallProgress()
        try:
            async with self._calls.limit_time(call.timeout_s):
                return await self._carry(call, session, progress)
        except TimeoutError:
            if self._is_closed:
                raise build_closed_error(self._route, is_sent=progress.is_sent) from None
            if progress.is_without_credentials:
                raise self._without_credentials(call) from None
            raise build_timeout_error(call, progress, self._route) from None

    async def aclose(self) -> None:
        self._check_loop()
        self._is_closed = True
        self._calls.end_all()
        if self._refresh is not None:
            self._refresh.cancel()
            await asyncio.wait((self._refresh,))
        for stream in tuple(self._streams):
            await stream.aclose()
        if self._session is not None:
            await self._session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        self._check_loop()
        if self._is_closed:
            raise build_closed_error(self._route)
        if self._session is None:
            self._session = build_session()
        return self._session

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif loop is not self._loop:
            raise RuntimeError("an HttpTransport belongs to the event loop it was first used in; make one for each")

    # ---- one call

    async def _carry(self, call: Request, session: aiohttp.ClientSession, progress: CallProgress) -> Response:
        async with AsyncExitStack() as held:
            if not call.is_stream:
                progress.doing = f"waiting for one of {self._limits.calls_at_once} calls to end"
                await held.enter_async_context(self._places)
            credential = await self._get_credential(progress)
            reply = await self._exchange(call, credential, session, progress)
            if reply.status != 401:
                return reply
            self._access.credentials.invalidate(credential)
            fresh = await self._get_credential(progress)
            return reply if fresh == credential else await self._exchange(call, fresh, session, progress)

    async def _get_credential(self, progress: CallProgress) -> Credential:
        progress.is_sent = progress.is_first = False  # a call that was answered 401 did nothing
        progress.is_without_credentials = True
        if self._refresh is None or self._refresh.done():
            self._refresh = asyncio.create_task(self._access.credentials.get_current())
            self._refresh.add_done_callback(_consume_exception)
        refresh = self._refresh
        await asyncio.wait((refresh,))
        if refresh.cancelled():
            raise build_closed_error(self._route)
        credential = refresh.result()
        progress.is_without_credentials = False
        return credential

    def _without_credentials(self, call: Request) -> CredentialsLate:
        credentials = self._access.credentials
        known = credentials.find_late_credentials() if isinstance(credentials, SlowCredentials) else None
        waited = known or CredentialsLate("no credentials came", path=self._access.origin)
        request = f"{call.method} {call.path} had {format_seconds(call.timeout_s)} for everything and was not sent"
        return CredentialsLate(f"{waited.problem}; {request}", path=waited.path)

    async def _exchange(
        self, call: Request, credential: Credential, session: aiohttp.ClientSession, progress: CallProgress
    ) -> Response:
        progress.doing = "waiting for a connection"
        address, proxy = self._route
        tls = self._tls.get_context(credential) if address.is_tls else True
        headers = self._build_headers(call, credential)
        if self._is_closed:
            raise build_closed_error(self._route)
        try:
            response = await session.request(
                call.method,
                address.build_url(call.url),
                headers=headers,
                data=_build_payload(call.body),
                allow_redirects=False,
                ssl=tls,
                server_hostname=self._access.tls.server_name or None,
                proxy=proxy.url if proxy else None,
                proxy_headers=proxy.headers if proxy else None,
                trace_request_ctx=progress,
            )
        except (aiohttp.ClientError, OSError) as error:
            raise await self._build_failure(error, progress) from None
        return await self._read(call, response, progress)

    def _build_headers(self, call: Request, credential: Credential) -> CIMultiDict[str]:
        """The default headers, then those of the call, then those of the credential, which nothing overrides."""
        address, proxy = self._route
        # Unpacking 20 MB costs no more than reading them; but on one machine the server compresses on the same cores.
        unpacked = call.is_stream or address.is_loopback
        headers = CIMultiDict({"User-Agent": self._user_agent, "Accept-Encoding": "identity" if unpacked else "gzip"})
        headers.update(call.headers)
        if proxy is not None and not address.is_tls:
            headers.update(proxy.headers)
        identity = (*credential.headers.items(), *credential.repeated_headers)
        for name, value in identity:
            if _UNSENDABLE.intersection(value):
                raise CredentialsFailed("holds a line break", path=f"header {name}")
            headers.popall(name, None)
        headers.extend(identity)
        return headers

    async def _read(self, call: Request, response: aiohttp.ClientResponse, progress: CallProgress) -> Response:
        headers = _reply_headers(response)
        if call.is_stream and 200 <= response.status < 300:
            stream = HttpStream(response, server=str(self._route), siblings=self._streams)
            return Response(status=response.status, headers=headers, stream=stream)
        chunks: list[bytes] = []
        size_bytes = 0
        try:
            while chunk := await response.content.readany():
                chunks.append(chunk)
                size_bytes += len(chunk)
                if size_bytes > self._limits.max_answer_bytes:
                    limit = self._limits.max_answer_bytes
                    raise UnreadableAnswer(f"{call.method} {call.path}: the answer is larger than {limit} bytes")
        except (aiohttp.ClientError, OSError) as error:
            raise build_connection_error(error, progress, self._route) from None
        finally:
            release(response)
        return Response(status=response.status, headers=headers, body=b"".join(chunks))

    async def _build_failure(self, error: aiohttp.ClientError | OSError, progress: CallProgress) -> ServerUnreachable:
        tls = find_tls_error(error)
        if tls is not None and is_about_the_proxy(error, self._route):
            return build_proxy_handshake_error(tls, route=self._route, tls=self._access.tls)
        if tls is not None and (not progress.is_sent or refuses_client(tls)):
            return await build_handshake_error(tls, route=self._route, tls=self._access.tls)
        return build_connection_error(error, progress, self._route)


def _consume_exception(refresh: asyncio.Task[Credential]) -> None:
    """The calls that waited may all be over: then no other caller reads the error, and the next call starts again."""
    if not refresh.cancelled():
        refresh.exception()


def _build_payload(body: bytes) -> bytes | io.BytesIO | None:
    if len(body) > _WRITTEN_AT_ONCE_BYTES:
        return io.BytesIO(body)
    return body or None


def _reply_headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    """Headers with names in lower case; repeated fields are joined, as HTTP allows."""
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        known = name.lower()
        headers[known] = f"{headers[known]}, {value}" if known in headers else value
    return headers
