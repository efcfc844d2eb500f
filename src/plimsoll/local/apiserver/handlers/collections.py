"""DELETE of a collection: every object that a list with the same options would show, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.handlers.answers import form_of, list_answer
from plimsoll.local.apiserver.handlers.deleting import delete_object
from plimsoll.local.apiserver.handlers.options import delete_options, list_options, read_delete_options
from plimsoll.local.apiserver.handlers.reading import find
from plimsoll.local.apiserver.refusals import Refusal

if TYPE_CHECKING:
    from plimsoll.local.apiserver.exchange import Answer
    from plimsoll.local.apiserver.handlers.context import Call
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]


async def delete_collection(server: Server, call: Call) -> Answer:
    form_of(call)
    options = delete_options(call.request)
    read_delete_options(options)
    page = await find(server, call, list_options(call.request, watch=False))
    for one in page.items:
        try:
            await delete_object(server, call.to_delete(one.name, dry_run=call.dry_run), options)
        except Refusal as refusal:
            if refusal.code != 404:  # somebody else was faster
                raise
    return list_answer(server, call, page.items, {"resourceVersion": str(page.revision)})
