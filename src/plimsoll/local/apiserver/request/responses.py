"""Responses with objects and lists, in the form the client requested.

The plain form is joined from stored bytes, without decoding; `presentation` makes every other one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.local.apiserver import presentation
from plimsoll.local.apiserver.http_types import JSON, Response
from plimsoll.local.apiserver.storage.objects import decode_json
from plimsoll.local.apiserver.strategies.lookup import find_strategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.local.apiserver.presentation import MediaForm
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.resources.registry import ServedResource
    from plimsoll.local.apiserver.server import Server
    from plimsoll.local.apiserver.storage import Stored

Json = dict[str, Any]

_encoder: Final = msgspec.json.Encoder()


def negotiate_form(call: RequestContext, *, watch: bool = False) -> MediaForm:
    """The form of the response, negotiated before anything is done, so that an error has no side effect."""
    if call.form is None:
        call.form = presentation.negotiate(call.request, watch=watch, custom=call.resource.is_custom)
    return call.form


async def build_object_response(server: Server, call: RequestContext, obj: Json, *, status: int = 200) -> Response:
    """`obj` in the form of the response; an object grows little over the request that wrote it."""
    form = negotiate_form(call)
    if form.is_plain:
        data = server.store.find_data(obj)
        return Response.from_json(obj, status=status) if data is None else Response(status=status, body=data + b"\n")
    body = await server.long_work.run(call.work_bytes, partial(_encode_object, server, call, obj))
    return Response(status=status, body=body, content_type=form.content_type)


async def build_stored_response(server: Server, call: RequestContext, stored: Stored) -> Response:
    form, strategy = negotiate_form(call), find_strategy(call.resource)
    if strategy.is_stored_as_presented and form.is_plain:
        return Response(status=200, body=stored.data + b"\n", content_type=JSON)

    def encode() -> bytes:
        if form.is_plain:
            return server.presented.encode(strategy, stored) + b"\n"
        return _encode_object(server, call, strategy.present(stored.decode_body()))

    body = await server.long_work.run(len(stored.data) + call.work_bytes, encode)
    return Response(status=200, body=body, content_type=JSON if form.is_plain else form.content_type)


def _encode_object(server: Server, call: RequestContext, obj: Json) -> bytes:
    return presentation.encode_object(negotiate_form(call), obj, call.resource, now=server.clock.now())


async def build_list_response(
    server: Server, call: RequestContext, items: Sequence[Stored], metadata: Json
) -> Response:
    form = negotiate_form(call)
    size_bytes = sum(len(stored.data) for stored in items) + call.work_bytes
    body = await server.long_work.run(size_bytes, partial(_encode_list, server, call, items, metadata))
    return Response(status=200, body=body, content_type=JSON if form.is_plain else form.content_type)


def _encode_list(server: Server, call: RequestContext, items: Sequence[Stored], metadata: Json) -> bytes:
    form = negotiate_form(call)
    resource = call.resource
    strategy = find_strategy(resource)
    if resource.is_custom and form.kind == "object":
        metadata = {"continue": "", **metadata}  # Go's untyped list always has it
    if form.is_plain:
        return _join_list(server, resource, items, metadata)
    shown = (strategy.present(stored.decode_body()) for stored in items)
    return presentation.encode_list(form, shown, metadata, resource, now=server.clock.now())


def _join_list(server: Server, resource: ServedResource, items: Sequence[Stored], metadata: Json) -> bytes:
    strategy = find_strategy(resource)
    if strategy.is_stored_as_presented:
        prefix = _encoder.encode({"kind": resource.kind, "apiVersion": resource.storage_version})[:-1] + b","
        parts: Iterable[bytes] = (_strip_prefix(stored.data, prefix) for stored in items)
    elif resource.is_custom:
        parts = (server.presented.encode(strategy, stored) for stored in items)
    else:
        parts = (_encoder.encode(_strip_type(strategy.present(stored.decode_body()))) for stored in items)
    head = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata}
    return b'%b,"items":[%b]}\n' % (_encoder.encode(head)[:-1], b",".join(parts))


def _strip_prefix(data: bytes, prefix: bytes) -> bytes:
    if data.startswith(prefix):
        return b"{" + data[len(prefix) :]
    return _encoder.encode(_strip_type(decode_json(data)))


def _strip_type(obj: Json) -> Json:
    return {name: value for name, value in obj.items() if name not in {"kind", "apiVersion"}}
