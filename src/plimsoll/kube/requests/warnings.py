"""Warning headers of server responses (`Warning: 299 - "…is deprecated"`), each logged once.

A controller repeats its calls for months; the text is news only the first time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kube.transport import Request, Response

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# Several header fields of one name arrive joined by commas, which may also stand inside the quotes.
_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_MOST_TEXTS: Final = 1_000


class ServerWarnings:
    """Remembers the logged texts; at most a thousand, so that a server cannot fill our memory."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def log_warnings(self, call: Request, reply: Response) -> None:
        if "warning" not in reply.headers:
            return
        for text in parse_warnings(reply):
            if text not in self._logged and len(self._logged) < _MOST_TEXTS:
                self._logged.add(text)
                log.warning("client.server_warned", text=text, method=call.method, path=call.path)


def parse_warnings(reply: Response) -> Iterator[str]:
    for found in _WARNING.finditer(reply.headers.get("warning", "")):
        yield re.sub(r"\\(.)", r"\1", found[1])
