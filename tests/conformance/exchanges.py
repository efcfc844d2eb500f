"""One conversation with the embedded API server, in virtual time and without a socket.

`ClientRequests` sends a request and reads the whole answer, watches included: their `timeoutSeconds` pass in no time.
Used by the replay, the model and the fuzzer; knows nothing of recordings.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

import yaml

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence

    from plimsoll.local.apiserver.http_types import Response
    from plimsoll.local.apiserver.transport.in_process import InProcessTransport
    from plimsoll.runtime.virtual_run import VirtualRun


class Reply(NamedTuple):
    """An answer that has been read to its end. `events` is set for a watch, `body` is None where it is not JSON."""

    status: int
    content_type: str
    headers: Sequence[tuple[str, str]]
    raw: bytes
    body: Any
    events: list[Any] | None = None

    @property
    def warnings(self) -> list[str]:
        return [value for name, value in self.headers if name.lower() == "warning"]

    @property
    def text(self) -> str:
        return self.raw.decode()


class ClientRequests:
    """Requests of one client, one after the other; `start` leaves a watch running beside them."""

    def __init__(self, run: VirtualRun, transport: InProcessTransport, *, headers: Mapping[str, str]) -> None:
        self._run = run
        self._transport = transport
        self._headers = {name.lower(): value for name, value in headers.items()}

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: Any = None,
    ) -> Reply:
        return self._run.run_until(self.start(method, path, query=query, headers=headers, body=body))

    def start(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: Any = None,
    ) -> asyncio.Task[Reply]:
        """Send without waiting for the end of the answer."""
        mixed = {**self._headers, **{name.lower(): value for name, value in (headers or {}).items()}}
        sent = {name: value for name, value in mixed.items() if value is not None}
        url = quote(path) + (f"?{urlencode(query)}" if query else "")
        reply = _whole(self._transport, method, url, headers=sent, body=_bytes(body))
        task = self._run.spawn(reply, name=f"{method} {path}")
        self._run.settle()
        return task


def _bytes(body: Any) -> bytes:
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


async def _whole(
    transport: InProcessTransport, method: str, url: str, *, headers: Mapping[str, str], body: bytes
) -> Reply:
    answer = await transport.request(method, url, headers=headers, body=body)
    if isinstance(answer.body, bytes):
        return _reply(answer, answer.body, events=None)
    raw = b"".join([chunk async for chunk in answer.body])
    lines = [json.loads(line) for line in raw.splitlines() if line]
    return _reply(answer, raw, events=lines)


def _reply(answer: Response, raw: bytes, *, events: list[Any] | None) -> Reply:
    return Reply(
        status=answer.status,
        content_type=answer.content_type,
        headers=answer.headers,
        raw=raw,
        body=None if events is not None else _decoded(answer.content_type, raw),
        events=events,
    )


def _decoded(content_type: str, raw: bytes) -> Any:
    if content_type.startswith("application/json") and raw:
        return json.loads(raw)
    if content_type.startswith("application/yaml"):
        return yaml.safe_load(raw)
    return None
