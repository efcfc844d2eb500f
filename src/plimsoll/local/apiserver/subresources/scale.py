"""The scale subresource: the replicas of a scalable object as an autoscaling/v1 Scale.

The managed fields of the number are kept on the parent object (`apply.scale`).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.apply.conflicts import ApplyRefused
from plimsoll.local.apiserver.apply.field_manager import FieldManager
from plimsoll.local.apiserver.apply.scale import ScaleOwnership
from plimsoll.local.apiserver.apply.typed.schemas import TypeSchema
from plimsoll.local.apiserver.registry import guaranteed_update
from plimsoll.local.apiserver.registry.identity import build_key, check_identity, set_namespace
from plimsoll.local.apiserver.subresources.body_decoding import decode_body
from plimsoll.local.apiserver.subresources.scale_targets import CustomScaleTarget, ScaleTarget, find_scale_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]

_VERSION: Final = "autoscaling/v1"
_KIND: Final = "Scale"


async def get_scale(server: Server, call: RequestContext) -> Json:
    stored = server.store.get(build_key(call))
    if stored is None:
        raise status_errors.not_found(call.name, group=call.resource.group, resource=call.resource.plural)
    scalable = find_scale_target(call.resource)
    scale = _scale(scalable, stored.decode_body())
    if isinstance(scalable, CustomScaleTarget) and "replicas" not in scale["spec"]:
        raise _no_replicas(scalable.replicas_path)
    return _write(scale)


async def put_scale(server: Server, call: RequestContext, body: Json) -> Json:
    """Replace the Scale by `decode_body`; the Scale afterwards."""
    sent = decode_body(call, body, api_version=_VERSION, kind=_KIND)
    return await patch_scale(server, call, lambda _current: sent)


async def patch_scale(server: Server, call: RequestContext, patch: Callable[[Json], Json]) -> Json:
    """Let `patch` make the new Scale from the current one (again, after a concurrent write); returns the new Scale."""

    def apply_patch(scale: Json) -> Json:
        new_scale = _write(decode_body(call, patch(_write(scale)), api_version=_VERSION, kind=_KIND))
        now = server.clock.now()
        return _get_field_manager().update(
            _write(scale, with_managers=True), new_scale, manager=call.field_manager, now=now
        )

    return await _change(server, call, apply_patch)


async def apply_scale(server: Server, call: RequestContext, applied: Any, *, force: bool) -> Json:
    """Server-side apply of a Scale; the Scale afterwards."""

    def merge(scale: Json) -> Json:
        live = _write(scale, with_managers=True)
        now = server.clock.now()
        result = _get_field_manager().apply(live, applied, manager=call.field_manager, force=force, now=now)
        if isinstance(result, ApplyRefused):
            details = {"causes": list(result.causes)} if result.causes else None
            raise status_errors.failure(result.code, result.reason, result.message, details=details)
        managers = result.value["metadata"].get("managedFields") or []
        new_scale = _write(decode_body(call, result.value, api_version=_VERSION, kind=_KIND))
        return {**new_scale, "metadata": {**new_scale["metadata"], "managedFields": managers}}

    return await _change(server, call, merge)


async def _change(server: Server, call: RequestContext, written: Callable[[Json], Json]) -> Json:
    scalable = find_scale_target(call.resource)

    def change(obj: Json) -> Json:
        ownership = ScaleOwnership(
            obj["metadata"].get("managedFields"), api_version=call.resource.api_version, paths=scalable.paths
        )
        before = _scale(scalable, obj)
        before["metadata"]["managedFields"] = ownership.build_scale_entries()
        after = written(before)
        _check(call, obj, after)
        replicas = after["spec"].get("replicas")
        scalable.check(call.name, replicas if replicas is not None else _unset(before))
        managers = ownership.build_parent_entries(after["metadata"].get("managedFields") or [])
        metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
        if managers:
            metadata["managedFields"] = managers
        if version := after["metadata"].get("resourceVersion"):
            metadata["resourceVersion"] = version
        return scalable.set_replicas({**obj, "metadata": metadata}, replicas or 0)

    changed = await guaranteed_update.change_object(server, call, change, subresource="scale")
    return _write(_scale(scalable, changed))


def _unset(before: Json) -> int | None:
    """Go cannot distinguish zero from absent: only an object that never had replicas must get some."""
    return 0 if "replicas" in before["spec"] else None


def _check(call: RequestContext, obj: Json, scale: Json) -> None:
    set_namespace(scale, call)
    check_identity(scale, call)
    resource, wanted, present = call.resource, scale["metadata"].get("uid"), obj["metadata"]["uid"]
    if wanted and wanted != present:
        why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {present}"
        raise status_errors.conflict(call.name, group=resource.group, resource=resource.plural, why=why)


def _scale(scalable: ScaleTarget, obj: Json) -> Json:
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": _KIND,
        "apiVersion": _VERSION,
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        **scalable.build_scale(obj),
    }


def _write(scale: Json, *, with_managers: bool = False) -> Json:
    """As Go writes it: no zero in the spec, no empty selector."""
    spec, status = scale.get("spec") or {}, scale.get("status") or {}
    metadata = scale.get("metadata") or {}
    if not with_managers:
        metadata = {name: value for name, value in metadata.items() if name != "managedFields"}
    selector = status.get("selector")
    return {
        "kind": _KIND,
        "apiVersion": _VERSION,
        "metadata": metadata,
        "spec": {"replicas": spec["replicas"]} if spec.get("replicas") else {},
        "status": {"replicas": status.get("replicas", 0), **({"selector": selector} if selector else {})},
    }


def _no_replicas(path: str) -> status_errors.StatusError:
    why = f'the spec replicas field "{path}" does not exist'
    details = {"causes": [{"message": why}]}
    return status_errors.failure(500, "InternalError", f"Internal error occurred: {why}", details=details)


@cache
def _get_field_manager() -> FieldManager:
    schema = TypeSchema.from_builtin(_VERSION, _KIND)
    assert schema is not None
    return FieldManager({_VERSION: schema}, api_version=_VERSION, kind=_KIND, subresource="scale")
