"""What a network does to calls and streams, and which of it may have reached the server."""

from __future__ import annotations

import asyncio
import socket

import pytest

from plimsoll.kube.errors import AnswerLost, NotSent, TimedOut, UnreadableAnswer
from plimsoll.kube.http import HttpLimits, HttpTransport
from plimsoll.kube.transport import Request
from tests.e2e.kube_http.servers import (
    CHUNKED,
    OK,
    ScriptedServer,
    ServerConnection,
    opened,
    plain,
    reaching,
    sent,
    serving,
)
from tests.e2e.timeouts import PATIENCE_S

pytestmark = pytest.mark.asyncio


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


async def all_of(stream: object) -> bytes:
    return b"".join([chunk async for chunk in stream])  # type: ignore[attr-defined] # any stream


# ---- calls


async def test_a_server_that_is_not_there():
    port = unused_port()
    with pytest.raises(NotSent) as caught:
        await sent(plain(port))
    wanted = f"cannot reach http://127.0.0.1:{port}: connection refused; is the API server running?"
    assert str(caught.value) == wanted


async def test_a_server_that_accepts_and_never_answers():
    async def silent(peer: ServerConnection) -> None:
        await peer.request()
        await peer.reader.read()

    async with serving(silent) as port:
        with pytest.raises(TimedOut, match=r"GET /version: no answer from http://127\.0\.0\.1:\d+ within 1 s"):
            await sent(plain(port), timeout_s=1)


async def test_a_server_that_stops_in_the_middle_of_its_answer():
    async def stalls(peer: ServerConnection) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nthe beginning")
        await peer.reader.read()

    async with serving(stalls) as port:
        with pytest.raises(TimedOut):
            await sent(plain(port), timeout_s=1)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Ty",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nthe beginning",
        CHUNKED + b"5\r\nhello\r\n",
        CHUNKED + b"5\r\nhel",
        b"\x15\x03\x01\x00\x02\x02\x46",
    ],
    ids=["at once", "in the headers", "in the body", "between chunks", "in a chunk", "not HTTP"],
)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_server_that_hangs_up_is_asked_only_once(answer: bytes, method: str):
    requests = 0

    async def hangs_up(peer: ServerConnection) -> None:
        nonlocal requests
        await peer.request()
        requests += 1
        await peer.say(answer)

    async with serving(hangs_up) as port, reaching(plain(port)) as transport:
        with pytest.raises(AnswerLost) as caught:
            await transport.send(Request(method, "/x", (("token", "hidden"),)))
    assert requests == 1
    assert not isinstance(caught.value, TimedOut)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
async def test_a_kept_connection_that_the_server_closes_is_not_silently_replaced(method: str):
    requests = 0

    async def answers_once(peer: ServerConnection) -> None:
        nonlocal requests
        await peer.request()
        await peer.say(OK)
        await peer.request()
        requests += 1
        peer.reset()

    async with serving(answers_once) as port, reaching(plain(port)) as transport:
        assert (await transport.send(Request("GET", "/"))).is_success
        with pytest.raises(AnswerLost):
            await transport.send(Request(method, "/"))
    assert requests == 1


async def test_an_answer_without_a_length_ends_with_the_connection():
    async def old(peer: ServerConnection) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall there is")

    async with serving(old) as port:
        assert (await sent(plain(port))).body == b"all there is"


async def test_an_answer_over_the_limit_is_not_kept():
    async def floods(peer: ServerConnection) -> None:
        await peer.request()
        await peer.say(CHUNKED)
        while True:
            await peer.chunk(b"x" * 65_536)

    async with serving(floods) as port:
        transport = HttpTransport(plain(port), limits=HttpLimits(max_answer_bytes=1_000_000), environment={})
        async with transport:
            with pytest.raises(UnreadableAnswer, match="GET /: the answer is larger than 1000000 bytes"):
                await transport.send(Request("GET", "/"))


async def test_calls_wait_for_a_place_and_are_not_sent_if_none_comes():
    asked = asyncio.Event()
    targets: list[str] = []

    async def slow(peer: ServerConnection) -> None:
        targets.append((await peer.request()).target)
        asked.set()
        await peer.reader.read()

    async with serving(slow) as port:
        async with HttpTransport(plain(port), limits=HttpLimits(calls_at_once=1), environment={}) as transport:
            first = asyncio.create_task(transport.send(Request("GET", "/first", timeout_s=PATIENCE_S)))
            await asked.wait()
            with pytest.raises(NotSent, match="still waiting for one of 1 calls to end"):
                await transport.send(Request("GET", "/second", timeout_s=0.1))
            assert not first.done()
        with pytest.raises(AnswerLost):
            await first
    assert targets == ["/first"]


async def test_a_cancelled_call_lets_go_of_its_connection():
    gone = asyncio.Event()
    asked = asyncio.Event()

    async def silent(peer: ServerConnection) -> None:
        await peer.request()
        asked.set()
        await peer.reader.read()
        gone.set()

    async with serving(silent) as port, reaching(plain(port)) as transport:
        asking = asyncio.create_task(transport.send(Request("GET", "/")))
        await asked.wait()
        asking.cancel()
        await asyncio.wait((asking,))
        assert asking.cancelled()
        await asyncio.wait_for(gone.wait(), PATIENCE_S)


