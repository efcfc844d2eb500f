"""HTTP responses, written in one way: never cached, never sniffed, and without a body to HEAD."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

PLAIN_TEXT: Final = "text/plain; charset=utf-8"
PROMETHEUS_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
JSON: Final = "application/json"
_HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


class PageResponse(Response):
    """A complete response."""

    def __init__(
        self,
        body: bytes = b"",
        status: int = HTTPStatus.OK,
        *,
        content_type: str = PLAIN_TEXT,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        named = {"content-type": content_type, **_HEADERS, **(headers or {})}
        super().__init__(body, status_code=int(status), headers=named)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            # The headers, the length among them, are those of GET.
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": b""})
            return
        await super().__call__(scope, receive, send)


def build_text_response(
    text: str, status: int = HTTPStatus.OK, *, headers: Mapping[str, str] | None = None
) -> PageResponse:
    """A line of text."""
    return PageResponse(f"{text}\n".encode(errors="replace"), status, headers=headers)


def build_json_response(
    value: object, status: int = HTTPStatus.OK, *, headers: Mapping[str, str] | None = None
) -> PageResponse:
    return PageResponse(msgspec.json.encode(value), status, content_type=JSON, headers=headers)
