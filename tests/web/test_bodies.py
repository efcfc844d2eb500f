"""Bodies are read within a size and a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from plimsoll.testing import run_virtual
from plimsoll.web.bodies import BodyRefused, read_body

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SCOPE = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b""}


def read(receive: Callable[[], Awaitable[Any]]) -> bytes | BodyRefused:
    return run_virtual(read_body(Request(SCOPE, receive), max_bytes=10, timeout_s=5.0))


def sender(*chunks: bytes, ends: bool = True) -> tuple[Callable[[], Awaitable[Any]], list[Any]]:
    incoming: list[Any] = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    if ends:
        incoming[-1]["more_body"] = False

    async def receive() -> Any:
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}

    return receive, incoming


def test_a_body_may_come_in_chunks():
    assert read(sender(b"123", b"", b"4567890")[0]) == b"1234567890"


def test_a_body_that_is_too_large_is_not_read_any_further():
    receive, left = sender(b"1234567890", b"1", b"2", b"3")
    assert read(receive) is BodyRefused.TOO_LARGE
    assert len(left) == 2


def test_a_body_that_breaks_off_is_refused():
    assert read(sender(b"12", ends=False)[0]) is BodyRefused.DISCONNECTED


def test_a_body_that_takes_too_long_is_refused():
    async def receive() -> Any:
        await asyncio.sleep(3)
        return {"type": "http.request", "body": b"1", "more_body": True}

    assert read(receive) is BodyRefused.TOO_SLOW
    assert BodyRefused.TOO_SLOW.status == 408
