"""The embedded server as a `kube.transport.Transport`: the client's requests without a socket.

The counterpart of `kube.http`: the same requests end in the same ways, timeouts and closing included, so that a
controller behaves under virtual time as on a network. Nothing here leaves the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from plimsoll.kube.errors import AnswerLost, Closed, TimedOut
from plimsoll.kube.requests.in_flight_calls import InFlightCalls
from plimsoll.kube.transport import Response
from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.transport.in_process import InProcessTransport, Stream

if TYPE_CHECKING:
    from plimsoll.kube.transport import Request as Call
    from plimsoll.local.apiserver.http_types import Response as ServerResponse
    from plimsoll.local.apiserver.transport.limits import Handler


class EmbeddedTransport:
    """Carries the calls of one client, with its token, to an application in the same process."""

    def __init__(self, application: Handler, *, token: str = "") -> None:
        self._inner = InProcessTransport(application)
        self._identity = {"authorization": f"Bearer {token}"} if token else {}
        self._calls = InFlightCalls()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def send(self, call: Call) -> Response:
        if self._is_closed:
            raise Closed("the transport to the embedded API server is closed")
        headers = {**{name.lower(): value for name, value in call.headers.items()}, **self._identity}
        # A call's path and query are plain text already: to escape and read them again was a thirtieth of a write.
        request = Request(call.method, call.path, call.query, headers, call.body)
        try:
            return await self._calls.carry(self._send(call, request), call.timeout_s)
        except TimeoutError:
            if self._is_closed:
                raise AnswerLost(
                    f"{call.method} {call.path}: the transport was closed before the answer came"
                ) from None
            raise TimedOut(f"{call.method} {call.path}: no answer within {call.timeout_s:g} s") from None

    async def _send(self, call: Call, request: Request) -> Response:
        response = await self._inner.handle(request)
        if isinstance(response.body, bytes):
            return Response(response.status, _join_headers(response), response.body)
        return await _stream(response, call)

    async def aclose(self) -> None:
        self._is_closed = True
        self._calls.end_all()
        await self._inner.aclose()


async def _stream(response: ServerResponse, call: Call) -> Response:
    headers = _join_headers(response)
    assert isinstance(response.body, Stream), "the in-process transport gives every stream a handle that can be closed"
    if call.is_stream and 200 <= response.status < 300:
        return Response(status=response.status, headers=headers, stream=response.body)
    async with response.body as chunks:
        body = b"".join([chunk async for chunk in chunks])
    return Response(status=response.status, headers=headers, body=body)


def _join_headers(response: ServerResponse) -> dict[str, str]:
    """Names in lower case; repeated fields are joined, as on the network."""
    headers = {"content-type": response.content_type}
    for name, value in response.headers:
        known = name.lower()
        headers[known] = f"{headers[known]}, {value}" if known in headers else value
    return headers
