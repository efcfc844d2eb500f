"""The body of a watch, read from the connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

import aiohttp

from plimsoll.kube.errors import AnswerLost
from plimsoll.kube.http.connections import release

if TYPE_CHECKING:
    from collections.abc import MutableSet


class HttpStream:
    """A `kube.transport.Stream` over one connection, which is closed with it.

    A wait that is cancelled ends the stream, as it does with the in-process twin: no reader is left to close it later.
    """

    def __init__(self, response: aiohttp.ClientResponse, *, server: str, siblings: MutableSet[HttpStream]) -> None:
        self._response = response
        self._server = server
        self._siblings = siblings
        self._received_bytes = 0
        siblings.add(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._is_over:
            raise StopAsyncIteration
        try:
            chunk = await self._response.content.readany()
        except (aiohttp.ClientError, OSError):
            # Closing while a reader waits reaches the waiter as an error of the connection.
            if self._is_over:
                raise StopAsyncIteration from None
            self._end()
            raise AnswerLost(
                f"the connection to {self._server} broke after {self._received_bytes} bytes of a stream"
            ) from None
        except asyncio.CancelledError:
            self._end()
            raise
        if not chunk:
            self._end()
            raise StopAsyncIteration
        self._received_bytes += len(chunk)
        return chunk

    async def aclose(self) -> None:
        self._end()

    @property
    def _is_over(self) -> bool:
        return self not in self._siblings

    def _end(self) -> None:
        self._siblings.discard(self)
        release(self._response)
