"""What clients that do not keep to the rules get, and that no other client notices them."""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from plimsoll.local.apiserver.transport.limits import Limits
from tests.e2e.apiserver.raw_clients import serving, until
from tests.local.apiserver.transport.fakes import FakeApplication

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.apiserver.raw_clients import RunningServer

pytestmark = pytest.mark.asyncio

MIB = 1024 * 1024
# Short for a client that makes the server wait, long for one that does not, also on a machine that is busy.
SHORT = 0.5


async def still_serves(server: RunningServer) -> bool:
    async with server.client() as client:
        return (await client.ask("GET /echo")).status == 200


# ---- bodies


async def test_a_body_over_the_limit_is_refused_in_kubernetes_words(tmp_path: Path):
    application = FakeApplication()
    async with serving(application, tmp_path) as server, server.client() as client:
        answer = await client.ask("POST /echo", b"x" * (3 * MIB + 1))
        assert answer.status == 413
        assert answer.headers["content-type"] == "application/json"
        assert answer.json == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Request entity too large: limit is 3145728",
            "reason": "RequestEntityTooLarge",
            "code": 413,
        }
        assert (await client.ask("POST /echo", b"x" * 3 * MIB)).json["size"] == 3 * MIB
        assert len(application.requests) == 1


async def test_a_body_without_length_is_refused_when_it_has_grown_too_large(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        await client.send(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(4):
            await client.send(b"100000\r\n" + b"x" * MIB + b"\r\n")
        assert (await client.response()).status == 413
        await client.send(b"0\r\n\r\n")
        assert (await client.ask("GET /echo")).status == 200


async def test_an_endless_body_is_cut_off_after_its_answer(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        await client.send(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        sending = asyncio.create_task(send_without_end(client.writer))
        assert (await client.response()).status == 413
        assert await client.is_cut_off()
        with pytest.raises(ConnectionError):
            await sending


async def send_without_end(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"100000\r\n" + b"x" * MIB + b"\r\n")
        await writer.drain()
        await asyncio.sleep(0)  # drain does not wait once the socket is gone, and the news comes with the next turn


async def test_a_client_that_expects_100_continue_for_too_much_gets_417(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        head = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9999999\r\n\r\n"
        await client.send(head)
        answer = await client.response()
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert await client.is_cut_off()


async def test_half_a_body_ties_up_nothing_and_ends_with_408(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path, Limits(body_s=SHORT)) as server, server.client() as client:
        await client.send(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf")
        assert await still_serves(server)
        assert (await client.response()).status == 408
        assert await client.is_cut_off()


async def test_half_bodies_of_a_token_do_not_use_up_its_writes(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path, Limits(mutating=1)) as server, server.client() as client:
        halves = [await server.connected() for _ in range(3)]
        for half in halves:
            await half.send(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf")
        assert await still_serves(server)
        assert (await client.ask("POST /echo", b"whole")).status == 200
        for half in halves:
            await half.close()


async def test_all_bodies_together_have_a_limit(tmp_path: Path):
    limits = Limits(max_bodies_bytes=MIB)
    async with serving(FakeApplication(), tmp_path, limits) as server, server.client() as one, server.client() as other:
        await one.send(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 700000\r\n\r\n" + b"x" * 600_000)
        while (await other.ask("POST /echo", b"x" * 600_000)).status == 200:  # until the first one's bytes are in
            pass
        await one.send(b"x" * 100_000)
        assert (await one.response()).json["size"] == 700_000
        assert (await other.ask("POST /echo", b"x" * 600_000)).status == 200


# ---- heads


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET /echo HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET / echo HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHo st: localhost\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: local\x00host\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET https://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x00" * 1000,
    ],
)
async def test_malformed_requests_are_answered_400_without_a_word_in_the_log(
    tmp_path: Path, sent: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
):
    application = FakeApplication()
    async with serving(application, tmp_path) as server, server.client() as client:
        await client.send(sent)
        assert (await client.response()).status == 400
        assert await client.is_cut_off()
        assert application.requests == []
        assert await still_serves(server)
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


async def test_a_malformed_chunk_ends_the_connection(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    application = FakeApplication()
    async with serving(application, tmp_path) as server, server.client() as client:
        await client.send(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n")
        assert (await client.response()).status == 400
        assert await client.is_cut_off()
        assert application.requests == []
    assert caplog.records == []


@pytest.mark.parametrize("sent", [b"GET /echo?", b"GET /echo HTTP/1.1\r\nHost: localhost\r\nX: "])
async def test_a_head_that_is_too_large_is_refused(tmp_path: Path, sent: bytes):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        await client.send(sent + b"x" * 300_000)
        assert (await client.response()).status == 431
        assert await client.is_cut_off()


async def test_a_head_of_a_long_selector_is_served(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        assert (await client.ask(f"GET /echo?labelSelector={'x' * 100_000}")).status == 200


@pytest.mark.parametrize("sent", [b"", b"GET /echo HT", b"GET /echo HTTP/1.1\r\nHost: loc"])
async def test_half_a_head_ties_up_nothing_and_is_cut_off(tmp_path: Path, sent: bytes):
    async with serving(FakeApplication(), tmp_path, Limits(head_s=SHORT)) as server, server.client() as client:
        await client.send(sent)
        assert await still_serves(server)
        assert await client.is_cut_off()


async def test_a_head_that_drips_is_cut_off(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path, Limits(head_s=SHORT)) as server, server.client() as client:
        dripping = asyncio.create_task(drip(client.writer))
        assert await client.is_cut_off()
        dripping.cancel()


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET /echo HTTP/1.1\r\nHost: localhost\r\nX: ")
    while True:
        writer.write(b"x")
        await asyncio.sleep(SHORT / 10)


async def test_an_idle_connection_is_closed(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path, Limits(idle_s=SHORT)) as server, server.client() as client:
        assert (await client.ask("GET /echo")).status == 200
        assert await client.is_cut_off()


async def test_an_upgrade_is_answered_as_a_plain_request(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        answer = await client.ask("GET /echo\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Key: x")
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await client.is_cut_off()


async def test_requests_that_were_damaged_on_the_way_are_answered_or_cut_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
):
    chance = random.Random(3)
    whole = b"POST /echo?a=b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nX: y\r\n\r\nhello"
    statuses: set[int] = set()

    async def ask(request: bytes) -> None:
        async with server.client() as client:
            await client.send(request)
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                statuses.add((await client.response()).status)

    async with serving(FakeApplication(), tmp_path, Limits(head_s=SHORT, body_s=SHORT, idle_s=SHORT)) as server:
        for _ in range(20):
            async with asyncio.TaskGroup() as asking:
                for _ in range(10):
                    asking.create_task(ask(damaged(whole, chance)))
        assert await still_serves(server)
    assert {200, 400, 403} <= statuses <= {200, 400, 403, 404, 408, 413}
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def damaged(request: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, lost or added."""
    result = bytearray(request)
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(result))
        length = chance.choice((0, 1, 1, 8))
        result[place : place + length] = chance.randbytes(chance.choice((0, 1, 1, 8)))
    return bytes(result)


# ---- hosts


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Host: localhost", 200),
        ("Host: LOCALHOST:1234", 200),
        ("Host: 127.0.0.1", 200),
        ("Host: [::1]:6443", 200),
        ("Host: evil.example", 403),
        ("Host: localhost.evil.example", 403),
        ("Host: user@localhost", 403),
        ("Host: localhost:x", 403),
        ("Host:", 403),
        ("Host: 10.0.0.1", 403),
        ("Host: localhost\r\nOrigin: https://evil.example", 403),
        ("Host: localhost\r\nOrigin: null", 403),
        ("Host: localhost\r\nOrigin: http://localhost", 403),
        ("Host: localhost\r\nOrigin: https://localhost:6443", 200),
        ("X: y", 400),
        ("Host: localhost\r\nHost: localhost", 400),
    ],
)
async def test_requests_must_name_the_server_and_come_from_no_other_page(tmp_path: Path, headers: str, status: int):
    async with serving(FakeApplication(), tmp_path) as server, server.client() as client:
        await client.send(f"GET /echo HTTP/1.1\r\n{headers}\r\n\r\n".encode())
        assert (await client.response()).status == status


# ---- numbers


@pytest.mark.parametrize(
    ("limits", "method"),
    [(Limits(mutating=2), "POST"), (Limits(reading=2), "GET")],
)
async def test_too_many_requests_of_one_token_are_refused_and_others_served(
    tmp_path: Path, limits: Limits, method: str
):
    application = FakeApplication()
    async with serving(application, tmp_path, limits) as server:
        waiting = [await server.connected() for _ in range(2)]
        for client in waiting:
            await client.send(
                f"{method} /slow HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer one\r\n\r\n".encode()
            )
        await until(lambda: len(application.requests) == 2)
        async with server.client() as client:
            refused = await client.ask(f"{method} /echo\nAuthorization: Bearer one")
            assert (refused.status, refused.headers["retry-after"]) == (429, "1")
            assert refused.json["reason"] == "TooManyRequests"
            assert refused.json["details"] == {"retryAfterSeconds": 1}
            assert (await client.ask(f"{method} /echo\nAuthorization: Bearer other")).status == 200
            application.may_answer.set()
            for waiter in waiting:
                assert (await waiter.response()).status == 200
                await waiter.close()
            assert (await client.ask(f"{method} /echo\nAuthorization: Bearer one")).status == 200


async def test_watches_have_a_limit_of_their_own_which_disconnecting_frees(tmp_path: Path):
    application = FakeApplication()
    async with serving(application, tmp_path, Limits(watches=1)) as server, server.client() as client:
        watching = await server.connected()
        await watching.send(b"GET /watch?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await application.watched.wait()
        assert (await client.ask("GET /watch?watch=true")).status == 429
        assert (await client.ask("GET /echo")).status == 200
        await watching.close()
        await until(lambda: not application.open_streams)
        application.more.set()
        assert (await client.ask("GET /watch?watch=true")).status == 200


async def test_a_client_that_goes_ends_its_watch_at_once(tmp_path: Path):
    application = FakeApplication()
    async with serving(application, tmp_path) as server:
        client = await server.connected()
        await client.send(b"GET /watch?chunks=1&watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await application.watched.wait()
        client.writer.transport.abort()
        await until(lambda: not application.open_streams)
        await client.close()


async def test_a_client_that_never_reads_is_cut_off_and_others_are_served(tmp_path: Path):
    application = FakeApplication()
    async with serving(application, tmp_path, Limits(write_stall_s=SHORT)) as server:
        deaf = await server.connected()
        deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await deaf.send(b"GET /flood?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await until(lambda: application.open_streams)
        assert await still_serves(server)
        await until(lambda: not application.open_streams)
        deaf.writer.transport.abort()


async def test_a_large_response_that_is_not_read_is_given_up(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path, Limits(write_stall_s=SHORT)) as server:
        deaf = await server.connected()
        deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await deaf.send(b"GET /big?bytes=60000000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await until(lambda: server.listener.connections)
        await until(lambda: not server.listener.connections)
        deaf.writer.transport.abort()


async def test_connections_beyond_the_limit_push_out_those_that_only_wait(tmp_path: Path):
    limits = Limits(max_connections=10)
    async with serving(FakeApplication(), tmp_path, limits) as server:
        silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(60)]
        assert await still_serves(server)
        await until(lambda: server.listener.connections <= 10)
        assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()


async def test_connections_that_are_at_work_are_not_pushed_out(tmp_path: Path):
    application = FakeApplication()
    async with serving(application, tmp_path, Limits(max_connections=2)) as server:
        watching = [await server.connected() for _ in range(2)]
        for client in watching:
            await client.send(b"GET /watch?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await client.response_head()
        with pytest.raises(ConnectionError):
            await server.connected()
        application.more.set()
        for client in watching:
            assert await client.chunk() == b'{"more":true}\n'
            assert await client.chunk() is None
        assert await still_serves(server)
        for client in watching:
            await client.close()


async def test_a_client_that_never_shakes_hands_is_cut_off(tmp_path: Path):
    async with serving(FakeApplication(), tmp_path, Limits(handshake_s=SHORT)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        assert await reader.read() == b""
        writer.close()


async def test_plain_http_and_noise_instead_of_a_handshake_are_harmless(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with serving(FakeApplication(), tmp_path) as server:
        for noise in (
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"\x00" * 5000,
            b"\x16\x03\x01\xff\xff" + b"x" * 9000,
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(noise)
            writer.write_eof()
            with suppress(ConnectionError):
                await reader.read()
            writer.close()
        assert await still_serves(server)
    assert caplog.records == []


async def test_a_client_that_resets_its_connection_leaves_nothing_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    application = FakeApplication()
    async with serving(application, tmp_path) as server:
        for _ in range(20):
            client = await server.connected()
            await client.send(b"GET /watch?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await client.response_head()
            raw = client.writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            client.writer.transport.abort()
        await until(lambda: not server.listener.connections and not application.open_streams)
    assert caplog.records == []


async def test_a_pipelined_request_behind_a_watch_does_not_hide_that_the_client_went(tmp_path: Path):
    application = FakeApplication()
    async with serving(application, tmp_path) as server:
        client = await server.connected()
        request = b"GET /watch?watch=1&chunks=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        await client.send(request + request)
        await application.watched.wait()
        client.writer.transport.abort()
        application.more.set()
        await until(lambda: not server.listener.connections and not application.open_streams)
        assert len(application.requests) == 1
