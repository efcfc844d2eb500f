"""DELETE of one object and of collections."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.handlers.get_list import find_page
from plimsoll.local.apiserver.http_types import Response
from plimsoll.local.apiserver.registry.deletion import delete_object
from plimsoll.local.apiserver.request.options import delete_options, read_delete_options, read_list_options
from plimsoll.local.apiserver.request.responses import build_list_response, build_object_response, negotiate_form
from plimsoll.local.apiserver.status_errors import StatusError

if TYPE_CHECKING:
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]


async def delete(server: Server, call: RequestContext) -> Response:
    negotiate_form(call)
    body, status = await delete_object(server, call, await _read_options(server, call))
    if body.get("kind") == "Status":
        return Response.from_json(body, status=status)
    return await build_object_response(server, call, body, status=status)


async def _read_options(server: Server, call: RequestContext) -> Json:
    return await server.long_work.run(call.work_bytes, partial(delete_options, call.request))


async def delete_collection(server: Server, call: RequestContext) -> Response:
    """Delete every object that a list with the same options would return, one after the other."""
    negotiate_form(call)
    options = await _read_options(server, call)
    read_delete_options(options)
    page = await find_page(server, call, read_list_options(call.request, watch=False))
    for stored in page.items:
        try:
            await delete_object(server, call.to_delete(stored.name, dry_run=call.dry_run), options)
        except StatusError as refusal:
            if refusal.code != 404:  # another client deleted it first
                raise
    return await build_list_response(server, call, page.items, {"resourceVersion": str(page.revision)})
