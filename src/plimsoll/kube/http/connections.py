"""The sockets and the HTTP session of a transport."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

import aiohttp

if TYPE_CHECKING:
    from types import SimpleNamespace

    from aiohttp.client_middlewares import ClientHandlerType

IDLE_S: Final = 90.0
"""How long an unused connection is kept: as Go's clients do, less than servers keep theirs."""
_HEADER_BYTES: Final = 64 * 1024
_READ_AHEAD_BYTES: Final = 256 * 1024

# A peer that disappeared is detected after 45 s, as with client-go's HTTP/2 pings: silent for 30 s, then
# asked every 5 s. The user timeout does the same for bytes that we sent and that are not acknowledged.
_SOCKET_OPTIONS: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 45_000}


class CallProgress:
    """The progress of a call. Before `is_sent` the server cannot have acted on it."""

    __slots__ = ("doing", "is_first", "is_sent", "is_without_credentials")

    def __init__(self) -> None:
        self.doing = "about to begin"
        self.is_without_credentials = False
        self.is_sent = False
        self.is_first = False
        """Whether this is the first call on its connection."""


class ConnectionBroke(aiohttp.ClientError):
    """A connection ended during an exchange; the cause is aiohttp's error."""


def build_session() -> aiohttp.ClientSession:
    """A session for the running loop, with any number of connections: calls are limited elsewhere, streams are not."""
    tracing = aiohttp.TraceConfig()
    tracing.on_connection_create_end.append(_mark_first)
    tracing.on_request_headers_sent.append(_mark_sent)
    connector = aiohttp.TCPConnector(
        limit=0, keepalive_timeout=IDLE_S, resolver=aiohttp.ThreadedResolver(), socket_factory=_open_socket
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        skip_auto_headers=("Content-Type", "User-Agent"),
        read_bufsize=_READ_AHEAD_BYTES,
        max_line_size=_HEADER_BYTES,
        max_field_size=_HEADER_BYTES,
        middlewares=(_send_once,),
        trace_configs=[tracing],
    )


async def _mark_first(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _parameters: aiohttp.TraceConnectionCreateEndParams
) -> None:
    context.trace_request_ctx.is_first = True


async def _mark_sent(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _parameters: aiohttp.TraceRequestHeadersSentParams
) -> None:
    context.trace_request_ctx.is_sent = True


async def _send_once(request: aiohttp.ClientRequest, send: ClientHandlerType) -> aiohttp.ClientResponse:
    """Keeps aiohttp from repeating PUT and DELETE when a kept connection is closed: the client decides that."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise ConnectionBroke(str(error)) from error


def release(response: aiohttp.ClientResponse) -> None:
    """Close the connection of a response, unless it was read to its end: then the connection is in use elsewhere.

    At once: a polite end of TLS would wait half a minute for a peer that may be gone.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


def _open_socket(
    address: tuple[
        socket.AddressFamily | int, socket.SocketKind | int, int, str, tuple[str, int] | tuple[str, int, int, int]
    ],
) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SOCKET_OPTIONS.items():
        option = getattr(socket, name, None)  # not every system has all of them
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
