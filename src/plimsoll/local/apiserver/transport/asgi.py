"""The application as ASGI: reads a request within its limits, and writes a response until the client disconnects.

It is raw ASGI because a response is bytes already: nothing is left for a framework to do. It never interprets a path
and never authenticates; its own errors are about size, number and host.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from plimsoll.local.apiserver.http_types import Request, Response
from plimsoll.local.apiserver.status_errors import StatusError, bad_request, refuse_host
from plimsoll.local.apiserver.transport.limits import InFlight, body_too_large, body_too_slow
from plimsoll.local.apiserver.transport.response_headers import build_response_headers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.local.apiserver.transport.limits import Handler, HeldBody, Limits
    from plimsoll.web.guards import HostNames

    Scope = dict[str, Any]
    Receive = Callable[[], Awaitable[Any]]
    Send = Callable[[Any], Awaitable[None]]

# A list of 60 MB goes out in pieces, so that a client that does not read it holds no more than its share of buffers.
_PIECE_BYTES: Final = 256 * 1024

# Neither a chunk that is at hand nor a send to a client that keeps up (or is gone) ever waits: others want to run too.
_CHUNKS_IN_A_ROW: Final = 32


class ClientGone(Exception):
    """The connection ended before the request did."""


class AsgiApplication:
    """Serves requests of `connections`; `end_streams` ends watches as at their timeout."""

    def __init__(self, handler: Handler, *, limits: Limits, hosts: HostNames, clock: Clock) -> None:
        self._handler = handler
        self._limits = limits
        self._hosts = hosts
        self._clock = clock
        self._in_flight = InFlight(limits)
        self._streams: set[asyncio.Future[None]] = set()
        self._is_ending = False

    def end_streams(self) -> None:
        self._is_ending = True
        for stop in tuple(self._streams):
            if not stop.done():
                stop.set_result(None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = _build_request_without_body(scope)
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        exchange = _Exchange(scope, receive, send, self._clock)
        try:
            if (refusal := self._hosts.find_refusal(hosts, request.get_header("origin"))) is not None:
                raise refuse_host(refusal)
            with self._in_flight.reserve_body() as held:
                request = request._replace(body=await self._read_body(request, receive, held))
                # Counted once it is whole: a client that sends half a body must not keep others from writing.
                with self._in_flight.admit(request):
                    await self._respond(await self._handler.handle(request), exchange)
        except StatusError as refused:
            response = Response.from_json(refused.status, status=refused.code, headers=refused.headers)
            await exchange.send_whole(response, close=bool(request.get_header("expect")))
        except ClientGone:
            return
        except asyncio.CancelledError:
            # At the end of the grace, with the connection gone already: uvicorn would log it as an error of ours.
            if not self._is_ending:
                raise

    async def _read_body(self, request: Request, receive: Receive, held: HeldBody) -> bytes:
        if not request.get_header("content-length") and not request.get_header("transfer-encoding"):
            return b""
        most = self._limits.max_body_bytes
        if _read_content_length(request) > most:
            raise body_too_large(self._limits)
        pieces: list[bytes] = []
        try:
            async with asyncio.timeout(self._limits.body_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone
                    if held.size_bytes + len(message["body"]) > most:
                        raise body_too_large(self._limits)
                    held.grow(len(message["body"]))
                    pieces.append(message["body"])
                    if not message["more_body"]:
                        return b"".join(pieces)
        except TimeoutError:
            raise body_too_slow() from None

    async def _respond(self, response: Response, exchange: _Exchange) -> None:
        if isinstance(response.body, bytes):
            await exchange.send_whole(response)
            return
        stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._streams.add(stop)
        if self._is_ending:
            stop.set_result(None)
        try:
            await exchange.send_stream(response, response.body, stop)
        finally:
            self._streams.discard(stop)


class _Exchange:
    """The answering side of one request."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, clock: Clock) -> None:
        self._method = scope["method"]
        self._receive = receive
        self._send = send
        self._clock = clock

    async def send_whole(self, response: Response, *, close: bool = False) -> None:
        body = response.body
        assert isinstance(body, bytes)
        await self._send_head(response, length=len(body), close=close)
        if self._method == "HEAD" or len(body) <= _PIECE_BYTES:
            await self._send({"type": "http.response.body", "body": body})
            return
        view = memoryview(body)
        for start in range(0, len(body), _PIECE_BYTES):
            more = start + _PIECE_BYTES < len(body)
            piece = view[start : start + _PIECE_BYTES]
            await self._send({"type": "http.response.body", "body": piece, "more_body": more})
            await asyncio.sleep(0)

    async def send_stream(self, response: Response, chunks: AsyncIterator[bytes], stop: asyncio.Future[None]) -> None:
        """Chunks as they come, until they end, the client goes, or `stop` is set. The iterator is closed at once."""
        await self._send_head(response, length=None)
        pumping = asyncio.create_task(self._pump(chunks))
        leaving = asyncio.create_task(self._wait_for_disconnect(stop))
        try:
            await asyncio.wait((pumping, stop), return_when=asyncio.FIRST_COMPLETED)
        finally:
            pumping.cancel()
            leaving.cancel()
            await asyncio.wait((pumping, leaving))
            await _close(chunks)
        if not pumping.cancelled():
            pumping.result()
        await self._send({"type": "http.response.body", "body": b""})

    async def _pump(self, chunks: AsyncIterator[bytes]) -> None:
        sent = 0
        async for chunk in chunks:
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
            sent += 1
            if not sent % _CHUNKS_IN_A_ROW:
                await asyncio.sleep(0)

    async def _wait_for_disconnect(self, stop: asyncio.Future[None]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not stop.done():
            stop.set_result(None)

    async def _send_head(self, response: Response, *, length: int | None, close: bool = False) -> None:
        headers = build_response_headers(response, length=length, now=self._clock.now(), close=close)
        await self._send({"type": "http.response.start", "status": response.status, "headers": headers})


async def _close(chunks: AsyncIterator[bytes]) -> None:
    aclose = getattr(chunks, "aclose", None)
    if aclose is not None:
        await aclose()


def _build_request_without_body(scope: Scope) -> Request:
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("utf-8", errors="replace")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    query = tuple(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    return Request(method=scope["method"], path=scope["path"], query=query, headers=headers)


def _read_content_length(request: Request) -> int:
    """The Content-Length of the request; the parser has checked that it is a number."""
    length = request.get_header("content-length")
    if not length:
        return 0
    if not (length.isascii() and length.isdigit() and len(length) <= 20):
        raise bad_request("the Content-Length header is not a number")
    return int(length)
