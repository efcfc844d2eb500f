"""The dispatch of subresources.

Status is an ordinary read or write of the object (the strategies isolate it); `subresources` and `reviews` handle the
others, and only their bodies are read here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.handlers import create, get_list, patch
from plimsoll.local.apiserver.handlers.pod_subresources import change_pod_subresource
from plimsoll.local.apiserver.http_types import Response
from plimsoll.local.apiserver.patches.results import PatchRefused
from plimsoll.local.apiserver.registry.identity import build_key
from plimsoll.local.apiserver.request.bodies import read_object
from plimsoll.local.apiserver.request.responses import build_object_response
from plimsoll.local.apiserver.reviews.token_requests import create_token
from plimsoll.local.apiserver.subresources import binding, eviction, finalize, scale

if TYPE_CHECKING:
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]


async def handle_subresource(server: Server, call: RequestContext) -> Response:
    """A request below an object's name."""
    part = call.subresource
    if part == "status":
        return await _handle_status(server, call)
    if part == "scale":
        return Response.from_json(await _scale(server, call))
    if part in {"resize", "ephemeralcontainers"}:
        if call.verb == "get":
            return await get_list.get(server, call)
        return await build_object_response(server, call, await change_pod_subresource(server, call))
    if part == "log":
        raise _no_logs(server, call)
    body = await _read_body(server, call)
    if part == "finalize":
        return Response.from_json(await finalize.finalize(server, call, body))
    if part == "binding":
        return Response.from_json(await binding.bind(server, call, body), status=201)
    if part == "eviction":
        return Response.from_json(await eviction.evict(server, call, body), status=201)
    assert part == "token", f"{part} is in the table and has no handler"
    return Response.from_json(create_token(server, call, body), status=201)


async def _read_body(server: Server, call: RequestContext) -> Json:
    part = call.resource.find_subresource(call.subresource)
    assert part is not None
    group, version = part.group or call.resource.group, part.version or call.resource.version
    api_version = f"{group}/{version}" if group else version
    read = partial(read_object, call.request, kind=part.kind, api_version=api_version)
    return (await server.long_work.run(call.work_bytes, read)).value


async def _handle_status(server: Server, call: RequestContext) -> Response:
    if call.verb == "get":
        return await get_list.get(server, call)
    if call.verb == "update":
        return await create.update(server, call)
    return await patch.patch(server, call)


async def _scale(server: Server, call: RequestContext) -> Json:
    if call.verb == "get":
        return await scale.get_scale(server, call)
    if call.verb == "update":
        return await scale.put_scale(server, call, await _read_body(server, call))
    media = patch.read_patch_media(call, is_of_custom=False)
    if media == patch.APPLY_PATCH:
        applied = await server.long_work.run(call.work_bytes, partial(patch.read_applied, call))
        return await scale.apply_scale(server, call, applied, force=patch.is_forced(call))
    read = await server.long_work.run(call.work_bytes, partial(patch.read_patch, call))

    def apply_patch(current: Json) -> Json:
        outcome = patch.apply_patch(media, current, read.value)
        if isinstance(outcome, PatchRefused):
            raise patch.build_patch_refusal(outcome)
        return outcome.value if isinstance(outcome.value, dict) else {}

    return await scale.patch_scale(server, call, apply_patch)


def _no_logs(server: Server, call: RequestContext) -> status_errors.StatusError:
    """Logs come from a node's kubelet, and there is none behind this server."""
    stored = server.store.get(build_key(call))
    if stored is None:
        return status_errors.not_found(call.name, group="", resource="pods")
    node = stored.decode_body().get("spec", {}).get("nodeName")
    if not node:
        return status_errors.bad_request(f"pod {call.name} does not have a host assigned")
    # The real server looks for the node among the pods when it says that it is not there.
    return status_errors.not_found(node, group="", resource="pods")
