"""The files of the pages: from the installed package, known by name, so that no path can leave the folder."""

from __future__ import annotations

from functools import cached_property
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Final

from plimsoll.web.responses import PageResponse, build_text_response

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_INDEX: Final = "index.html"


class StaticFiles:
    """An ASGI application. All pages are one document, which reads the fragment of the address."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._respond(scope["method"], scope["path"])(scope, receive, send)

    def _respond(self, method: str, path: str) -> PageResponse:
        if method not in {"GET", "HEAD"}:
            return build_text_response("only GET", HTTPStatus.METHOD_NOT_ALLOWED)
        name = path.removeprefix("/") or _INDEX
        if name not in self._files:
            return build_text_response("no such page", HTTPStatus.NOT_FOUND)
        return PageResponse(self._files[name], content_type=_TYPES[name[name.rindex(".") :]])

    @cached_property
    def _files(self) -> dict[str, bytes]:
        folder = resources.files("plimsoll.console") / "static"
        found = (file for file in folder.iterdir() if file.name[file.name.rfind(".") :] in _TYPES)
        return {file.name: file.read_bytes() for file in found}
