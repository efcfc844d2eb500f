"""Objects, lists and watch events in the form the client requested, as bytes.

The plain JSON form of a stored object or list does not pass here: handlers join the stored bytes
(`MediaForm.is_plain`). A Status is never converted to a table or metadata, whatever the client requested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.local.apiserver.http_types import Response
from plimsoll.local.apiserver.presentation.negotiation import MediaForm, choose_error_media
from plimsoll.local.apiserver.presentation.tables import (
    META_GROUP,
    build_partial,
    build_table,
    build_version_metadata,
    find_printer,
)
from plimsoll.local.apiserver.presentation.yaml_encoding import encode_yaml
from plimsoll.local.apiserver.status_errors import StatusError, failure

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.local.apiserver.http_types import Request
    from plimsoll.local.apiserver.resources.registry import ServedResource

Json = dict[str, Any]

_ENCODER: Final = msgspec.json.Encoder()


def encode_object(form: MediaForm, obj: Json, resource: ServedResource, *, now: datetime) -> bytes:
    return encode(form, _transform(form, obj, resource, now=now))


def encode_list(
    form: MediaForm, items: Iterable[Json], metadata: Json, resource: ServedResource, *, now: datetime
) -> bytes:
    """A list. `metadata` is the list's own: resourceVersion, continue, remainingItemCount."""
    if form.kind == "table":
        return encode(form, build_table(form, items, metadata, find_printer(resource), now=now))
    if form.kind == "partial":
        if not form.of_list:
            problem = "you requested PartialObjectMetadata, but the requested object is a list"
            raise _build_not_acceptable(f"{problem} ({_get_go_type(resource, resource.list_kind)})")
        listed = {"kind": "PartialObjectMetadataList", "apiVersion": f"{META_GROUP}/{form.version}"}
        return encode(form, {**listed, "metadata": metadata, "items": [build_partial(form, item) for item in items]})
    whole = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata}
    # Items of built-in lists do not name their kind: the list does.
    dropped = () if resource.is_custom else ("kind", "apiVersion")
    bare = [{key: value for key, value in item.items() if key not in dropped} for item in items]
    return encode(form, {**whole, "items": bare})


def encode_event(
    form: MediaForm, event_type: str, obj: Json, resource: ServedResource, *, now: datetime, with_columns: bool
) -> bytes:
    """One line of a watch. Only the first event of a watch as tables brings the columns."""
    shown = obj
    if form.kind == "table" and not _is_status(obj):
        shown = build_table(
            form, [obj], build_version_metadata(obj), find_printer(resource), now=now, with_columns=with_columns
        )
    elif form.kind == "partial" and not _is_status(obj):
        shown = build_partial(form, obj)
    return _ENCODER.encode({"type": event_type, "object": shown}) + b"\n"


def encode_error(request: Request, refusal: StatusError) -> Response:
    """An error Status in the media type of the request."""
    form = choose_error_media(request)
    body = encode(form, refusal.status)
    return Response(status=refusal.code, body=body, content_type=form.content_type, headers=refusal.headers)


def encode(form: MediaForm, value: Any) -> bytes:
    """A JSON value as JSON, pretty JSON or YAML."""
    if form.media == "yaml":
        return encode_yaml(value)
    if form.pretty:
        return msgspec.json.format(_ENCODER.encode(value), indent=2)
    return _ENCODER.encode(value) + b"\n"


def _transform(form: MediaForm, obj: Json, resource: ServedResource, *, now: datetime) -> Json:
    if form.kind == "object" or _is_status(obj):
        return obj
    if form.kind == "table":
        return build_table(form, [obj], build_version_metadata(obj), find_printer(resource), now=now)
    if form.of_list:
        problem = "you requested PartialObjectMetadataList, but the requested object is not a list"
        raise _build_not_acceptable(f"{problem} ({_get_go_type(resource, resource.kind)})")
    return build_partial(form, obj)


def _is_status(obj: Json) -> bool:
    return obj.get("kind") == "Status" and obj.get("apiVersion") == "v1"


def _build_not_acceptable(message: str) -> StatusError:
    return failure(406, "NotAcceptable", message)


def _get_go_type(resource: ServedResource, kind: str) -> str:
    """The name of the type behind a kind, which the message of a real server contains."""
    if resource.is_custom:
        return "*unstructured.UnstructuredList" if kind == resource.list_kind else "*unstructured.Unstructured"
    return f"*{resource.group.split('.')[0] or 'core'}.{kind}"
