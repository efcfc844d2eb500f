"""POST and PUT of whole objects."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.registry.guaranteed_update import change_object, change_or_create_object, create_object
from plimsoll.local.apiserver.registry.identity import check_identity, check_uid, set_namespace
from plimsoll.local.apiserver.request.responses import build_object_response, negotiate_form
from plimsoll.local.apiserver.request.type_meta import decode_object
from plimsoll.local.apiserver.strategies.lookup import find_strategy
from plimsoll.objects.schema.json_values import copy

if TYPE_CHECKING:
    from plimsoll.local.apiserver.http_types import Response
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]


async def create(server: Server, call: RequestContext) -> Response:
    negotiate_form(call)
    value = await server.long_work.run(call.work_bytes, partial(decode_object, call))
    obj = await create_object(server, call, value)
    return await build_object_response(server, call, obj, status=201)


async def update(server: Server, call: RequestContext) -> Response:
    """PUT, of an object or of its status. A few kinds are created by it."""
    negotiate_form(call)
    value = await server.long_work.run(call.work_bytes, partial(decode_object, call))
    value.setdefault("metadata", {})
    set_namespace(value, call)
    check_identity(value, call)

    def replace(current: Json) -> Json:
        check_uid(value, current, call)
        return {**value, "metadata": dict(value["metadata"])}

    if call.subresource or not find_strategy(call.resource).creates_on_update:
        return await build_object_response(
            server, call, await change_object(server, call, replace, subresource=call.subresource)
        )
    obj, status = await change_or_create_object(server, call, replace, lambda: copy(value))
    return await build_object_response(server, call, obj, status=status)
