"""Bodies of requests: within a size, JSON, of the model's shape. No body gives anything but an answer with a code.

JSON that is no text for a database is refused here, once for all routes: NUL, unpaired surrogates, and numbers that
do not fit into 64 bits.
"""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from plimsoll.fleet.api.errors import Code, RequestRefused
from plimsoll.fleet.config.strict import list_mistakes
from plimsoll.web.bodies import MAX_BODY_BYTES, BodyRefused, read_body

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_REPORT_BYTES: Final = 16 * 1024 * 1024
"""The reports of an agent about all Kafkas of its cluster."""
UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_SUSPICIOUS: Final = re.compile(rb"\\u0000|\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
"""Bodies without these bytes have no NUL and no surrogate: they need not be searched after decoding."""
_LARGEST: Final = 2**63 - 1
_MOST_MISTAKES: Final = 10

Model = TypeVar("Model", bound=BaseModel)


async def read_model(request: Request, model: type[Model], *, max_bytes: int = MAX_BODY_BYTES) -> Model:
    """The body as a model. Raises `RequestRefused`."""
    return validate(model, await read_json(request, max_bytes=max_bytes))


def validate(model: type[Model], document: object) -> Model:
    """The document as a model. Raises `RequestRefused` with every mistake and its path."""
    try:
        return model.model_validate(document, strict=True)
    except ValidationError as error:
        shown = [f"{mistake.path or 'body'}: {mistake.reason}" for mistake in list_mistakes(error)]
        more = f" and {len(shown) - _MOST_MISTAKES} more" if len(shown) > _MOST_MISTAKES else ""
        raise RequestRefused(Code.FIELD_VALIDATION, "; ".join(shown[:_MOST_MISTAKES]) + more) from error


async def read_json(request: Request, *, max_bytes: int = MAX_BODY_BYTES) -> Any:
    """The body as JSON. Raises `RequestRefused`."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and len(declared) < 20 and int(declared) > max_bytes:
        raise _refuse_size(max_bytes)
    body = await read_body(request, max_bytes=max_bytes)
    if body is BodyRefused.TOO_LARGE:
        raise _refuse_size(max_bytes)
    if isinstance(body, BodyRefused):
        raise RequestRefused(Code.MALFORMED_REQUEST, "the body did not arrive in time", status=body.status)
    return parse_json(body)


def parse_json(body: bytes) -> Any:
    """The value of a JSON text. Raises `RequestRefused`."""
    try:
        text = body.decode("utf-8", "surrogatepass")
        value = json.loads(text, parse_int=_parse_int, parse_float=_parse_float, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        problem = str(error) if isinstance(error, json.JSONDecodeError) else "it is nested too deeply or not UTF-8"
        raise RequestRefused(Code.MALFORMED_REQUEST, f"the body is not JSON: {problem}") from error
    if _SUSPICIOUS.search(body):
        _check_texts(value)
    return value


def check_text(text: str, where: str) -> None:
    """Raises `RequestRefused` for text that no database stores."""
    if UNSTORABLE.search(text):
        raise RequestRefused(Code.VALIDATION, f"{where} has a NUL character or an unpaired surrogate")


def _check_texts(value: object) -> None:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            check_text(item, "the body")
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            pending += (*item.keys(), *item.values())


def _parse_int(text: str) -> int:
    # Python refuses to read numbers of thousands of digits.
    if len(text) > 20 or not -_LARGEST - 1 <= int(text) <= _LARGEST:
        raise RequestRefused(Code.VALIDATION, f"the number {text[:30]} is beyond 64 bits")
    return int(text)


def _parse_float(text: str) -> float:
    number = float(text)
    if not -_LARGEST - 1 <= number <= _LARGEST:
        raise RequestRefused(Code.VALIDATION, f"the number {text[:30]} is beyond 64 bits")
    return number


def _refuse_constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


def _refuse_size(max_bytes: int) -> RequestRefused:
    reason = f"the body has more than {max_bytes} bytes"
    # What is left of the body is not read, so the connection cannot be used again.
    return RequestRefused(
        Code.BAD_REQUEST, reason, status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE, headers={"connection": "close"}
    )
