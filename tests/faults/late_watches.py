"""Watches that are behind: a kind's changes are kept from everybody who watches it until they are let through.

Everything else is answered at once, so that a cache and the server disagree for as long as a test wants.

    late = LateWatches()
    with LocalClusterHarness(parts, through=late.wrap) as world:
        late.hold("pods")
        ...                       # what happens to pods now, no informer sees
        late.release("pods")
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from plimsoll.kube.transport import Request, Response, Stream, Transport


class LateWatches:
    """`wrap` goes around a transport; kinds are named by their plural, the last part of the path."""

    def __init__(self) -> None:
        self._held: dict[str, asyncio.Event] = {}

    def wrap(self, transport: Any) -> Transport:
        return _LateTransport(transport, self)

    def hold(self, plural: str) -> None:
        self._held[plural] = asyncio.Event()

    def release(self, plural: str) -> None:
        self._held.pop(plural).set()

    async def passes(self, plural: str) -> None:
        held = self._held.get(plural)
        if held is not None:
            await held.wait()


class _LateTransport:
    def __init__(self, transport: Transport, late: LateWatches) -> None:
        self._transport = transport
        self._late = late

    async def send(self, call: Request) -> Response:
        reply = await self._transport.send(call)
        if reply.stream is None:
            return reply
        return reply._replace(stream=_LateStream(reply.stream, self._late, call.path.rpartition("/")[2]))

    async def aclose(self) -> None:
        await self._transport.aclose()


class _LateStream:
    def __init__(self, stream: Stream, late: LateWatches, plural: str) -> None:
        self._stream = stream
        self._late = late
        self._plural = plural

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        chunk = await anext(self._stream)
        await self._late.passes(self._plural)
        return chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
