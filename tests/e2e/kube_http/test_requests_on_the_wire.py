"""What goes over the wire, byte for byte, and what is read from it."""

from __future__ import annotations

import gzip

import pytest

from plimsoll.kube.access import Access, Credential
from plimsoll.kube.errors import CredentialsFailed, UnreadableAnswer
from plimsoll.kube.http import HttpLimits, HttpTransport
from plimsoll.kube.transport import Request
from tests.e2e.kube_http.servers import (
    OK,
    ConnectProxy,
    ScriptedServer,
    StaticCredentials,
    TokenCredentials,
    opened,
    plain,
    reaching,
    sent,
    serving,
)

pytestmark = pytest.mark.asyncio

UNAUTHORIZED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"


async def test_a_call_is_sent_exactly_as_it_is_escaped_below_the_path_of_the_server():
    application = ScriptedServer()
    call = Request("GET", "/api/v1/namespaces/a b/x:y@z/ü%2F", (("labelSelector", "a in (b,c),!d"), ("c", "x+/=&")))
    async with serving(application) as port, reaching(plain(port, path="/clusters/x")) as transport:
        await transport.send(call)
    assert application.heads[0].target == f"/clusters/x{call.url}"
    assert "%20" in call.url


async def test_headers_are_the_calls_the_credentials_and_few_of_ours():
    application = ScriptedServer()
    shown = Credential(
        headers={"Authorization": "Bearer t", "Impersonate-User": "jane"},
        repeated_headers=(("Impersonate-Group", "a"), ("Impersonate-Group", "b")),
    )
    async with serving(application) as port:
        access = Access(server=f"http://127.0.0.1:{port}", credentials=StaticCredentials(shown))
        async with HttpTransport(access, user_agent="tester/1", environment={}) as transport:
            headers = {"Accept": "application/json", "Content-Type": "x/y", "authorization": "Bearer theirs"}
            await transport.send(Request("POST", "/", headers=headers, body=b"{}"))
    (head,) = application.heads
    assert dict(head.fields) == {
        "host": f"127.0.0.1:{port}",
        "accept": "application/json",
        "accept-encoding": "identity",
        "content-type": "x/y",
        "content-length": "2",
        "user-agent": "tester/1",
        "authorization": "Bearer t",
        "impersonate-user": "jane",
        "impersonate-group": "b",
    }
    assert head.values("authorization") == ["Bearer t"]
    assert head.values("impersonate-group") == ["a", "b"]
    assert head.body == b"{}"


async def test_a_call_without_a_body_claims_no_content_type():
    application = ScriptedServer()
    async with serving(application) as port, reaching(plain(port)) as transport:
        await transport.send(Request("POST", "/"))
        await transport.send(Request("DELETE", "/"))
    assert [head.values("content-type") for head in application.heads] == [[], []]
    assert application.heads[0].values("content-length") == ["0"]


async def test_a_large_body_arrives_whole():
    application = ScriptedServer()
    body = bytes(range(256)) * 12_000
    async with serving(application) as port, reaching(plain(port)) as transport:
        await transport.send(Request("PUT", "/", body=body))
    assert application.heads[0].values("content-length") == [str(len(body))]
    assert application.heads[0].body == body


@pytest.mark.parametrize("call", [Request("GET", "/"), Request("POST", "/", body=b"{}")], ids=["GET", "POST"])
async def test_connections_are_kept(call: Request):
    application = ScriptedServer()
    async with serving(application) as port, reaching(plain(port)) as transport:
        for _ in range(5):
            await transport.send(call)
    assert application.connections == 1


async def test_a_redirect_is_handed_over_and_not_followed():
    answer = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://evil.invalid/\r\nContent-Length: 0\r\n\r\n"
    application = ScriptedServer(answer)
    async with serving(application) as port:
        reply = await sent(plain(port, "hidden"))
    assert (reply.status, reply.headers["location"]) == (307, "http://evil.invalid/")
    assert len(application.heads) == 1


