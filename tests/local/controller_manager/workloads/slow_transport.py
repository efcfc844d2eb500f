"""A way to the API server on which some calls take long and news come late: what caches lag behind by."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from plimsoll.kube.transport import Request, Response, Stream


class SlowPort:
    """News of `late` come `late_s` late. `slow` are method and end of the path of calls that take `takes_s` more."""

    def __init__(
        self,
        *,
        late: str = "pods",
        late_s: float = 0.0,
        slow: tuple[str, str] = ("", ""),
        takes_s: float = 0.0,
    ) -> None:
        self._calls: list[tuple[str, str]] = []
        self._late = late
        self._late_s = late_s
        self._slow = slow
        self._takes_s = takes_s

    def wrap(self, port: Any) -> Any:
        return _SlowTransport(port, self)

    def count(self, method: str, path: str) -> int:
        return self._calls.count((method, path))

    async def send(self, port: Any, call: Request) -> Response:
        self._calls.append((call.method, call.path))
        method, end = self._slow
        if method == call.method and call.path.endswith(end):
            await asyncio.sleep(self._takes_s)
        reply: Response = await port.send(call)
        if reply.stream is not None and call.path.endswith(f"/{self._late}"):
            return reply._replace(stream=_DelayedStream(reply.stream, self._late_s))
        return reply


class _SlowTransport:
    def __init__(self, port: Any, slow: SlowPort) -> None:
        self._port = port
        self._slow = slow

    async def send(self, call: Request) -> Response:
        return await self._slow.send(self._port, call)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)


class _DelayedStream:
    """A stream whose chunks come late, and one after the other: each waits for those before it."""

    def __init__(self, stream: Stream, late_s: float) -> None:
        self._stream = stream
        self._late_s = late_s

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        chunk = await anext(self._stream)
        await asyncio.sleep(self._late_s)
        return chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
