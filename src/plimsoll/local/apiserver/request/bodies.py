"""Request bodies: from bytes of some content type to the object, or kube-apiserver's error.

JSON, YAML and protobuf; an absent content type means JSON. The strategies check whether fields are known; repeated
fields, which only the text shows, are reported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import UnreadableDocument
from plimsoll.core.values import Value
from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.http_types import JSON, PROTOBUF, YAML
from plimsoll.local.apiserver.request.json import NotJson, read_json
from plimsoll.local.apiserver.request.yaml import read_yaml
from plimsoll.objects.protobuf.decoding import decode_body
from plimsoll.objects.protobuf.wire import InvalidProtobuf
from plimsoll.objects.schema.json_values import Refused, take_over

if TYPE_CHECKING:
    from plimsoll.local.apiserver.http_types import Request

Json = dict[str, Any]

MOST_STRICT_PROBLEMS: Final = 100
"""The most unknown and repeated fields that are reported, as by Go's decoder."""

_SUMMARY_BYTES: Final = 30
_JSON_PATCH: Final = "application/json-patch"
# What a request may be at most.
_GROWN_BYTES: Final = 3 * 1024 * 1024
_ACCEPTED: Final = f"{JSON}, {YAML}, {PROTOBUF}"
_TYPE_META: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_JSON_NAMES: Final = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}


class Body(Value):
    """An object as it was sent. `strict_problems` are what strict validation complains of in the text itself."""

    value: Json
    strict_problems: tuple[str, ...] = ()
    strict_error: str = ""
    """The same as one text, where it is not the problems joined: YAML's reader reports in its own way."""


def read_media_type(request: Request) -> str:
    header = request.get_header("content-type")
    # What controllers send, asked twice in every write.
    return JSON if header == JSON else header.partition(";")[0].strip().lower() or JSON


def estimate_work_bytes(request: Request) -> int:
    """The size of what the body may grow to: a YAML alias or the copy of a JSON patch makes a short text a long one."""
    body = request.body
    media = read_media_type(request)
    can_grow = (media.endswith("yaml") and b"*" in body) or (media.startswith(_JSON_PATCH) and b"copy" in body)
    return _GROWN_BYTES if can_grow else len(body)


def read_object(request: Request, *, kind: str, api_version: str = "") -> Body:
    """The body of a create or update of `kind`; raises the errors for anything that is not an object."""
    media = read_media_type(request)
    if media == JSON:
        return _from_json(request.body, kind=kind)
    if media == YAML:
        return _from_yaml(request.body, kind=kind)
    if media == PROTOBUF:
        return _from_protobuf(request.body, kind=kind, api_version=api_version)
    raise unknown_format(_ACCEPTED)


def unknown_format(accepted: str) -> status_errors.StatusError:
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return status_errors.failure(415, "UnsupportedMediaType", message)


def _from_json(text: bytes, *, kind: str) -> Body:
    read = read_json(text)
    if isinstance(read, NotJson):
        raise _build_unrecognised_error(
            text, kind=kind, problem=f"couldn't get version/kind; json parse error: {read.problem}"
        )
    value = _require_object(read.value, text, kind=kind)
    return Body(value=value, strict_problems=tuple(f'duplicate field "{path}"' for path in read.duplicates))


def _from_yaml(text: bytes, *, kind: str) -> Body:
    try:
        read = read_yaml(text.decode(errors="replace"))
    except UnreadableDocument as error:
        raise _build_unrecognised_error(text, kind=kind, problem=f"yaml: {error.problem}") from error
    taken = take_over(read.value)
    if isinstance(taken, Refused):
        raise _build_unrecognised_error(text, kind=kind, problem=f"{taken.path}: {taken.problem}")
    lines = tuple(f'line {line}: key "{key}" already set in map' for line, key in read.duplicates)
    listed = "".join(f"\n  {line}" for line in lines)
    return Body(
        value=_require_object(taken, text, kind=kind),
        strict_problems=lines,
        strict_error=f"yaml: unmarshal errors:{listed}" if lines else "",
    )


def _from_protobuf(data: bytes, *, kind: str, api_version: str) -> Body:
    try:
        decoded = decode_body(data, api_version=api_version, kind=kind)
    except InvalidProtobuf as error:
        raise status_errors.bad_request(str(error)) from error
    taken = take_over(decoded.value)
    if isinstance(taken, Refused):
        raise status_errors.bad_request(f"{taken.path}: {taken.problem}")
    return Body(value=taken)


def _require_object(value: Any, text: bytes, *, kind: str) -> Json:
    if value is None:
        return {}
    if not isinstance(value, dict):
        go_error = f"cannot unmarshal {_JSON_NAMES[type(value)]} into Go value of type {_TYPE_META}"
        raise _build_unrecognised_error(
            text, kind=kind, problem=f"couldn't get version/kind; json parse error: json: {go_error}"
        )
    for name, field in (("apiVersion", "apiVersion"), ("kind", "kind")):
        item = value.get(name)
        if item is not None and not isinstance(item, str):
            go_error = (
                f"cannot unmarshal {_JSON_NAMES.get(type(item), 'object')} into Go struct field .{field} of type string"
            )
            raise _build_unrecognised_error(
                text, kind=kind, problem=f"couldn't get version/kind; json parse error: json: {go_error}"
            )
    return value


def build_unrecognised_kind_error(request: Request, *, kind: str) -> status_errors.StatusError:
    """The error for a custom resource without kind or apiVersion."""
    text = request.body.decode(errors="replace")
    return _build_unrecognised_error(request.body, kind=kind, problem=f"Object 'Kind' is missing in '{text}'")


def _build_unrecognised_error(text: bytes, *, kind: str, problem: str) -> status_errors.StatusError:
    message = f"the object provided is unrecognized (must be of type {kind}): {problem} ({_summarize(text)})"
    return status_errors.bad_request(message)


def _summarize(data: bytes) -> str:
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _SUMMARY_BYTES else ""
    shown = data[:_SUMMARY_BYTES]
    return (shown.decode(errors="replace") if data.startswith(b"{") else shown.hex()) + more
