"""Addresses that can be listened on; servers over sockets: tests/e2e."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.web.serving import CannotListen, bind_socket, check_address, parse_address, serve_on_socket

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences


@pytest.mark.parametrize(
    ("address", "parsed"),
    [(":8085", ("0.0.0.0", 8085)), ("localhost:0", ("localhost", 0)), ("[::1]:8085", ("::1", 8085))],
)
def test_an_address_is_host_and_port(address: str, parsed: tuple[str, int]):
    assert parse_address(address) == parsed


@pytest.mark.parametrize("address", ["", "8085x", "localhost", "localhost:", ":65536", "a:-1"])
def test_any_other_address_is_refused(address: str, reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as refused:
        parse_address(address)
    reviewed(str(refused.value))


def test_an_address_in_use_is_refused_with_advice(reviewed: ReviewedSentences):
    with bind_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"port {port} of 127.0.0.1 is in use"):
            bind_socket("127.0.0.1", port)
        with pytest.raises(InvalidInput) as raised:
            check_address(f"127.0.0.1:{port}")
        reviewed(str(raised.value).replace(str(port), "PORT"))
    check_address(f"127.0.0.1:{port}")


async def ask(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
    await writer.drain()
    return reader, writer


@pytest.mark.parametrize("drain_s", [0.0, 30.0])
def test_a_server_that_is_cancelled_answers_what_is_under_way_if_it_drains(drain_s: float):
    async def story() -> None:
        has_begun, may_end = asyncio.Event(), asyncio.Event()

        async def answer(_scope: Any, _receive: Any, send: Any) -> None:
            has_begun.set()
            await may_end.wait()
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
            await send({"type": "http.response.body", "body": b"done"})

        listening = bind_socket("127.0.0.1", 0)
        port = listening.getsockname()[1]
        serving = asyncio.create_task(serve_on_socket(answer, listening, drain_s=drain_s))
        reader, writer = await ask(port)
        await has_begun.wait()
        serving.cancel()
        await asyncio.sleep(0)
        assert serving.done() == (not drain_s)
        if drain_s:
            may_end.set()
            assert (await reader.read()).endswith(b"done")
        await asyncio.wait((serving,))
        assert serving.cancelled()
        may_end.set()
        writer.close()
        listening.close()

    asyncio.run(asyncio.wait_for(story(), 60))
