"""An application that does what a test sets, and its surroundings."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from plimsoll.local.apiserver.http_types import Request, Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class FakeApplication:
    """`/echo` returns its request, `/big` answers much, `/watch` counts, `/silence` is a watch without events."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.open_streams = 0
        self.watched = asyncio.Event()
        """A client waits for a chunk that only `more` brings."""
        self.more = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def handle(self, request: Request) -> Response:
        self.requests.append(request)
        match request.path:
            case "/echo":
                reported = {"method": request.method, "query": list(request.query), "size": len(request.body)}
                return Response.from_json(reported)
            case "/big":
                return Response(200, b"x" * int(request.get_parameter("bytes") or 0))
            case "/watch":
                return Response(200, self._count(int(request.get_parameter("chunks") or 0)))
            case "/flood":
                return Response(200, self._flood())
            case "/slow":
                await self.may_answer.wait()
                return Response.from_text("at last")
            case "/warned":
                return Response.from_json({}, headers=(("Warning", '299 - "unknown field \r\nX-Evil: 1 ü"'),))
            case _:
                return Response.from_json({"kind": "Status", "code": 404}, status=404)

    async def _count(self, chunks: int) -> AsyncIterator[bytes]:
        self.open_streams += 1
        try:
            for number in range(chunks):
                yield b'{"number":%d}\n' % number
            self.watched.set()
            await self.more.wait()
            yield b'{"more":true}\n'
        finally:
            self.open_streams -= 1

    async def _flood(self) -> AsyncIterator[bytes]:
        self.open_streams += 1
        try:
            while True:
                yield b"x" * 65_536
        finally:
            self.open_streams -= 1
