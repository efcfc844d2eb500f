"""The application without sockets: for clients in the same process, above all under virtual time.

Same requests, same answers, same limit on bodies as over the network; what a network adds (connections, timeouts,
hosts) is left out. It starts no task: a request runs in its caller's, and is cancelled with it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

from plimsoll.kube.errors import ServerUnreachable
from plimsoll.local.apiserver.http_types import Request, Response
from plimsoll.local.apiserver.transport.limits import Limits, body_too_large

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from plimsoll.local.apiserver.transport.limits import Handler


class InProcessTransport:
    """A door to one application. `aclose` ends the watches that came through it."""

    def __init__(self, application: Handler, *, limits: Limits | None = None) -> None:
        self._application = application
        self._limits = limits or Limits()
        self._streams: set[Stream] = set()
        self._is_closed = False

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        """The answer; the body of a watch is a `Stream`. Raises `ServerUnreachable` once the transport is closed."""
        return await self.handle(Request.build(method, url, headers=headers, body=body))

    async def handle(self, request: Request) -> Response:
        """The same for a request that needs no reading."""
        if self._is_closed:
            raise ServerUnreachable("the in-process API server is stopped")
        if len(request.body) > self._limits.max_body_bytes:
            return Response.from_json(body_too_large(self._limits).status, status=413)
        response = await self._application.handle(request)
        if isinstance(response.body, bytes):
            return response
        stream = Stream(response.body, self._streams)
        return response._replace(body=stream)

    async def aclose(self) -> None:
        """End all streams; further requests fail."""
        self._is_closed = True
        for stream in tuple(self._streams):
            await stream.aclose()


class Stream:
    """The chunks of a watch: `async for`, and `aclose` (or `async with`) when done, also while a reader waits.

    A wait that is cancelled ends the stream, as it ends an async generator.
    """

    def __init__(self, chunks: AsyncIterator[bytes], siblings: set[Stream]) -> None:
        self._chunks = chunks
        self._siblings = siblings
        self._reader: asyncio.Task[Any] | None = None
        self._left: asyncio.Future[None] | None = None
        """Set by `aclose` while a reader is inside: done when it has left."""
        siblings.add(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self not in self._siblings:
            raise StopAsyncIteration
        reader = self._reader = asyncio.current_task()
        assert reader is not None
        try:
            return await anext(self._chunks)
        except StopAsyncIteration:
            self._siblings.discard(self)
            raise
        except asyncio.CancelledError:
            self._siblings.discard(self)
            # As asyncio.timeout does it: our own cancellation ends here, any other one propagates.
            if self._left is None or reader.uncancel():
                raise
            raise StopAsyncIteration from None
        finally:
            self._reader = None
            if self._left is not None and not self._left.done():
                self._left.set_result(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the stream and release what it holds. Idempotent."""
        self._siblings.discard(self)
        if self._reader is not None:
            if self._left is None:
                self._left = asyncio.get_running_loop().create_future()
                self._reader.cancel()
            await asyncio.wait((self._left,))
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()
