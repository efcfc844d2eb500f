"""The lifecycle of a CustomResourceDefinition: names, conditions, serving, and deletion with its objects.

After every write (`follow_change`), the definition gets its names and conditions and is served; a definition that is
being deleted loses its objects first. `restore` and `resume` do the same at the start for everything in the store.
Deterministic: there is no separate controller and no delay; one task runs at a time. The definition is written with the
server's field manager.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.apply.field_manager import FieldManager
from plimsoll.local.apiserver.apply.reset_fields import reset_fields
from plimsoll.local.apiserver.apply.typed.schemas import TypeSchema
from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.crds.names import build_accepted_names_status
from plimsoll.local.apiserver.crds.serving import (
    build_stored_resource,
    compile_and_serve,
    find_served_version,
    list_builtin_names,
    serve,
    stop_serving,
)
from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.registry.deletion import delete_object
from plimsoll.local.apiserver.request.context import RequestContext
from plimsoll.local.apiserver.routing import ResourceRoute
from plimsoll.local.apiserver.storage import Decision, Delete, Keep, Key, ListQuery, Put, Stored, compute_encoded_size
from plimsoll.local.apiserver.strategies.crd_deletion import CLEANUP, TERMINATING, set_condition
from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.local.apiserver.resources.registry import ServedResource
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]
T = TypeVar("T")

DEFINITIONS: Final = "apiextensions.k8s.io/customresourcedefinitions"
_API_VERSION: Final = "apiextensions.k8s.io/v1"
_KIND: Final = "CustomResourceDefinition"
_MANAGER: Final = "kube-apiserver"
_ITSELF: Final = User(name="system:apiserver", groups=("system:masters",))
_OWN_REQUEST: Final = Request("DELETE", "/")
_DELETED_AT_ONCE: Final = 500


def restore(server: Server) -> None:
    """Serve what the stored definitions define."""
    for stored in server.store.list(DEFINITIONS).items:
        serve(server, stored.decode_body())


async def resume(server: Server) -> None:
    """Go on with what a server that ended at the wrong moment had begun: names to settle, objects to delete."""
    async with server.crd_tasks.lock:
        leaving = {
            resource.full_name for resource in server.registry if resource.is_custom and _is_terminating(resource)
        }
        for name in [*_list_unserved(server), *sorted(leaving)]:
            await _update_serving(server, name)


async def follow_change(server: Server, call: RequestContext, change: Callable[[], Awaitable[T]]) -> T:
    """Make a change that a client asked for and follow it, also if it failed half-way or the client is gone."""
    if call.resource.stored_as == DEFINITIONS:
        return await server.crd_tasks.run_to_completion(_change_definitions(server, call, change))
    try:
        return await change()
    finally:
        if call.resource.is_custom and _is_terminating_now(server, call.resource):
            await server.crd_tasks.run_to_completion(_follow(server, lambda: [call.resource.full_name]))


async def _change_definitions(server: Server, call: RequestContext, change: Callable[[], Awaitable[T]]) -> T:
    try:
        return await change()
    finally:
        await _follow(server, lambda: _write(server, call))


async def _follow(server: Server, written: Callable[[], list[str]]) -> None:
    async with server.crd_tasks.lock:
        names = written()
        for name in names:
            await _update_serving(server, name)
        if any(server.store.get(Key(DEFINITIONS, "", name)) is None for name in names):
            # Names that became free may be taken by definitions that wait for them.
            for name in _list_unserved(server):
                await _update_serving(server, name)


def _write(server: Server, call: RequestContext) -> list[str]:
    if call.name:
        return [call.name]
    if call.verb == "deletecollection":
        served = {resource.full_name for resource in server.registry if resource.is_custom}
        return sorted(served.union(stored.name for stored in server.store.list(DEFINITIONS).items))
    return _list_unserved(server)  # a create does not say the name; what it made is not served yet


def _list_unserved(server: Server) -> list[str]:
    """Definitions that are stored and not served."""
    served = {resource.full_name for resource in server.registry if resource.is_custom}
    return [stored.name for stored in server.store.list(DEFINITIONS).items if stored.name not in served]


async def _update_serving(server: Server, name: str) -> None:
    stored = server.store.get(Key(DEFINITIONS, "", name))
    if stored is None:
        stop_serving(server, name)
        return
    body = stored.decode_body()
    if body["metadata"].get("deletionTimestamp"):
        await compile_and_serve(server, body, size_bytes=len(stored.data))
        await _finish(server, name, body)
        return
    group = body["spec"]["group"]
    others = [
        item.decode_body()
        for item in server.store.list(DEFINITIONS).items
        if item.name != name and item.name.partition(".")[2] == group
    ]
    now = format_time(server.clock.now())
    builtin = list_builtin_names(server.registry, group)
    settled = await _write_status(
        server, name, lambda current: build_accepted_names_status(current, others, now=now, builtin=builtin)
    )
    if settled is not None:
        await compile_and_serve(server, settled, size_bytes=len(stored.data))


def reject_if_terminating(server: Server, call: RequestContext) -> None:  # noqa: ARG001 - the shape of every step
    """Nothing is created under a definition that is on its way out."""
    if call.verb != "create" or call.subresource or not call.resource.is_custom:
        return
    if _is_terminating(call.resource):
        name = _get_name(call)
        why = "create not allowed while custom resource definition is terminating"
        details = status_errors.build_details(name, group=call.resource.group, kind=call.resource.plural)
        raise status_errors.forbidden(f'{call.resource.full_name} "{name}" is forbidden: {why}', details=details)


def _get_name(call: RequestContext) -> str:
    from plimsoll.local.apiserver.request.bodies import read_object  # noqa: PLC0415 - only for this sentence

    metadata = read_object(call.request, kind=call.resource.kind).value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _is_terminating(resource: ServedResource) -> bool:
    assert resource.definition is not None
    return bool(resource.definition["metadata"].get("deletionTimestamp"))


def _is_terminating_now(server: Server, resource: ServedResource) -> bool:
    """Whether the definition is on its way out by now: that may have begun while its object was written."""
    current = server.registry.find(resource.group, resource.version, resource.plural)
    current = current or find_served_version(server.registry, resource.full_name)
    return current is not None and current.is_custom and _is_terminating(current)


# ---- writing


async def _write_status(server: Server, name: str, status_of: Callable[[Json], Json]) -> Json | None:
    """Give the definition the status that `status_of` makes of its newest state; the definition afterwards."""
    now = server.clock.now()

    def decide(current: Stored | None) -> Decision:
        if current is None:
            return Keep()
        before = current.decode_body()
        status = status_of(before)
        if status == before.get("status"):
            return Keep()
        return Put(_build_field_manager().update(before, {**before, "status": status}, manager=_MANAGER, now=now))

    result = await server.store.update(Key(DEFINITIONS, "", name), decide)
    return None if result is None else result.decode_body()


def _build_field_manager() -> FieldManager:
    schema = TypeSchema.from_builtin(_API_VERSION, _KIND)
    assert schema is not None
    reset = reset_fields(_KIND, "status", has_status=True)
    return FieldManager({_API_VERSION: schema}, api_version=_API_VERSION, kind=_KIND, subresource="status", reset=reset)


# ---- ending


async def _finish(server: Server, name: str, body: Json) -> None:
    """Delete the objects of a definition that is being deleted; without any left, let the definition go."""
    if CLEANUP not in (body["metadata"].get("finalizers") or []):
        return
    in_progress = {
        "type": TERMINATING,
        "status": "True",
        "lastTransitionTime": format_time(server.clock.now()),
        "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress",
    }
    await _write_status(server, name, lambda current: set_condition(current.get("status") or {}, in_progress))
    resource = await server.long_work.run(compute_encoded_size(body), partial(build_stored_resource, body))
    # What lies under a built-in resource's name was never this definition's.
    is_reserved = any(
        served_resource.stored_as == resource.stored_as
        for served_resource in server.registry
        if not served_resource.is_custom
    )
    if not is_reserved:
        await _delete_all(server, resource)

    def decide(current: Stored | None) -> Decision:
        if current is None or (not is_reserved and server.store.count(resource.stored_as)):
            return Keep()
        definition = current.decode_body()
        left = [finalizer for finalizer in definition["metadata"].get("finalizers") or [] if finalizer != CLEANUP]
        if not left:
            return Delete()
        return Put({**definition, "metadata": {**definition["metadata"], "finalizers": left}})

    await server.store.update(Key(DEFINITIONS, "", name), decide)
    if server.store.get(Key(DEFINITIONS, "", name)) is None:
        stop_serving(server, name)


async def _delete_all(server: Server, resource: ServedResource) -> None:
    is_builtin = any(
        served_resource.stored_as == resource.stored_as
        for served_resource in server.registry
        if not served_resource.is_custom
    )
    assert resource.is_custom, resource.full_name
    assert not is_builtin, resource.full_name
    start = ""
    while True:
        page = server.store.list(resource.stored_as, ListQuery(start=start, limit=_DELETED_AT_ONCE))
        for stored in page.items:
            if stored.decode_body()["metadata"].get("deletionTimestamp"):
                # Wait for a write that is on its way: it may be the one that lets the object go.
                await server.store.update(stored.key, lambda _: Keep())
            else:
                await _delete(server, resource, stored)
        if page.next is None:
            return
        start = page.next


async def _delete(server: Server, resource: ServedResource, stored: Stored) -> None:
    call = RequestContext(
        _OWN_REQUEST,
        ResourceRoute(resource, stored.namespace, stored.name, "", "delete"),
        _ITSELF,
        dry_run=False,
        field_manager=_MANAGER,
        field_validation="Warn",
        warnings=[],
    )
    try:
        await delete_object(server, call, {})
    except status_errors.StatusError as refusal:
        # Gone already, or written all the time: then it is tried again after the last of those writes.
        if refusal.code not in {404, 409}:
            raise
