"""The in-process twin of the network transport: calls end in the same ways, in virtual time."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.errors import AnswerLost, NotSent, TimedOut
from plimsoll.kube.transport import Request as Call
from plimsoll.kube.transport import Response, Stream
from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.http_types import Response as ServerResponse
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.testing import run_virtual
from tests.local.apiserver.transport.fakes import FakeApplication

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from plimsoll.local.apiserver.transport.limits import Handler
    from tests.golden.reviewed_sentences import ReviewedSentences


class TransportHarness:
    def __init__(self, application: Handler, *, token: str = "") -> None:
        self.transport = EmbeddedTransport(application, token=token)

    async def send(self, path: str, **more: Any) -> Response:
        method = more.pop("method", "GET")
        return await self.transport.send(Call(method, path, **more))

    async def watch(self, *, chunks: int = 0, timeout_s: float = 30) -> Stream:
        reply = await self.send("/watch", query=(("chunks", str(chunks)),), is_stream=True, timeout_s=timeout_s)
        assert reply.stream is not None
        return reply.stream


def reported(
    story: Callable[[FakeApplication, TransportHarness], Coroutine[Any, Any, None]], *, token: str = ""
) -> None:
    async def main() -> None:
        application = FakeApplication()
        await story(application, TransportHarness(application, token=token))

    run_virtual(main())


async def all_of(stream: Stream) -> list[bytes]:
    return [chunk async for chunk in stream]


def test_a_call_reaches_the_application_with_method_path_query_and_body():
    async def story(application: FakeApplication, world: TransportHarness) -> None:
        reply = await world.send("/echo", method="POST", query=(("a", "1 &"), ("a", "é")), body=b"abc")
        assert reply.is_success
        assert reply.headers["content-type"] == "application/json"
        assert json.loads(reply.body) == {"method": "POST", "query": [["a", "1 &"], ["a", "é"]], "size": 3}

    reported(story)


def test_the_token_goes_along_and_no_header_of_the_call_takes_its_place():
    async def story(application: FakeApplication, world: TransportHarness) -> None:
        await world.send("/echo", headers={"Authorization": "Bearer other", "Accept": "x"})
        assert application.requests[0].get_header("authorization") == "Bearer ours"
        assert application.requests[0].get_header("accept") == "x"

    reported(story, token="ours")


def test_without_a_token_there_is_no_authorization():
    async def story(application: FakeApplication, world: TransportHarness) -> None:
        await world.send("/echo")
        assert "authorization" not in application.requests[0].headers

    reported(story)


def test_a_refusal_of_a_stream_has_a_body_and_no_stream():
    async def story(application: FakeApplication, world: TransportHarness) -> None:
        reply = await world.send("/nowhere", is_stream=True)
        assert (reply.status, reply.stream) == (404, None)
        assert json.loads(reply.body)["code"] == 404

    reported(story)


def test_header_fields_that_stand_twice_are_joined():
    class Warner:
        async def handle(self, _request: Request) -> ServerResponse:
            return ServerResponse.from_json({}, headers=(("Warning", '299 - "a"'), ("Warning", '299 - "b"')))

    async def main() -> None:
        reply = await TransportHarness(Warner()).send("/")
        assert reply.headers["warning"] == '299 - "a", 299 - "b"'

    run_virtual(main())


def test_a_call_without_an_answer_in_time_may_have_been_done(reviewed: ReviewedSentences):
    async def story(application: FakeApplication, world: TransportHarness) -> None:
        start = asyncio.get_running_loop().time()
        with pytest.raises(TimedOut) as raised:
            await world.send("/slow", timeout_s=7)
        reviewed(str(raised.value))
        assert asyncio.get_running_loop().time() - start == 7

    reported(story)


def test_the_time_of_a_stream_counts_to_its_beginning_only():
    async def story(application: FakeApplication, world: TransportHarness) -> None:
        stream = await world.watch(chunks=1, timeout_s=5)
        asyncio.get_running_loop().call_later(3600, application.more.set)
        assert await all_of(stream) == [b'{"number":0}\n', b'{"more":true}\n']

    reported(story)


def test_an_endless_answer_to_a_call_that_is_no_stream_ends_in_time_and_is_closed():
    async def story(application: FakeApplication, world: TransportHarness) -> None:
        with pytest.raises(TimedOut):
            await world.send("/watch", timeout_s=5)
        assert application.open_streams == 0

    reported(story)


def test_a_bounded_stream_is_read_whole_by_a_call_that_is_no_stream():
    async def story(application: FakeApplication, world: TransportHarness) -> None:
        application.more.set()
        reply = await world.send("/watch", query=(("chunks", "1"),))
        assert (reply.body, reply.stream) == (b'{"number":0}\n{"more":true}\n', None)

    reported(story)


def test_closing_a_stream_ends_a_pending_read():
    async def story(application: FakeApplication, world: TransportHarness) -> None:
        stream = await world.watch()
        reading = asyncio.create_task(all_of(stream))
        await application.watched.wait()
        await stream.aclose()
        await stream.aclose()
        assert await reading == []
        assert application.open_streams == 0

    reported(story)


def test_a_cancelled_reader_closes_its_stream():
    async def story(application: FakeApplication, world: TransportHarness) -> None:
        stream = await world.watch()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(stream), 60)
        assert application.open_streams == 0
        assert await all_of(stream) == []

    reported(story)


def test_closing_the_transport_ends_streams_and_calls_and_refuses_more(reviewed: ReviewedSentences):
    async def story(application: FakeApplication, world: TransportHarness) -> None:
        reading = asyncio.create_task(all_of(await world.watch(chunks=2)))
        asking = asyncio.create_task(world.send("/slow"))
        await application.watched.wait()
        start = asyncio.get_running_loop().time()
        await world.transport.aclose()
        assert len(await reading) == 2
        with pytest.raises(AnswerLost) as raised:
            await asking
        reviewed(str(raised.value))
        with pytest.raises(NotSent):
            await world.send("/echo")
        assert application.open_streams == 0
        assert asyncio.get_running_loop().time() == start

    reported(story)


def test_a_call_is_cancelled_with_its_caller():
    async def story(application: FakeApplication, world: TransportHarness) -> None:
        asking = asyncio.create_task(world.send("/slow"))
        await asyncio.sleep(1)
        asking.cancel()
        await asyncio.wait((asking,))
        assert asking.cancelled()

    reported(story)


def test_leaving_the_block_closes_the_transport():
    async def story(application: FakeApplication, world: TransportHarness) -> None:
        async with world.transport:
            await world.send("/echo")
        with pytest.raises(NotSent):
            await world.send("/echo")

    reported(story)
