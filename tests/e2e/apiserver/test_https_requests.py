"""What clients that keep to the rules get, over a real TLS socket."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

import pytest

from plimsoll.local.apiserver.data_directory import DataDirectory
from plimsoll.local.apiserver.transport.certificates import load_server_certificates
from plimsoll.local.apiserver.transport.limits import Limits
from plimsoll.runtime.clocks import RealClock
from plimsoll.web.serving import CannotListen, bind_socket
from tests.e2e.apiserver.raw_clients import serving, until
from tests.local.apiserver.transport.fakes import FakeApplication

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio


async def test_a_connection_serves_many_requests_one_after_the_other(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        for number in range(3):
            answer = await client.ask(f"POST /echo?n={number}&blank=", b"x" * number)
            assert answer.json == {"method": "POST", "query": [["n", str(number)], ["blank", ""]], "size": number}
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "no-cache, private"
        assert "date" in answer.headers
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


async def test_a_large_answer_arrives_whole(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        answer = await client.ask("GET /big?bytes=20000000")
        assert answer.body == b"x" * 20_000_000
        assert (await client.ask("GET /echo")).status == 200


async def test_a_chunked_body_is_taken_like_any_other(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        await client.send(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        await client.send(b"3\r\nabc\r\n")
        await client.send(b"2\r\nde\r\n0\r\n\r\n")
        assert (await client.response()).json["size"] == 5


async def test_a_request_that_expects_100_continue_gets_it(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        head = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        await client.send(head)
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(b"abc")
        assert (await client.response()).json["size"] == 3


async def test_pipelined_requests_are_answered_in_order(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        await client.send(b"".join(b"GET /echo?n=%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % n for n in range(20)))
        reported = [(await client.response()).json["query"] for _ in range(20)]
        assert reported == [[["n", str(number)]] for number in range(20)]


async def test_head_is_answered_without_a_body(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        await client.send(b"HEAD /big?bytes=1000000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await client.response_head())[1]["content-length"] == "1000000"
        assert (await client.ask("GET /echo")).json["method"] == "GET"


async def test_text_of_clients_makes_no_headers(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        answer = await client.ask("GET /warned")
        assert answer.headers["warning"] == '299 - "unknown field   x-evil: 1 ü"'
        assert "x-evil" not in answer.headers


async def test_a_client_with_another_authority_refuses_the_server(tmp_path: Path):
    other = load_server_certificates(DataDirectory(tmp_path / "other"), host="127.0.0.1", now=RealClock().now())
    async with serving(FakeApplication(), tmp_path / "ours") as server:
        with pytest.raises(ssl.SSLCertVerificationError):
            await server._replace(ca_pem=other.ca_pem).connected()
        async with server.client() as client:
            assert (await client.ask("GET /echo")).status == 200


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
async def test_the_certificate_names_loopback(tmp_path: Path, name: str):
    async with serving(FakeApplication(), tmp_path) as server:
        trusting = ssl.create_default_context(cadata=server.ca_pem.decode())
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting, server_hostname=name)
        assert writer.get_extra_info("ssl_object").version() in ("TLSv1.2", "TLSv1.3")
        assert writer.get_extra_info("ssl_object").getpeercert()["notAfter"]
        writer.close()
        await writer.wait_closed()


async def test_tls_older_than_1_2_is_refused(tmp_path: Path):
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname = False
    old.verify_mode = ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    async with serving(FakeApplication(), tmp_path) as server:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", server.port, ssl=old)


async def test_a_busy_port_is_named_with_what_to_do(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path) as server:
        with pytest.raises(CannotListen, match=f"port {server.port} of 127.0.0.1 is in use.*--port"):
            bind_socket("127.0.0.1", server.port)
        assert CannotListen.exit_code == 2


async def test_watches_end_and_requests_finish_when_the_server_stops(tmp_path: Path):
    application = FakeApplication()
    async with serving(application, tmp_path) as server:
        watching, asking, idle = [await server.connected() for _ in range(3)]
        await watching.send(b"GET /watch?chunks=2&watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await watching.response_head())[0] == 200
        assert [await watching.chunk(), await watching.chunk()] == [b'{"number":0}\n', b'{"number":1}\n']
        await asking.send(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await until(lambda: len(application.requests) == 2)
        server.serving.cancel()
        assert await watching.chunk() is None
        assert await idle.is_cut_off()
        await until(lambda: not application.open_streams)
        application.may_answer.set()
        assert (await asking.response()).body == b"at last"
        for client in (watching, asking, idle):
            await client.close()
        await asyncio.wait((server.serving,))
        assert server.serving.cancelled()
        with pytest.raises(ConnectionRefusedError):
            await server.connected()


async def test_what_does_not_finish_within_the_grace_is_cut_off(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    application = FakeApplication()
    async with serving(application, tmp_path, Limits(grace_s=0.05)) as server, server.client() as client:
        await client.send(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await until(lambda: application.requests)
        await server.stop()
        assert await client.is_cut_off()
    assert caplog.records == []
