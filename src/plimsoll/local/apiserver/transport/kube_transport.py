"""The embedded server as a `kube.exchange.Transport`: the client's calls become requests without a socket."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from plimsoll.core.errors import Unreachable
from plimsoll.kube.errors import NotSent, TimedOut
from plimsoll.kube.exchange import Reply
from plimsoll.local.apiserver.transport.in_process import InProcessTransport

if TYPE_CHECKING:
    from plimsoll.kube.exchange import Call
    from plimsoll.local.apiserver.exchange import Answer
    from plimsoll.local.apiserver.transport.limits import Handler


class EmbeddedTransport:
    """Carries the calls of one client, with its token, to an application in the same process."""

    def __init__(self, application: Handler, *, token: str = "") -> None:
        self._door = InProcessTransport(application)
        self._identity = {"authorization": f"Bearer {token}"} if token else {}

    async def send(self, call: Call) -> Reply:
        try:
            async with asyncio.timeout(call.timeout_s):
                answer = await self._door.request(
                    call.method, call.url, headers={**self._identity, **call.headers}, body=call.body
                )
        except TimeoutError:
            raise TimedOut(f"{call.method} {call.path}: no answer within {call.timeout_s:g} s") from None
        except Unreachable as error:
            raise NotSent(str(error)) from error
        return await _reply(answer, call)

    async def aclose(self) -> None:
        await self._door.aclose()


async def _reply(answer: Answer, call: Call) -> Reply:
    headers = {"content-type": answer.content_type, **{name.lower(): value for name, value in answer.headers}}
    if isinstance(answer.body, bytes):
        return Reply(status=answer.status, headers=headers, body=answer.body)
    if call.is_stream:
        return Reply(status=answer.status, headers=headers, stream=answer.body)  # type: ignore[arg-type] # in_process gives its Stream
    return Reply(status=answer.status, headers=headers, body=b"".join([chunk async for chunk in answer.body]))
