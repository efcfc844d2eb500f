"""Connection failures as errors of `kube.errors`, with plain messages.

Callers must know whether the server may have acted: `NotSent` means no, `AnswerLost` means perhaps. Messages name the
server and what can be done; they never show a query, a header or a proxy's password.
"""

from __future__ import annotations

import errno
import socket
import ssl
from typing import TYPE_CHECKING, Final, NamedTuple

import aiohttp
from yarl import URL

from plimsoll.kube.errors import AnswerLost, Closed, NotSent, TimedOut
from plimsoll.kube.http.connections import ConnectionBroke

if TYPE_CHECKING:
    from plimsoll.kube.errors import ServerUnreachable
    from plimsoll.kube.http.addresses import ServerAddress
    from plimsoll.kube.http.connections import CallProgress
    from plimsoll.kube.http.proxies import Proxy
    from plimsoll.kube.transport import Request

_BY_ERRNO: Final = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to the host",
    errno.ENETUNREACH: "the network is unreachable",
    errno.ETIMEDOUT: "the host does not answer",
    errno.ECONNRESET: "the connection was reset",
    errno.EPIPE: "the connection was closed",
    errno.EACCES: "this machine does not allow the connection",
    errno.EPERM: "this machine does not allow the connection",
    errno.EMFILE: "this process has too many open files",
    errno.ENFILE: "this machine has too many open files",
}
_UNKNOWN_NAMES: Final = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


class Route(NamedTuple):
    """The destination of calls, as messages name it."""

    address: ServerAddress
    proxy: Proxy | None = None

    def __str__(self) -> str:
        return self.address.base if self.proxy is None else f"{self.address.base} through the proxy {self.proxy.url}"


def build_closed_error(route: Route, *, is_sent: bool = False) -> ServerUnreachable:
    if is_sent:
        return AnswerLost(f"the connection to {route} was closed on our side before the answer came")
    return Closed(f"the transport to {route} is closed")


def build_timeout_error(call: Request, progress: CallProgress, route: Route) -> ServerUnreachable:
    """The error for a call that took too long."""
    if progress.is_sent:
        return TimedOut(f"{call.method} {call.path}: no answer from {route} within {format_seconds(call.timeout_s)}")
    return NotSent(f"cannot reach {route}: after {format_seconds(call.timeout_s)} still {progress.doing}")


def format_seconds(duration_s: float) -> str:
    """Seconds rounded for display: 4.98 s left of a deadline are 5 s."""
    return f"{round(duration_s, 1 if duration_s >= 1 else 3):g} s"


def build_connection_error(error: Exception, progress: CallProgress, route: Route) -> ServerUnreachable:
    """The error for a connection that failed, or was never made, for reasons other than TLS."""
    if progress.is_sent:
        return AnswerLost(
            f"no answer from {route}: {_format_reason(error)}{_format_usual_cause(error, progress, route)}"
        )
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return NotSent(f"cannot reach {route}: {_format_proxy_answer(error)}")
    return NotSent(f"cannot reach {route}: {_format_reason(error)}{_format_advice(error, route)}")


def _format_usual_cause(error: Exception, progress: CallProgress, route: Route) -> str:
    """The usual cause of a connection that ends during its first call."""
    if not progress.is_first:
        return ""
    if not route.address.is_tls and isinstance(error, ConnectionBroke | aiohttp.ClientResponseError):
        return f"; if it speaks TLS, its address is {route.address.base.replace('http://', 'https://', 1)}"
    # With TLS 1.3 a server refuses a client's certificate after the handshake, and its alert may get lost.
    if route.address.is_tls and isinstance(error, ConnectionBroke):
        return "; if it asks for client certificates, it may not have accepted ours"
    return ""


def find_tls_error(error: BaseException) -> ssl.SSLError | None:
    """The error of OpenSSL that caused this one; None: it has another cause."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        inner: BaseException | None = error.certificate_error
    elif isinstance(error, aiohttp.ClientConnectorError):
        inner = error.os_error
    elif isinstance(error, ConnectionBroke) and error.__cause__ is not None:
        inner = error.__cause__.__cause__
    else:
        inner = None
    return inner if isinstance(inner, ssl.SSLError) else None


def is_about_the_proxy(error: BaseException, route: Route) -> bool:
    """Whether it was the connection to the proxy that failed, not the one through it."""
    if route.proxy is None or not isinstance(error, aiohttp.ClientConnectorError):
        return False
    proxy = URL(route.proxy.url)
    return (error.host, error.port) == (proxy.host, proxy.port)


def _format_reason(error: BaseException) -> str:
    match error:
        case ConnectionBroke():
            return _format_reason(error.__cause__) if error.__cause__ is not None else "the connection broke"
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed before an answer came"
        case aiohttp.ClientConnectorDNSError():
            return _format_name_problem(error.host, error.os_error)
        case aiohttp.ClientConnectorError():
            return _format_reason(error.os_error)
        case aiohttp.ClientPayloadError():
            return "the connection was closed in the middle of the answer"
        case aiohttp.ClientResponseError():
            return "what came back is not HTTP"
        case ssl.SSLError():
            return "the connection was closed during the TLS handshake"
        case OSError():
            return _BY_ERRNO.get(error.errno or 0, "") or error.strerror or "the connection was closed"
        case _:
            return "the connection was closed"


def _format_name_problem(host: str, error: OSError) -> str:
    if error.errno in _UNKNOWN_NAMES:
        return f"no such host: {host}"
    return f"the name {host} cannot be resolved now ({error.strerror or 'the resolver does not answer'})"


def _format_proxy_answer(error: aiohttp.ClientHttpProxyError) -> str:
    if error.status == 407:
        return "the proxy asks for a user and password, or does not accept those in its URL (407)"
    return f"the proxy answered {error.status} {error.message}".rstrip()


def _format_advice(error: Exception, route: Route) -> str:
    refused = isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno == errno.ECONNREFUSED
    if not refused:
        return ""
    return "; is the proxy running?" if route.proxy is not None else "; is the API server running?"