# ---- streams


async def test_a_stream_gives_chunks_as_they_come_and_ends_when_the_server_ends_it():
    async def counts(peer: ServerConnection) -> None:
        await peer.request()
        await peer.say(CHUNKED)
        await peer.chunk(b"one\n")
        await may_go_on.wait()
        await peer.chunk(b"two\n")
        await peer.say(b"0\r\n\r\n")
        await ScriptedServer()(peer)

    may_go_on = asyncio.Event()
    async with serving(counts) as port, reaching(plain(port)) as transport:
        stream = await opened(transport)
        assert await anext(stream) == b"one\n"
        may_go_on.set()
        assert await all_of(stream) == b"two\n"
        assert (await transport.send(Request("GET", "/"))).is_success


@pytest.mark.parametrize("with_reset", [False, True], ids=["closed", "reset"])
async def test_a_stream_whose_connection_breaks_is_lost(with_reset: bool):
    async def breaks(peer: ServerConnection) -> None:
        await peer.request()
        await peer.say(CHUNKED)
        await peer.chunk(b"one\n")
        await was_read.wait()
        if with_reset:
            peer.reset()

    was_read = asyncio.Event()
    async with serving(breaks) as port, reaching(plain(port)) as transport:
        stream = await opened(transport)
        assert await anext(stream) == b"one\n"
        was_read.set()
        with pytest.raises(AnswerLost, match="broke after 4 bytes of a stream"):
            await anext(stream)
        assert await all_of(stream) == b""


async def silent_stream(peer: ServerConnection) -> None:
    await peer.request()
    await peer.say(CHUNKED)
    await peer.reader.read()


async def test_a_stream_has_no_time_limit_after_its_beginning():
    async with serving(silent_stream) as port, reaching(plain(port)) as transport:
        reply = await transport.send(Request("GET", "/", is_stream=True, timeout_s=1))
        assert reply.stream is not None
        reading = asyncio.create_task(anext(reply.stream))
        done, _ = await asyncio.wait((reading,), timeout=1.5)
        assert not done
        await reply.stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await reading


async def test_the_beginning_of_a_stream_has_a_time_limit():
    async def silent(peer: ServerConnection) -> None:
        await peer.reader.read()

    async with serving(silent) as port, reaching(plain(port)) as transport:
        with pytest.raises(TimedOut):
            await transport.send(Request("GET", "/", is_stream=True, timeout_s=1))


async def test_closing_a_stream_ends_a_pending_read_and_closes_the_connection():
    gone = asyncio.Event()

    async def until_gone(peer: ServerConnection) -> None:
        await silent_stream(peer)
        gone.set()

    async with serving(until_gone) as port, reaching(plain(port)) as transport:
        stream = await opened(transport)
        reading = asyncio.create_task(all_of(stream))
        await asyncio.sleep(0)
        await stream.aclose()
        await stream.aclose()
        assert await reading == b""
        await asyncio.wait_for(gone.wait(), PATIENCE_S)


async def test_a_cancelled_reader_ends_its_stream():
    async with serving(silent_stream) as port, reaching(plain(port)) as transport:
        stream = await opened(transport)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(stream), 0.05)
        assert await all_of(stream) == b""


async def test_the_refusal_of_a_stream_has_a_body():
    answer = b"HTTP/1.1 410 Gone\r\nContent-Length: 13\r\n\r\n{'code': 410}"
    async with serving(ScriptedServer(answer)) as port, reaching(plain(port)) as transport:
        reply = await transport.send(Request("GET", "/", is_stream=True))
        assert (reply.status, reply.body, reply.stream) == (410, b"{'code': 410}", None)


# ---- the transport


async def test_closing_the_transport_ends_everything_and_refuses_more():
    asked = asyncio.Event()

    async def silent(peer: ServerConnection) -> None:
        head = await peer.request()
        if head.target == "/watch":
            await peer.say(CHUNKED)
        else:
            asked.set()
        await peer.reader.read()

    async with serving(silent) as port:
        transport = reaching(plain(port))
        reading = asyncio.create_task(all_of(await opened(transport)))
        asking = asyncio.create_task(transport.send(Request("GET", "/slow")))
        await asked.wait()
        await transport.aclose()
        assert await reading == b""
        with pytest.raises(AnswerLost, match="closed on our side"):
            await asking
        with pytest.raises(NotSent, match="is closed"):
            await transport.send(Request("GET", "/"))
        await transport.aclose()


async def test_a_transport_belongs_to_one_loop():
    async with serving(ScriptedServer()) as port, reaching(plain(port)) as transport:
        await transport.send(Request("GET", "/"))
        elsewhere = transport.send(Request("GET", "/"))
        with pytest.raises(RuntimeError, match="make one for each"):
            await asyncio.to_thread(asyncio.run, elsewhere)


async def test_sockets_notice_a_peer_that_is_gone_without_a_word():
    async with serving(silent_stream) as port, reaching(plain(port)) as transport:
        stream = await opened(transport)
        connection = stream._response.connection  # type: ignore[attr-defined] # no other way to the socket
        raw = connection.transport.get_extra_info("socket")
        assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 5
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 45_000
        await stream.aclose()
