"""pods/resize and pods/ephemeralcontainers: the two parts of a pod's spec that can change."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.handlers import patch
from plimsoll.local.apiserver.registry.guaranteed_update import change_object
from plimsoll.local.apiserver.request.type_meta import decode_object
from plimsoll.objects.builtin.defaults.pods import compute_qos_class
from plimsoll.objects.schema import field_errors as fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]


async def change_pod_subresource(server: Server, call: RequestContext) -> Json:
    read = _build_replacement if call.verb == "update" else _build_patch
    requested = await server.long_work.run(call.work_bytes, partial(read, call))
    part = _resize if call.subresource == "resize" else _set_ephemeral_containers
    return await change_object(
        server, call, lambda current: part(current, requested(current)), subresource=call.subresource
    )


def _build_replacement(call: RequestContext) -> Callable[[Json], Json]:
    sent = decode_object(call)
    return lambda _current: sent


def _build_patch(call: RequestContext) -> Callable[[Json], Json]:
    media, read = patch.read_patch_media(call), patch.read_patch(call)
    return lambda current: patch.apply_patch_to(call, media, current, read)[0]


def _set_ephemeral_containers(current: Json, requested: Json) -> Json:
    containers = requested.get("spec", {}).get("ephemeralContainers")
    return {**current, "spec": {**current["spec"], **({"ephemeralContainers": containers} if containers else {})}}


def _resize(current: Json, requested: Json) -> Json:
    """The pod with the resources that were asked for; its quality of service must stay what it is."""
    spec = dict(current["spec"])
    for group in ("containers", "initContainers"):
        wanted = {item.get("name"): item.get("resources", {}) for item in requested.get("spec", {}).get(group) or ()}
        if group in spec:
            spec[group] = [{**item, "resources": wanted.get(item["name"], item["resources"])} for item in spec[group]]
    before, after = compute_qos_class(current["spec"]), compute_qos_class(spec)
    if before != after:
        error = fields.invalid("spec", before, "Pod QOS Class may not change as a result of resizing")
        name = current["metadata"]["name"]
        raise status_errors.invalid(name, group="", kind="Pod", errors=[error])
    return {**current, "spec": spec}