async def test_cookies_are_not_kept():
    application = ScriptedServer(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n", OK)
    async with serving(application) as port, reaching(plain(port)) as transport:
        await transport.send(Request("GET", "/"))
        await transport.send(Request("GET", "/"))
    assert application.heads[1].values("cookie") == []


async def test_header_fields_of_the_answer_are_in_lower_case_and_joined():
    answer = b'HTTP/1.1 200 OK\r\nWarning: 299 - "a"\r\nWARNING: 299 - "b"\r\nContent-Length: 0\r\n\r\n'
    async with serving(ScriptedServer(answer)) as port:
        assert (await sent(plain(port))).headers["warning"] == '299 - "a", 299 - "b"'


async def test_packed_answers_are_asked_for_beyond_loopback_and_unpacked():
    packed = gzip.compress(b"x" * 3_000_000)
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(packed), packed)
    proxy = ScriptedServer(answer)
    async with serving(proxy) as port:
        remote = Access(
            server="http://api.invalid", credentials=TokenCredentials(), proxy_url=f"http://127.0.0.1:{port}"
        )
        async with reaching(remote) as transport:
            assert (await transport.send(Request("GET", "/"))).body == b"x" * 3_000_000
    assert proxy.heads[0].values("accept-encoding") == ["gzip"]


async def test_an_answer_that_swells_when_unpacked_is_stopped_at_the_limit():
    packed = gzip.compress(bytes(100_000_000), 1)
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(packed), packed)
    async with serving(ScriptedServer(answer)) as port:
        limits = HttpLimits(max_answer_bytes=1_000_000)
        async with HttpTransport(plain(port), limits=limits, environment={}) as transport:
            with pytest.raises(UnreadableAnswer, match="larger than 1000000 bytes"):
                await transport.send(Request("GET", "/"))


async def test_streams_are_never_packed():
    proxy = ConnectProxy()
    async with serving(proxy) as port:
        remote = Access(
            server="http://api.invalid", credentials=TokenCredentials(), proxy_url=f"http://127.0.0.1:{port}"
        )
        async with reaching(remote) as transport:
            await (await opened(transport)).aclose()
    assert proxy.heads[0].values("accept-encoding") == ["identity"]


# ---- credentials


async def test_a_refused_token_is_replaced_once():
    application = ScriptedServer(UNAUTHORIZED, OK)
    async with serving(application) as port, reaching(plain(port, "old", "new")) as transport:
        reply = await transport.send(Request("POST", "/", body=b"{}"))
    assert reply.status == 200
    assert [head.values("authorization") for head in application.heads] == [["Bearer old"], ["Bearer new"]]
    assert [head.body for head in application.heads] == [b"{}", b"{}"]


async def test_a_token_refused_twice_is_given_up():
    application = ScriptedServer(UNAUTHORIZED)
    async with serving(application) as port:
        reply = await sent(plain(port, "one", "two", "three"))
    assert (reply.status, reply.body) == (401, b"no")
    assert len(application.heads) == 2


async def test_without_another_token_the_refusal_stands():
    application = ScriptedServer(UNAUTHORIZED)
    async with serving(application) as port:
        access = plain(port, "only")
        assert (await sent(access)).status == 401
    assert len(application.heads) == 1
    assert isinstance(access.credentials, TokenCredentials)
    assert access.credentials.refusals == 1


async def test_a_stream_gets_a_fresh_token_too():
    application = ScriptedServer(UNAUTHORIZED, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
    async with serving(application) as port, reaching(plain(port, "old", "new")) as transport:
        stream = await opened(transport)
        assert await anext(stream) == b"one"
        await stream.aclose()


class FailingCredentials:
    async def get_current(self) -> Credential:
        raise CredentialsFailed("the plugin gave nothing")

    def invalidate(self, _credential: Credential) -> None:
        raise AssertionError


async def test_credentials_that_fail_are_reported_and_nothing_is_sent():
    application = ScriptedServer()
    async with serving(application) as port:
        with pytest.raises(CredentialsFailed, match="the plugin gave nothing"):
            await sent(Access(server=f"http://127.0.0.1:{port}", credentials=FailingCredentials()))
    assert application.connections == 0


async def test_a_token_with_a_line_break_is_refused_before_it_is_sent():
    with pytest.raises(CredentialsFailed, match="header Authorization: holds a line break") as caught:
        await sent(plain(1, "hidden\r\nEvil: 1"))
    assert "hidden" not in str(caught.value)
