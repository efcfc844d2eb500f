"""Whether the server may have acted, and why there is no answer, by what happened to the connection."""

from __future__ import annotations

import errno
import socket
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from plimsoll.kube.errors import AnswerLost, NotSent, TimedOut
from plimsoll.kube.http.addresses import ServerAddress
from plimsoll.kube.http.connections import CallProgress, ConnectionBroke
from plimsoll.kube.http.failures import Route, build_closed_error, build_connection_error, build_timeout_error
from plimsoll.kube.http.proxies import Proxy
from plimsoll.kube.transport import Request

DIRECT = Route(ServerAddress.parse("https://api.example.com:6443"))
PROXIED = Route(DIRECT.address, Proxy.parse("http://user:hidden@proxy:3128", path="proxy-url"))
KEY: Any = SimpleNamespace(host="api.example.com", port=6443, is_ssl=True, ssl=True)


def connecting(number: int, text: str = "") -> aiohttp.ClientConnectorError:
    return aiohttp.ClientConnectorError(KEY, OSError(number, text))


def sending() -> CallProgress:
    progress = CallProgress()
    progress.is_sent = True
    return progress


def resolving(number: int) -> aiohttp.ClientConnectorDNSError:
    return aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(number, "of the resolver"))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (connecting(errno.ECONNREFUSED), "connection refused; is the API server running?"),
        (connecting(errno.EHOSTUNREACH), "no route to the host"),
        (connecting(errno.ENETUNREACH), "the network is unreachable"),
        (connecting(errno.EMFILE), "this process has too many open files"),
        (connecting(errno.EADDRNOTAVAIL, "no address left"), "no address left"),
        (resolving(socket.EAI_NONAME), "no such host: api.example.com"),
        (resolving(socket.EAI_AGAIN), "the name api.example.com cannot be resolved now (of the resolver)"),
    ],
)
def test_what_was_never_sent_is_reported_with_address_and_reason(error: Exception, message: str):
    reported = build_connection_error(error, CallProgress(), DIRECT)
    assert isinstance(reported, NotSent)
    assert str(reported) == f"cannot reach https://api.example.com:6443: {message}"


def test_what_broke_after_it_was_sent_may_have_been_done():
    error = ConnectionBroke()
    error.__cause__ = aiohttp.ClientOSError(errno.ECONNRESET, "Connection reset by peer")
    reported = build_connection_error(error, sending(), DIRECT)
    assert isinstance(reported, AnswerLost)
    assert str(reported) == "no answer from https://api.example.com:6443: the connection was reset"


def test_a_first_call_over_tls_that_breaks_may_be_about_certificates():
    fresh = sending()
    fresh.is_first = True
    hint = "if it asks for client certificates, it may not have accepted ours"
    assert hint in str(build_connection_error(ConnectionBroke(), fresh, DIRECT))
    assert hint not in str(build_connection_error(ConnectionBroke(), fresh, Route(ServerAddress.parse("http://host"))))
    assert hint not in str(build_connection_error(ConnectionBroke(), sending(), DIRECT))


@pytest.mark.parametrize("error", [ConnectionBroke(), aiohttp.ClientResponseError(KEY, (), message="Bad status line")])
def test_a_first_call_without_tls_that_breaks_may_have_met_a_server_with_tls(error: Exception):
    fresh = sending()
    fresh.is_first = True
    plain = Route(ServerAddress.parse("http://host:6443"))
    hint = "; if it speaks TLS, its address is https://host:6443"
    assert str(build_connection_error(error, fresh, plain)).endswith(hint)
    assert hint not in str(build_connection_error(error, sending(), plain))


def test_the_proxy_is_named_without_its_password():
    reported = str(build_connection_error(connecting(errno.ECONNREFUSED), CallProgress(), PROXIED))
    where = "https://api.example.com:6443 through the proxy http://proxy:3128"
    assert reported == f"cannot reach {where}: connection refused; is the proxy running?"


@pytest.mark.parametrize(("status", "part"), [(407, "asks for a user and password"), (502, "answered 502 Bad Gateway")])
def test_a_proxy_that_refuses_is_quoted(status: int, part: str):
    error = aiohttp.ClientHttpProxyError(KEY, (), status=status, message="Bad Gateway")
    reported = build_connection_error(error, CallProgress(), PROXIED)
    assert isinstance(reported, NotSent)
    assert part in str(reported)


def test_time_that_is_up_before_sending_changed_nothing():
    progress = CallProgress()
    progress.doing = "waiting for a connection"
    reported = build_timeout_error(Request("POST", "/api", timeout_s=2), progress, DIRECT)
    assert isinstance(reported, NotSent)
    assert str(reported).endswith("after 2 s still waiting for a connection")


@pytest.mark.parametrize(
    ("duration_s", "words"), [(4.99999, "5 s"), (2.345, "2.3 s"), (30, "30 s"), (3600, "3600 s"), (0.25, "0.25 s")]
)
def test_durations_are_written_as_people_write_them(duration_s: float, words: str):
    assert str(build_timeout_error(Request("GET", "/api", timeout_s=duration_s), sending(), DIRECT)).endswith(
        f"within {words}"
    )


def test_time_that_is_up_after_sending_leaves_it_open_and_shows_no_query():
    reported = build_timeout_error(Request("GET", "/api", (("continue", "hidden"),), timeout_s=0.5), sending(), DIRECT)
    assert isinstance(reported, TimedOut)
    assert str(reported) == "GET /api: no answer from https://api.example.com:6443 within 0.5 s"


def test_a_closed_transport_shows_whether_the_call_was_sent():
    assert isinstance(build_closed_error(DIRECT), NotSent)
    assert isinstance(build_closed_error(DIRECT, is_sent=True), AnswerLost)
