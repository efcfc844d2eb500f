"""POST and PUT of whole objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver import refusals
from plimsoll.local.apiserver.handlers.answers import form_of, object_answer
from plimsoll.local.apiserver.handlers.identity import check_identity, check_uid, key_of, settle_namespace
from plimsoll.local.apiserver.handlers.kinds import decoded_object
from plimsoll.local.apiserver.handlers.writing import change_object, create_object
from plimsoll.local.apiserver.strategies.finding import strategy_of

if TYPE_CHECKING:
    from plimsoll.local.apiserver.exchange import Answer
    from plimsoll.local.apiserver.handlers.context import Call
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]


async def create(server: Server, call: Call) -> Answer:
    form_of(call)
    obj = await create_object(server, call, decoded_object(call))
    return object_answer(server, call, obj, status=201)


async def update(server: Server, call: Call) -> Answer:
    """PUT, of an object or of its status. A few kinds are created by it."""
    form_of(call)
    value = decoded_object(call)
    value.setdefault("metadata", {})
    settle_namespace(value, call)
    check_identity(value, call)
    if server.store.get(key_of(call)) is None:
        if call.subresource or not strategy_of(call.resource).creates_on_update:
            raise refusals.not_found(call.name, group=call.resource.group, resource=call.resource.plural)
        return object_answer(server, call, await create_object(server, call, value), status=201)

    def replaced(current: Json) -> Json:
        check_uid(value, current, call)
        return {**value, "metadata": dict(value["metadata"])}

    obj = await change_object(server, call, replaced, subresource=call.subresource)
    return object_answer(server, call, obj)
