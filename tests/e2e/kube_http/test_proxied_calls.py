"""Calls through proxies: by CONNECT for https, whole for http, with and without a password."""

from __future__ import annotations

import base64
import socket

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.access import Access, Tls
from plimsoll.kube.errors import NotSent, TlsRefused
from plimsoll.kube.transport import Request
from tests.e2e.kube_http.servers import (
    ConnectProxy,
    ScriptedServer,
    ServerConnection,
    TokenCredentials,
    opened,
    plain,
    reaching,
    secure,
    sent,
    server_tls,
    serving,
)
from tests.kube.http.authorities import LOOPBACK, CertificateAuthority

pytestmark = pytest.mark.asyncio

CA = CertificateAuthority()
OURS = Tls(ca_pem=CA.pem)
BASIC = f"Basic {base64.b64encode(b'me:pass word').decode()}"


async def test_https_goes_through_a_tunnel_that_sees_no_credential():
    proxy, application = ConnectProxy(), ScriptedServer()
    async with serving(application, tls=server_tls(CA.issue(*LOOPBACK))) as port, serving(proxy) as proxy_port:
        access = Access(
            server=f"https://127.0.0.1:{port}",
            credentials=TokenCredentials("hidden"),
            tls=OURS,
            proxy_url=f"http://127.0.0.1:{proxy_port}",
        )
        async with reaching(access) as transport:
            for _ in range(2):
                assert (await transport.send(Request("GET", "/version"))).is_success
    assert [head.target for head in proxy.heads] == [f"127.0.0.1:{port}"]
    assert proxy.heads[0].values("authorization") == []
    assert [head.values("authorization") for head in application.heads] == [["Bearer hidden"]] * 2


async def test_the_name_in_the_certificate_is_checked_through_a_tunnel_too():
    pair = CA.issue("kubernetes")
    async with serving(ScriptedServer(), tls=server_tls(pair)) as port, serving(ConnectProxy()) as proxy_port:
        proxy_url = f"http://127.0.0.1:{proxy_port}"
        with pytest.raises(TlsRefused, match=r"through the proxy .* not for 127\.0\.0\.1"):
            await sent(secure(port, OURS, proxy_url=proxy_url))
        named = Tls(ca_pem=CA.pem, server_name="kubernetes")
        assert (await sent(secure(port, named, proxy_url=proxy_url))).is_success


async def test_a_proxy_over_tls_is_tunnelled_through_as_well():
    pair = CA.issue(*LOOPBACK)
    async with (
        serving(ScriptedServer(), tls=server_tls(pair)) as port,
        serving(ConnectProxy(), tls=server_tls(pair)) as proxy_port,
    ):
        assert (await sent(secure(port, OURS, proxy_url=f"https://127.0.0.1:{proxy_port}"))).is_success


async def test_a_proxy_that_is_not_believed_is_not_taken_for_the_server():
    pair = CertificateAuthority("other").issue(*LOOPBACK)
    async with serving(ConnectProxy(), tls=server_tls(pair)) as proxy_port:
        with pytest.raises(TlsRefused, match="the proxy's certificate is not accepted"):
            await sent(secure(6443, OURS, proxy_url=f"https://127.0.0.1:{proxy_port}"))


async def test_a_proxy_without_tls_is_reported():
    async def grumbles(peer: ServerConnection) -> None:
        await peer.reader.read(100)
        await peer.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with serving(grumbles) as proxy_port:
        with pytest.raises(TlsRefused, match="the proxy does not speak TLS"):
            await sent(secure(6443, OURS, proxy_url=f"https://127.0.0.1:{proxy_port}"))


async def test_a_proxy_gets_its_password_and_no_other_server_does():
    proxy, application = ConnectProxy(BASIC), ScriptedServer()
    async with serving(application, tls=server_tls(CA.issue(*LOOPBACK))) as port, serving(proxy) as proxy_port:
        await sent(secure(port, OURS, proxy_url=f"http://me:pass%20word@127.0.0.1:{proxy_port}"))
    assert proxy.heads[0].values("proxy-authorization") == [BASIC]
    assert application.heads[0].values("proxy-authorization") == []


@pytest.mark.parametrize("login", ["", "me:hidden@"])
async def test_a_proxy_that_wants_another_password_is_reported_without_ours(login: str):
    application = ScriptedServer()
    async with (
        serving(application, tls=server_tls(CA.issue(*LOOPBACK))) as port,
        serving(ConnectProxy(BASIC)) as proxy_port,
    ):
        with pytest.raises(NotSent, match="the proxy asks for a user and password") as caught:
            await sent(secure(port, OURS, proxy_url=f"http://{login}127.0.0.1:{proxy_port}"))
    assert "hidden" not in str(caught.value)
    assert application.heads == []


async def test_plain_http_is_handed_to_the_proxy_whole():
    proxy = ConnectProxy(BASIC)
    async with serving(proxy) as proxy_port:
        access = Access(
            server="http://api.invalid/clusters/a",
            credentials=TokenCredentials("t"),
            proxy_url=f"http://me:pass%20word@127.0.0.1:{proxy_port}",
        )
        assert (await sent(access, "/version")).is_success
    assert proxy.heads[0].line == "GET http://api.invalid/clusters/a/version HTTP/1.1"


async def test_the_environment_names_the_proxy_and_its_exceptions():
    proxy, application = ConnectProxy(), ScriptedServer()
    async with serving(proxy) as proxy_port:
        environment = {"HTTP_PROXY": f"127.0.0.1:{proxy_port}"}
        remote = Access(server="http://api.invalid", credentials=TokenCredentials())
        async with reaching(remote, environment) as transport:
            assert (await transport.send(Request("GET", "/"))).is_success
        async with reaching(remote, {**environment, "NO_PROXY": ".invalid"}) as transport:
            with pytest.raises(NotSent, match=r"cannot reach http://api\.invalid: "):
                await transport.send(Request("GET", "/"))
        async with serving(application) as port, reaching(plain(port), environment) as transport:
            assert (await transport.send(Request("GET", "/"))).is_success
    assert len(proxy.heads) == len(application.heads) == 1


async def test_a_proxy_that_is_not_there_is_named():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(NotSent, match=r"through the proxy http://127\.0\.0\.1:\d+: connection refused; is the proxy"):
        await sent(secure(6443, OURS, proxy_url=f"http://me:hidden@127.0.0.1:{port}"))


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", b"", b"SSH-2.0-x\r\n\r\n"]
)
async def test_a_proxy_that_does_not_connect_means_nothing_was_sent(answer: bytes):
    async def grumbles(peer: ServerConnection) -> None:
        await peer.request()
        await peer.say(answer)

    async with serving(grumbles) as port:
        with pytest.raises(NotSent, match="through the proxy"):
            await sent(secure(6443, OURS, proxy_url=f"http://127.0.0.1:{port}"))


async def test_a_stream_through_a_tunnel_can_be_closed():
    async def silent(peer: ServerConnection) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await peer.reader.read()

    async with (
        serving(silent, tls=server_tls(CA.issue(*LOOPBACK))) as port,
        serving(ConnectProxy()) as proxy_port,
        reaching(secure(port, OURS, proxy_url=f"http://127.0.0.1:{proxy_port}")) as transport,
    ):
        stream = await opened(transport)
        assert await anext(stream) == b"one"
        await stream.aclose()


async def test_a_socks_proxy_is_a_clear_error():
    with pytest.raises(InvalidInput, match="proxy-url: SOCKS proxies are not supported"):
        reaching(secure(6443, OURS, proxy_url="socks5://127.0.0.1:1080"))
