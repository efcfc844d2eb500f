"""What happens to every request before and after its route: an operation id, its address, its count, the last resort.

Addresses are checked as bytes: servers decode them in different ways, and some replace what they cannot decode.
"""

from __future__ import annotations

import re
from http import HTTPMethod, HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

import structlog

from plimsoll.fleet.api.errors import Code, RequestRefused, build_error_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.ports import ApiMetrics

OPERATION_HEADER: Final = "x-operation-id"
_METHODS: Final = frozenset(HTTPMethod)
_VARIABLE: Final = re.compile(r"\{[^}]*\}")

_log = structlog.get_logger("plimsoll.fleet.api")


class RequestGuard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, *, entropy: Entropy, clock: Clock, metrics: ApiMetrics) -> None:
        self._app = app
        self._entropy = entropy
        self._clock = clock
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        operation_id = self._entropy.generate_uid()
        started_s = self._clock.monotonic_s()
        code = 0

        async def send_named(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
                name = OPERATION_HEADER.encode(), operation_id.encode()
                message = {**message, "headers": [*message.get("headers", ()), name]}
            await send(message)

        app = self._app
        scope = {**scope, "state": {**scope.get("state", {}), "operation_id": operation_id}}
        try:
            scope = _normalize_address(scope)
        except RequestRefused as refused:
            app = build_error_response(refused, operation_id=operation_id)
        try:
            await app(scope, receive, send_named)
        except Exception:  # noqa: BLE001 - the work on one request ends here
            # The message of an error may hold data of a row, so it goes to the log and not to the caller. Errors of
            # routes have been answered by then; Starlette passes them on all the same.
            _log.exception("request.failed", operation_id=operation_id, method=scope["method"])
            if not code:
                failed = build_error_response(RequestRefused(Code.GENERAL), operation_id=operation_id)
                await failed(scope, receive, send_named)
        finally:
            # A caller that went away before its answer counts as a failure of the server, as far as it can know.
            code = code or HTTPStatus.INTERNAL_SERVER_ERROR
            duration_s = self._clock.monotonic_s() - started_s
            self._metrics.count_request(*_describe_request(scope), code, duration_s=duration_s)


def _describe_request(scope: Scope) -> tuple[str, str]:
    """Method and path as labels: few, whatever callers send."""
    method = scope["method"] if scope["method"] in _METHODS else "other"
    route = getattr(scope.get("route"), "path", "")
    return method, _VARIABLE.sub("-", route) or "-"


def _normalize_address(scope: Scope) -> Scope:
    """The scope without a slash at the end of its path. Raises `RequestRefused` for text that is no text."""
    raw_path: bytes = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
    path = _decode(raw_path.partition(b"?")[0], "the path")
    _decode(scope.get("query_string", b""), "the query")
    return {**scope, "path": path.removesuffix("/") or "/", "raw_path": raw_path.removesuffix(b"/") or b"/"}


def _decode(raw: bytes, where: str) -> str:
    decoded = unquote_to_bytes(raw)
    try:
        text = decoded.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestRefused(Code.VALIDATION, f"{where} is not UTF-8, or has an unpaired surrogate") from error
    if "\x00" in text:
        raise RequestRefused(Code.VALIDATION, f"{where} has a NUL character")
    return text
