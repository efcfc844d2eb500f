"""Response headers: the common ones and those of the handler, made safe to send."""

from __future__ import annotations

from email.utils import format_datetime
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.local.apiserver.http_types import Response

    Headers = list[tuple[bytes, bytes]]

# Warnings quote what clients sent. A line break among it would be a header of the client's own making.
_UNSAFE = dict.fromkeys((*range(32), 127), " ")


def build_response_headers(response: Response, *, length: int | None, now: datetime, close: bool = False) -> Headers:
    """Without a length the connection sends chunks."""
    given = [(name.lower().encode("latin-1"), encode_safely(value)) for name, value in response.headers]
    headers = [
        (b"date", _format_date(now.replace(microsecond=0))),
        (b"content-type", encode_safely(response.content_type)),
    ]
    if not any(name == b"cache-control" for name, _ in given):
        headers.append((b"cache-control", b"no-cache, private"))
    headers += given
    if length is not None:
        headers.append((b"content-length", b"%d" % length))
    if close:
        headers.append((b"connection", b"close"))
    return headers


def encode_safely(value: str) -> bytes:
    return value.translate(_UNSAFE).encode("utf-8", errors="replace")


@lru_cache(maxsize=2)
def _format_date(now: datetime) -> bytes:
    return format_datetime(now, usegmt=True).encode("ascii")
