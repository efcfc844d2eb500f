"""The same application without sockets, in virtual time: nothing leaves the loop's thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.core.errors import Unreachable
from plimsoll.local.apiserver.transport.in_process import InProcessTransport, Stream
from plimsoll.local.apiserver.transport.limits import Limits
from plimsoll.testing import run_virtual
from tests.local.apiserver.transport.fakes import FakeApplication

if TYPE_CHECKING:
    from collections.abc import Coroutine


def reported(story: Coroutine[Any, Any, Any]) -> Any:
    return run_virtual(story)


async def opened(transport: InProcessTransport, url: str) -> Stream:
    answer = await transport.request("GET", url)
    assert isinstance(answer.body, Stream)
    return answer.body


def test_requests_reach_the_application_as_over_the_network():
    async def story() -> None:
        application = FakeApplication()
        transport = InProcessTransport(application)
        answer = await transport.request("POST", "/echo?a=1&a=2", headers={"Content-Type": "x"}, body=b"abc")
        assert isinstance(answer.body, bytes)
        assert msgspec.json.decode(answer.body) == {"method": "POST", "query": [["a", "1"], ["a", "2"]], "size": 3}
        assert application.requests[0].get_header("content-type") == "x"

    reported(story())


def test_a_body_over_the_limit_is_refused_with_the_same_status():
    async def story() -> None:
        application = FakeApplication()
        transport = InProcessTransport(application, limits=Limits(max_body_bytes=10))
        answer = await transport.request("POST", "/echo", body=b"x" * 11)
        assert answer.status == 413
        assert isinstance(answer.body, bytes)
        assert msgspec.json.decode(answer.body)["message"] == "Request entity too large: limit is 10"
        assert application.requests == []
        assert (await transport.request("POST", "/echo", body=b"x" * 10)).status == 200

    reported(story())


def test_a_watch_gives_its_chunks_as_they_come():
    async def story() -> None:
        application = FakeApplication()
        stream = await opened(InProcessTransport(application), "/watch?chunks=2&watch=1")
        assert [await anext(stream), await anext(stream)] == [b'{"number":0}\n', b'{"number":1}\n']
        asyncio.get_running_loop().call_later(60, application.more.set)
        assert [chunk async for chunk in stream] == [b'{"more":true}\n']
        assert application.open_streams == 0

    reported(story())


@pytest.mark.parametrize("chunks_read", [0, 1])
def test_closing_a_stream_closes_the_watch(chunks_read: int):
    async def story() -> None:
        application = FakeApplication()
        async with await opened(InProcessTransport(application), "/watch?chunks=5&watch=1") as stream:
            for _ in range(chunks_read):
                await anext(stream)
        assert application.open_streams == 0
        assert [chunk async for chunk in stream] == []
        await stream.aclose()

    reported(story())


def test_closing_a_stream_ends_a_read_of_the_next_chunk():
    async def story() -> None:
        application = FakeApplication()
        stream = await opened(InProcessTransport(application), "/watch?watch=1")
        reading = asyncio.create_task(all_of(stream))
        await application.watched.wait()
        await stream.aclose()
        assert application.open_streams == 0
        assert await reading == []
        assert reading.cancelling() == 0

    reported(story())


def test_a_reader_that_is_cancelled_closes_the_watch_and_stays_cancelled():
    async def story() -> None:
        application = FakeApplication()
        stream = await opened(InProcessTransport(application), "/watch?watch=1")
        reading = asyncio.create_task(all_of(stream))
        await application.watched.wait()
        reading.cancel()
        await asyncio.wait((reading,))
        assert reading.cancelled()
        assert application.open_streams == 0

    reported(story())


def test_a_reader_cancelled_while_its_stream_is_closed_stays_cancelled():
    async def story() -> None:
        application = FakeApplication()
        stream = await opened(InProcessTransport(application), "/watch?watch=1")
        reading = asyncio.create_task(all_of(stream))
        await application.watched.wait()
        closing = asyncio.create_task(stream.aclose())
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait((reading, closing))
        assert reading.cancelled()
        assert application.open_streams == 0

    reported(story())


def test_closing_the_transport_ends_every_watch_and_refuses_requests():
    async def story() -> None:
        application = FakeApplication()
        transport = InProcessTransport(application)
        streams = [await opened(transport, f"/watch?watch=1&chunks={number}") for number in range(3)]
        reading = [asyncio.create_task(all_of(stream)) for stream in streams]
        await asyncio.sleep(1)  # of virtual time: all three wait for a chunk
        assert application.open_streams == 3
        await transport.aclose()
        assert [len(await task) for task in reading] == [0, 1, 2]
        assert application.open_streams == 0
        with pytest.raises(Unreachable):
            await transport.request("GET", "/echo")

    reported(story())


def test_a_request_is_cancelled_with_its_caller():
    async def story() -> None:
        application = FakeApplication()
        asking = asyncio.create_task(InProcessTransport(application).request("GET", "/slow"))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait((asking,))
        assert asking.cancelled()

    reported(story())


async def all_of(stream: Stream) -> list[bytes]:
    return [chunk async for chunk in stream]
