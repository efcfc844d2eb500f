"""The dispatch of a routed request to its handler, and the follow-up of changes to CustomResourceDefinitions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.crds import lifecycle
from plimsoll.local.apiserver.handlers import create, delete, get_list, patch, watch
from plimsoll.local.apiserver.handlers.patch import APPLY_PATCH
from plimsoll.local.apiserver.handlers.subresources import handle_subresource
from plimsoll.local.apiserver.http_types import Response
from plimsoll.local.apiserver.request.bodies import read_media_type, read_object
from plimsoll.local.apiserver.request.context import RequestContext
from plimsoll.local.apiserver.request.options import read_write_options
from plimsoll.local.apiserver.request.responses import build_object_response
from plimsoll.local.apiserver.reviews.review import review
from plimsoll.local.apiserver.strategies.custom import get_custom_strategy
from plimsoll.local.apiserver.subresources import binding

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.local.apiserver.auth_types import User
    from plimsoll.local.apiserver.http_types import Request
    from plimsoll.local.apiserver.routing import ResourceRoute
    from plimsoll.local.apiserver.server import Server

    Handler = Callable[[Server, RequestContext], Awaitable[Response]]

Json = dict[str, Any]

_WRITES: Final = frozenset({"create", "update", "patch"})
_CHANGES: Final = _WRITES | {"delete", "deletecollection"}
_REVIEW_GROUPS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


def build_context(request: Request, route: ResourceRoute, user: User) -> RequestContext:
    """The context of a request, with its options read and validated."""
    warnings: list[str] = []
    if route.resource.is_custom:
        deprecation = get_custom_strategy(route.resource).deprecation_warning
        warnings += [deprecation] if deprecation else []
    if route.verb not in _WRITES:
        return RequestContext(
            request, route, user, dry_run=False, field_manager="", field_validation="Warn", warnings=warnings
        )
    options = read_write_options(request, route.verb, is_apply=read_media_type(request) == APPLY_PATCH)
    return RequestContext(
        request,
        route,
        user,
        dry_run=options.dry_run,
        field_manager=options.field_manager,
        field_validation=options.field_validation,
        warnings=warnings,
    )


async def dispatch(server: Server, call: RequestContext) -> Response:
    if call.verb not in _CHANGES:
        return await _dispatch_verb(server, call)
    lifecycle.reject_if_terminating(server, call)
    return await lifecycle.follow_change(server, call, lambda: _dispatch_verb(server, call))


async def _dispatch_verb(server: Server, call: RequestContext) -> Response:
    if call.subresource:
        return await handle_subresource(server, call)
    if call.verb == "create" and call.resource.group in _REVIEW_GROUPS:
        body = await _read(server, call, kind=call.resource.kind, api_version=call.resource.api_version)
        return await build_object_response(server, call, review(server, call, body), status=201)
    if call.resource.stored_as == "bindings":
        body = await _read(server, call, kind="Binding", api_version="v1")
        return Response.from_json(await binding.bind(server, call, body), status=201)
    return await _HANDLERS[call.verb](server, call)


async def _read(server: Server, call: RequestContext, *, kind: str, api_version: str) -> Json:
    read = partial(read_object, call.request, kind=kind, api_version=api_version)
    return (await server.long_work.run(call.work_bytes, read)).value


_HANDLERS: Final[dict[str, Handler]] = {
    "get": get_list.get,
    "list": get_list.list_objects,
    "watch": watch.watch,
    "create": create.create,
    "update": create.update,
    "patch": patch.patch,
    "delete": delete.delete,
    "deletecollection": delete.delete_collection,
}
