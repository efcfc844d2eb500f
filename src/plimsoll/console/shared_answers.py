"""Answers that many browsers share: a page that is asked for by twenty readers is computed once.

Requests that come while an answer is computed wait for it; for a moment it is given again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from plimsoll.core.clock import Clock
    from plimsoll.operator.pages import Page

KEEP_S: Final = 2.0
"""Shorter than the interval in which a page asks again."""


class SharedAnswer:
    """A page without parameters, whose answer is kept for `KEEP_S`. What fails is not kept."""

    def __init__(self, page: Page, *, clock: Clock) -> None:
        self._page = page
        self._clock = clock
        self._lock = asyncio.Lock()
        self._kept: Response | None = None
        self._until_s = 0.0

    async def show(self, request: Request) -> Response:
        async with self._lock:
            if self._kept is None or self._clock.monotonic_s() >= self._until_s:
                self._kept = None
                self._kept = await self._page(request)
                self._until_s = self._clock.monotonic_s() + KEEP_S
            return self._kept
