"""Requests to ASGI applications without a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class HttpExchange:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


async def exchange(
    application: Any, path: str = "/", *, method: str = "GET", chunks: tuple[bytes, ...] = (b"",), **headers: str
) -> HttpExchange:
    """One request; after `chunks` the client is gone."""
    incoming = [
        {"type": "http.request", "body": chunk, "more_body": index < len(chunks) - 1}
        for index, chunk in enumerate(chunks)
    ]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "client": ("127.0.0.1", 40_000),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    await application(scope, receive, send)
    start, *bodies = sent
    named = {name.decode(): value.decode() for name, value in start["headers"]}
    return HttpExchange(start["status"], named, b"".join(message.get("body", b"") for message in bodies))
