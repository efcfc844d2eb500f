"""Typed errors from error responses.

API servers answer with a `Status`; proxies, load balancers and unknown paths answer with text or HTML. In both cases
the caller gets an `ApiError` of the right class: with the server's own message, or with a summary of the page.
"""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.kube.errors import Status, StatusDetails, build_error
from plimsoll.objects.codec.nulls import Shape, strip_nulls

if TYPE_CHECKING:
    from plimsoll.kube.errors import ApiError
    from plimsoll.kube.transport import Request, Response

_TITLE: Final = re.compile(rb"<title[^>]*>(.{1,300}?)</title", re.IGNORECASE | re.DOTALL)
_LOOKS_LIKE_HTML: Final = re.compile(rb"\s*<(!doctype|html|head|body)", re.IGNORECASE)
_LONGEST_TEXT: Final = 500
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

# The reasons of apimachinery for codes, for bodies without a reason.
_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def build_api_error(reply: Response, call: Request, *, now: datetime) -> ApiError:
    """The error of an unsuccessful response."""
    status = _read_status(reply.body) or _build_status(reply, call)
    # The HTTP status counts: the body may contain another code.
    status = msgspec.structs.replace(status, code=reply.status)
    return build_error(status, retry_after_s=retry_after_s(reply, status, now=now))


def read_status_error(body: bytes, *, retry_after_s: float | None = None) -> ApiError | None:
    """The error in a `Status` that came as data, as in the ERROR event of a watch; None if it is not a Status."""
    status = _read_status(body)
    return None if status is None else build_error(status, retry_after_s=retry_after_s or _read_retry_after(status))


def retry_after_s(reply: Response, status: Status, *, now: datetime) -> float | None:
    """How long the server asks us to wait: by the header, in seconds or as a date, or by the details."""
    header = reply.headers.get("retry-after", "").strip()
    if header.isascii() and header.isdigit() and len(header) < 10:
        return float(header)
    until = _parse_date(header)
    if until is None:
        return _read_retry_after(status)
    # Against the server's own clock if the response has a date: ours may differ by minutes.
    here = _parse_date(reply.headers.get("date", "")) or now
    return max(0.0, (until - here).total_seconds())


def _read_retry_after(status: Status) -> float | None:
    seconds = status.details.retry_after_seconds
    return float(seconds) if seconds > 0 else None


def _parse_date(text: str) -> datetime | None:
    if not text:
        return None
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)


def _read_status(body: bytes) -> Status | None:
    status: Status | None
    try:
        status = msgspec.json.decode(body, type=Status)
    except _UNREADABLE:
        status = _read_loosely(body)
    return status if status is not None and status.kind == "Status" else None


def _read_loosely(body: bytes) -> Status | None:
    """A Status with nulls in it, or with unreadable details: its message still counts."""
    try:
        value = msgspec.json.decode(body)
    except _UNREADABLE:
        return None
    if not isinstance(value, dict):
        return None
    for candidate in (value, {**value, "details": None}):
        try:
            return msgspec.convert(strip_nulls(candidate, _build_shape()), Status)
        except _UNREADABLE:
            continue
    return None


@cache
def _build_shape() -> Shape:
    return msgspec.inspect.type_info(Status)


def _build_status(reply: Response, call: Request) -> Status:
    reason = _REASONS.get(reply.status, "")
    message = _format_page(reply) or f"the server answered {reply.status} to {call.method} {call.path}, without a word"
    return Status(kind="Status", status="Failure", message=message, reason=reason, details=StatusDetails())


def _format_page(reply: Response) -> str:
    if "html" in reply.headers.get("content-type", "") or _LOOKS_LIKE_HTML.match(reply.body):
        title = _TITLE.search(reply.body)
        page_title = f": {html.unescape(_format_readable(title[1]))}" if title else ""
        return f"the server answered {reply.status} with a page of HTML, as proxies do{page_title}"
    return _format_readable(reply.body)


def _format_readable(data: bytes) -> str:
    text = " ".join(data[: 4 * _LONGEST_TEXT].decode("utf-8", "replace").split())
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
