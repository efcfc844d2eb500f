"""Bodies of requests, read within a size and a time: a client must not hold memory or a connection for long."""

from __future__ import annotations

import asyncio
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_BODY_BYTES: Final = 1024 * 1024
BODY_TIMEOUT_S: Final = 10.0


class BodyRefused(Enum):
    """The reasons why a body was not read to its end, by HTTP status."""

    DISCONNECTED = HTTPStatus.BAD_REQUEST
    TOO_LARGE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    TOO_SLOW = HTTPStatus.REQUEST_TIMEOUT

    @property
    def status(self) -> HTTPStatus:
        return self.value


async def read_body(
    request: Request, *, max_bytes: int = MAX_BODY_BYTES, timeout_s: float = BODY_TIMEOUT_S
) -> bytes | BodyRefused:
    """The whole body. What exceeds a limit is not read any further."""
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > max_bytes:
                    return BodyRefused.TOO_LARGE
    except TimeoutError:
        return BodyRefused.TOO_SLOW
    except ClientDisconnect:
        return BodyRefused.DISCONNECTED
    return bytes(body)
